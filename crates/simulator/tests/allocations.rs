//! Nothing is allocated per packet once queues have reached their size.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use common::{link, scenario, tcp};
use suimon_scenario::{Buffer, Flow, Loss, Scenario, StackProfile, Traffic, UdpFlow};
use suimon_units::{Bytes, Duration, Probability, Rate};

/// The system's allocator, which counts.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract of this very function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps to the contract of this very function.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract of this very function.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Doubling a run may grow a queue or a table once more, each by one allocation.
const AT_MOST: u64 = 40;

fn allocations_and_packets(scenario: &Scenario) -> (u64, u64) {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let result = suimon_simulator::run(scenario, &[]);
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    (allocations, result.queues.iter().map(|queue| queue.packets).sum())
}

/// Eleven flows of many kinds over two congested hops, one of which loses packets.
fn busy(seconds: u64) -> Scenario {
    let rate = Rate::from_bps(200_000_000);
    let ms = Duration::from_millis;
    let mut links = vec![
        link("a", "b", rate, ms(5), Buffer::Packets(200)),
        link("b", "c", rate, ms(5), Buffer::Bytes(Bytes::new(300_000))),
        link("c", "b", rate, ms(5), Buffer::Unbounded),
        link("b", "a", rate, ms(5), Buffer::Unbounded),
    ];
    links[1].impairments.loss = Loss::Random(Probability::clamped(1e-4));
    links[1].impairments.jitter = Duration::from_micros(50);
    let schemes = ["reno", "cubic", "cubic-2.1", "bic", "vegas", "fs-at", "fs-at+cubic", "bbr"];
    let mut flows: Vec<_> = schemes.iter().map(|cc| tcp(cc, ("a", "c"), cc, |_| {})).collect();
    flows.push(tcp("paced", ("a", "c"), "cubic", |tcp| {
        tcp.profile = StackProfile { pacing: true, ..StackProfile::linux_6() };
    }));
    flows.push(tcp("slow", ("a", "b"), "cubic", |tcp| {
        tcp.application_rate = Some(Rate::from_bps(5_000_000));
    }));
    let datagrams = UdpFlow {
        rate: Rate::from_bps(5_000_000),
        packet: Bytes::new(500),
        size: None,
        echo: false,
        on_off: None,
    };
    flows.push(Flow { traffic: Traffic::Udp(datagrams), ..tcp("udp", ("b", "c"), "reno", |_| {}) });
    scenario(Duration::from_secs(seconds), links, flows)
}

// One test, since others in the same process would be counted too.
#[test]
fn a_run_twice_as_long_allocates_no_more() {
    let (half, packets_of_half) = allocations_and_packets(&busy(25));
    let (whole, packets) = allocations_and_packets(&busy(50));
    println!("{half} allocations for {packets_of_half} packets, {whole} for {packets}");
    assert!(packets - packets_of_half > 1_000_000);
    assert!(whole <= half + AT_MOST, "{half} for {packets_of_half} packets, {whole} for {packets}");
}

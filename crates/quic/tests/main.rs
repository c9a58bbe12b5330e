//! QUIC over a link of the simulator, in time of its own.

#[path = "../examples/over_a_link/peer.rs"]
mod peer;
#[path = "../examples/over_a_link/world.rs"]
mod world;

use std::time::Instant;

use suimon_algorithms::registry::{AlgorithmSpec, Registry, Role};
use suimon_results::RunResult;
use suimon_scenario::{LinkSpec, drop_tail};
use suimon_study::{Comparison, Unobserved, simulate};
use suimon_units::{Duration, Rate};

use crate::peer::{Control, Peer, noq, quinn};
use crate::world::{Download, download};

type Pair = fn(&Control, Instant) -> [Box<dyn Peer>; 2];

const STACKS: [(&str, Pair); 2] = [("quinn", quinn::pair), ("noq", noq::pair)];
const LINK: &str = "2Mbit 180ms 96kB";
const MINUTE: Duration = Duration::from_secs(60);

fn sender(name: &str) -> Control {
    Control::Sender(name.parse().unwrap())
}

fn over(link: &str, pair: Pair, control: &Control) -> Download {
    over_queue(link, &drop_tail(), 1, pair, control)
}

fn over_queue(link: &str, queue: &AlgorithmSpec, seed: u64, pair: Pair, control: &Control) -> Download {
    let links = LinkSpec::parse(link).unwrap().links(queue);
    download(&links, seed, MINUTE, |now| pair(control, now))
}

/// TCP in the simulator, over the same link.
fn simulated(link: &str, name: &str) -> RunResult {
    let mut comparison = Comparison::over(link).unwrap();
    comparison.senders = vec![name.into()];
    simulate(&comparison.runs(&Registry::standard()).unwrap(), &Unobserved).remove(0)
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn share(one: Rate, other: Rate) -> f64 {
    one.as_bps_f64() / other.as_bps_f64()
}

#[test]
fn fs_at_fills_the_link_with_a_third_of_the_queue_of_the_stacks_cubic() {
    for (stack, pair) in STACKS {
        let own = over(LINK, pair, &Control::StacksCubic);
        let fs_at = over(LINK, pair, &sender("fs-at"));
        assert!(share(fs_at.goodput, own.goodput) > 0.99, "{stack}: {} of {}", fs_at.goodput, own.goodput);
        let delays = ratio(fs_at.queue.delay_mean, own.queue.delay_mean);
        assert!(delays < 0.4, "{stack}: {delays}");
        assert!(own.queue.dropped_overflow > 100 && fs_at.queue.dropped_overflow < 5, "{stack}");
    }
}

#[test]
fn a_sender_queues_over_quic_what_it_queues_over_tcp_in_the_simulator() {
    for name in ["cubic", "fs-at"] {
        let tcp = simulated(LINK, name);
        for (stack, pair) in STACKS {
            let quic = over(LINK, pair, &sender(name));
            let goodput = share(quic.goodput, tcp.flows[0].goodput);
            assert!((0.98..1.02).contains(&goodput), "{name}, {stack}: {goodput} of TCP's goodput");
            let delay = ratio(quic.queue.delay_mean, tcp.queues[0].delay_mean);
            assert!((0.85..1.15).contains(&delay), "{name}, {stack}: {delay} of TCP's queueing delay");
        }
    }
}

#[test]
fn losses_of_a_radio_cost_fs_at_less_than_the_stacks_cubic() {
    for (stack, pair) in STACKS {
        let link = "2Mbit 180ms 96kB loss=1%";
        let own = over(link, pair, &Control::StacksCubic).goodput;
        let fs_at = over(link, pair, &sender("fs-at")).goodput;
        assert!(share(fs_at, own) > 1.5, "{stack}: {fs_at} and {own}");
        assert!(fs_at > Rate::from_bps(1_500_000), "{stack}: {fs_at} of 2 Mbit/s");
    }
}

#[test]
fn the_stack_that_asks_for_a_pacing_rate_gets_it() {
    let [quinn, noq] = STACKS.map(|(_, pair)| over(LINK, pair, &sender("bbr")));
    // BBR's window is two bandwidth-delay products: it relies on its pace to queue less than one.
    assert!(noq.queue.delay_mean < Duration::from_millis(60), "{:?}", noq.queue);
    assert!(quinn.queue.delay_mean > Duration::from_millis(120), "quinn paces now: say so on the page");
    assert!(share(noq.goodput, quinn.goodput) > 0.98);
}

#[test]
fn marks_are_answered_as_losses_are() {
    let queue = AlgorithmSpec::parse(Role::Queue, "codel").unwrap();
    for (stack, pair) in STACKS {
        let marked = over_queue(LINK, &queue, 1, pair, &sender("cubic"));
        assert!(marked.queue.marked > 10 && marked.queue.dropped_early == 0, "{stack}: {:?}", marked.queue);
        let plain = over(LINK, pair, &sender("cubic"));
        let delays = ratio(marked.queue.delay_mean, plain.queue.delay_mean);
        assert!(delays < 0.3, "{stack}: {delays} of the delay without marks");
        assert!(share(marked.goodput, plain.goodput) > 0.85, "{stack}: {}", marked.goodput);
    }
}

#[test]
fn the_same_seed_sends_the_same_packets_at_the_same_nanoseconds() {
    for (stack, pair) in STACKS {
        let run = |seed| {
            over_queue("2Mbit 180ms 96kB loss=1%", &drop_tail(), seed, pair, &sender("fs-at+cubic")).sent
        };
        let first = run(1);
        assert!(first.len() > 5_000, "{stack}: {}", first.len());
        assert!(first == run(1), "{stack}");
        assert!(first != run(2), "{stack}: another seed loses other packets");
    }
}

//! Measures emulated links on this machine: rate, delay, speed, and plain devices beside them.
//!
//! `cargo run --release -p suimon-emulator --example accuracy` prints the tables, or those of the words rate, delay and
//! speed that are given; `--quick` measures for a second each, `--halting` with cores that halt, as behind a shell.
//! Needs root. All load on the machine is in the figures, so let nothing else run.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{self, SystemTime};
use std::{io, thread};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt};
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_emulator::{LinkReport, Setup, TwoHosts};
use suimon_linux::Namespace;
use suimon_linux::schedule::{Awake, Urgency, become_real_time};
use suimon_results::DelayHistogram;
use suimon_scenario::{Link, LinkSpec};
use suimon_units::{Bytes, Duration, Rate};

/// Measures, so long each time, and prints.
type Part = fn(Duration) -> Result<()>;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Result<()> {
    let given = |word: &str| std::env::args().any(|argument| argument == word);
    let length = Duration::from_secs(if given("--quick") { 1 } else { 4 });
    let _awake = (!given("--halting")).then(Awake::begin);
    let parts = [("rate", rates as Part), ("delay", delays), ("speed", speeds)];
    let all = !parts.iter().any(|(name, _)| given(name));
    for (name, measure) in parts {
        if all || given(name) {
            measure(length)?;
        }
    }
    Ok(())
}

fn rates(length: Duration) -> Result<()> {
    println!(
        "RATE: what reaches the far host while packets always wait (drop tail, 2 ms, TCP; UDP below 1 Mbit/s)"
    );
    for (rate, segmentation) in [
        ("64kbit", false),
        ("384kbit", false),
        ("1Mbit", false),
        ("10Mbit", false),
        ("100Mbit", false),
        ("300Mbit", false),
        ("500Mbit", false),
        ("100Mbit", true),
        ("500Mbit", true),
        ("1Gbit", true),
    ] {
        rate_row(rate, segmentation, length)?;
    }
    println!("\nTWO LINKS of 400 Mbit/s at once");
    two_links(length)
}

fn delays(length: Duration) -> Result<()> {
    println!("\nDELAY added to that of the link, one way, datagrams of 1000 bytes at half of the rate");
    for (link, segmentation) in
        [("1Mbit 20ms", true), ("10Mbit 20ms", true), ("100Mbit 20ms", true), ("100Mbit 100ms", false)]
    {
        delay_row(link, segmentation, length)?;
    }
    plain_delay(length)
}

fn speeds(length: Duration) -> Result<()> {
    println!("\nSPEED: one TCP flow with no limit on the rate");
    for segmentation in [false, true] {
        speed_row(segmentation, length)?;
    }
    plain_speed(length)
}

fn setup(segmentation: bool) -> Setup {
    // All links of this program share the threads that keep the cores awake, if any do.
    Setup { segmentation, awake: false, ..Setup::default() }
}

fn path(link: &str) -> Result<[Link; 2]> {
    Ok(LinkSpec::parse(link)?.links(&AlgorithmSpec::parse(Role::Queue, "droptail")?))
}

fn kind(segmentation: bool) -> &'static str {
    if segmentation { "segments split" } else { "wire packets" }
}

fn lateness(report: &LinkReport) -> String {
    let late = report.statistics.lateness;
    format!(
        "late {:.1} / {:.1} / {:.1} (p50 / p99 / max, {}){}",
        late.p50,
        late.p99,
        late.max,
        report.statistics.scheduling,
        if report.statistics.unseen > 0 {
            format!(", {} unseen", report.statistics.unseen)
        } else {
            String::new()
        }
    )
}

fn rate_row(rate: &str, segmentation: bool, length: Duration) -> Result<()> {
    let nominal: Rate = rate.parse()?;
    // Half a second of packets, so that the queue does not run empty, but no more than a window can hold.
    let buffer = nominal.amount_in(Duration::from_millis(500)).get().clamp(30_000, 2_000_000);
    let hosts = TwoHosts::new(&setup(segmentation), &[path(&format!("{rate} 2ms {buffer}B"))?])?;
    let slow = nominal < Rate::from_bps(1_000_000);
    let length = if slow { length * 5 } else { length };
    let measured = if slow {
        flooded(&hosts, nominal, length)?
    } else {
        let device = &hosts.paths[0].far_device;
        let far = &hosts.far;
        filled(&hosts, 0, length, || Ok(far.device_counters(device)?.received_bytes))?
    };
    let reports = hosts.emulation.finish()?;
    println!(
        "  {:>12} {:<15} {:>10.4} Mbit/s  {:+.3} %  {}",
        nominal.to_string(),
        kind(segmentation),
        measured.as_bps_f64() / 1e6,
        100.0 * (measured.as_bps_f64() / nominal.as_bps_f64() - 1.0),
        lateness(&reports[0]),
    );
    Ok(())
}

/// The rate at which bytes come while TCP keeps the path full; `received` tells how many have come so far.
fn filled(
    hosts: &TwoHosts,
    path: usize,
    length: Duration,
    received: impl Fn() -> Result<Bytes>,
) -> Result<Rate> {
    let address = SocketAddr::from((hosts.paths[path].far, 5_001));
    let (near, far) = (&hosts.near, &hosts.far);
    transfer(near, far, address, |_| {
        thread::sleep(time::Duration::from_millis(1_500));
        rate_over(length, received)
    })
}

/// The rate at which `received` grows over `length`.
fn rate_over(length: Duration, received: impl Fn() -> Result<Bytes>) -> Result<Rate> {
    // When it was read is known only where that took no time to speak of.
    let read = || -> Result<(time::Instant, Bytes)> {
        for _ in 0..50 {
            let began = time::Instant::now();
            let bytes = received()?;
            if began.elapsed() < time::Duration::from_millis(1) {
                return Ok((began, bytes));
            }
        }
        Err("the machine is too busy to measure on".into())
    };
    let (began, before) = read()?;
    thread::sleep(time::Duration::from_nanos(length.as_nanos()));
    let (ended, after) = read()?;
    let time = Duration::from_nanos(ended.duration_since(began).as_nanos() as u64);
    Ok(Rate::of(Bytes::new(after.get() - before.get()), time))
}

/// Sends as much as TCP takes while `watch` runs, which is given how much the far program has got.
fn transfer<T>(
    near: &Namespace,
    far: &Namespace,
    address: SocketAddr,
    watch: impl FnOnce(&AtomicU64) -> Result<T>,
) -> Result<T> {
    // Reno leaves no room in the queue unused.
    near.set_sysctl("ipv4/tcp_congestion_control", "reno")?;
    let listener = far.run(|| TcpListener::bind(address))??;
    let mut stream = near.run(|| TcpStream::connect(address))??;
    stream.set_write_timeout(Some(time::Duration::from_millis(200)))?;
    let (over, got) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut buffer = vec![0; 1 << 20];
            while let Ok(read) = stream.read(&mut buffer) {
                if read == 0 {
                    break;
                }
                got.fetch_add(read as u64, Ordering::Relaxed);
            }
        });
        scope.spawn(|| {
            let data = vec![0; 1 << 18];
            while !over.load(Ordering::Relaxed) {
                let _ = stream.write(&data);
            }
            let _ = stream.shutdown(std::net::Shutdown::Both);
        });
        let seen = watch(&got);
        over.store(true, Ordering::Relaxed);
        seen
    })
}

/// The rate at which datagrams come that are sent a tenth faster.
fn flooded(hosts: &TwoHosts, rate: Rate, length: Duration) -> Result<Rate> {
    let far = SocketAddr::from((hosts.paths[0].far, 9));
    let receiver = hosts.far.run(|| UdpSocket::bind(far))??;
    let sender = hosts.near.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))??;
    receiver.set_read_timeout(Some(time::Duration::from_secs(2)))?;
    let gap = rate.scaled(1.1).transmission_time(Bytes::new(1_028));
    let count = length.as_nanos() / gap.as_nanos();
    thread::scope(|scope| {
        scope.spawn(move || {
            let began = time::Instant::now();
            for nth in 0..count {
                let due = began + time::Duration::from_nanos(gap.as_nanos() * nth);
                thread::sleep(due.saturating_duration_since(time::Instant::now()));
                let _ = sender.send_to(&[0; 1_000], far);
            }
        });
        let mut buffer = [0; 2_000];
        let mut times = Vec::new();
        while receiver.recv(&mut buffer).is_ok() {
            times.push(time::Instant::now());
        }
        let (Some(first), Some(last)) = (times.first(), times.last()) else {
            return Err("nothing came".into());
        };
        let time = Duration::from_nanos(last.duration_since(*first).as_nanos() as u64);
        Ok(Rate::of(Bytes::new(1_028) * (times.len() as u64 - 1), time))
    })
}

fn two_links(length: Duration) -> Result<()> {
    let link = path("400Mbit 2ms 1MB")?;
    let hosts = TwoHosts::new(&setup(true), &[link.clone(), link])?;
    let rates = thread::scope(|scope| {
        let measure = |index: usize| {
            let hosts = &hosts;
            move || {
                let device = &hosts.paths[index].far_device;
                filled(hosts, index, length, || Ok(hosts.far.device_counters(device)?.received_bytes))
            }
        };
        let first = scope.spawn(measure(0));
        let second = scope.spawn(measure(1));
        [first.join().expect("no panic"), second.join().expect("no panic")]
    });
    let reports = hosts.emulation.finish()?;
    for (rate, report) in rates.into_iter().zip(&reports) {
        println!("  {:>10.4} Mbit/s  {}", rate?.as_bps_f64() / 1e6, lateness(report));
    }
    Ok(())
}

fn delay_row(link: &str, segmentation: bool, length: Duration) -> Result<()> {
    let directions = path(link)?;
    let suimon_scenario::Capacity::Rate(rate) = directions[0].capacity else { return Err("a rate".into()) };
    let hosts = TwoHosts::new(&setup(segmentation), std::slice::from_ref(&directions))?;
    let of_link = (rate.transmission_time(Bytes::new(1_028)), directions[0].delay);
    let gap = rate.transmission_time(Bytes::new(2 * 1_028));
    let added = one_way(&hosts.near, &hosts.far, hosts.paths[0].far.into(), gap, of_link, length)?;
    let reports = hosts.emulation.finish()?;
    println!(
        "  {:<14} {:<15} p50 {:.1}, p99 {:.1}, max {:.1} of {} packets; {}",
        link,
        kind(segmentation),
        added.quantile(0.5),
        added.quantile(0.99),
        added.max(),
        added.count(),
        lateness(&reports[0]),
    );
    Ok(())
}

/// How much longer than they should datagrams sent every `gap` take until the kernel of the far host has them:
/// `of_link` is the transmission time of one and the delay behind it. A sender that was held up sends its late
/// datagrams at once, which then wait for their turn.
fn one_way(
    near: &Namespace,
    far: &Namespace,
    address: IpAddr,
    gap: Duration,
    of_link: (Duration, Duration),
    length: Duration,
) -> Result<DelayHistogram> {
    let to = SocketAddr::new(address, 9);
    let receiver = far.run(|| UdpSocket::bind(to))??;
    setsockopt(&receiver, sockopt::ReceiveTimestampns, &true)?;
    receiver.set_read_timeout(Some(time::Duration::from_millis(500)))?;
    let sender = near.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))??;
    let count = (length.as_nanos() / gap.as_nanos()).max(MIN_PACKETS);
    thread::scope(|scope| {
        scope.spawn(move || {
            // Whoever is pushed aside between looking at the clock and sending measures that.
            let _ = become_real_time(Urgency::Link);
            let mut data = [0; 1_000];
            let began = time::Instant::now();
            for nth in 0..count {
                let due = began + time::Duration::from_nanos(gap.as_nanos() * nth);
                thread::sleep(due.saturating_duration_since(time::Instant::now()));
                data[..8].copy_from_slice(&since_epoch(SystemTime::now()).to_be_bytes());
                let _ = sender.send_to(&data, to);
            }
        });
        let mut added = DelayHistogram::default();
        let mut free = 0;
        loop {
            let mut data = [0; 1_000];
            let mut space = nix::cmsg_space!(nix::sys::time::TimeSpec);
            let mut parts = [io::IoSliceMut::new(&mut data)];
            let flags = MsgFlags::empty();
            let Ok(message) =
                recvmsg::<SockaddrIn>(receiver.as_raw_fd(), &mut parts, Some(&mut space), flags)
            else {
                break;
            };
            let came = message.cmsgs()?.find_map(|part| match part {
                ControlMessageOwned::ScmTimestampns(at) => {
                    Some(at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64)
                }
                _ => None,
            });
            let Some(came) = came else { return Err("no time stamp".into()) };
            let sent = u64::from_be_bytes(data[..8].try_into()?);
            free = free.max(sent) + of_link.0.as_nanos();
            added.record(Duration::from_nanos(came.saturating_sub(free + of_link.1.as_nanos())));
        }
        Ok(added)
    })
}

/// Ten of them decide a 99th percentile.
const MIN_PACKETS: u64 = 1_000;

fn since_epoch(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// Two hosts joined by a pair of devices, without an emulator.
fn plain() -> Result<(Namespace, Namespace, Ipv4Addr)> {
    let (near, far) = (Namespace::new()?, Namespace::new()?);
    near.add_veth("plain0", &far, "plain1")?;
    let addresses = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
    for (host, device, address) in [(&near, "plain0", addresses[0]), (&far, "plain1", addresses[1])] {
        host.add_address(device, address.into(), 24)?;
        host.set_up(device)?;
    }
    // The kernel looks at carriers once a second.
    thread::sleep(time::Duration::from_millis(1_500));
    Ok((near, far, addresses[1]))
}

fn plain_delay(length: Duration) -> Result<()> {
    let (near, far, address) = plain()?;
    let gap = Duration::from_micros(200);
    let added = one_way(&near, &far, address.into(), gap, (Duration::ZERO, Duration::ZERO), length)?;
    println!(
        "  {:<30} p50 {:.1}, p99 {:.1}, max {:.1} of {} packets",
        "plain veth, no emulator",
        added.quantile(0.5),
        added.quantile(0.99),
        added.max(),
        added.count(),
    );
    Ok(())
}

fn speed_row(segmentation: bool, length: Duration) -> Result<()> {
    let hosts = TwoHosts::new(&setup(segmentation), &[path("unlimited 1ms")?])?;
    let device = &hosts.paths[0].far_device;
    let rate = filled(&hosts, 0, length, || Ok(hosts.far.device_counters(device)?.received_bytes))?;
    let reports = hosts.emulation.finish()?;
    println!(
        "  {:<15} {:>8.3} Gbit/s  {}",
        kind(segmentation),
        rate.as_bps_f64() / 1e9,
        lateness(&reports[0])
    );
    Ok(())
}

fn plain_speed(length: Duration) -> Result<()> {
    let (near, far, address) = plain()?;
    let rate = transfer(&near, &far, (address, 5_001).into(), |got| {
        thread::sleep(time::Duration::from_millis(500));
        rate_over(length, || Ok(Bytes::new(got.load(Ordering::Relaxed))))
    })?;
    println!("  {:<15} {:>8.3} Gbit/s", "plain veth", rate.as_bps_f64() / 1e9);
    Ok(())
}

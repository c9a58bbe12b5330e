//! Real packets over emulated links. Needs root, or the right to make namespaces and devices; skips elsewhere.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time;

use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_emulator::{Setup, TwoHosts, Way};
use suimon_linux::Namespace;
use suimon_scenario::{Link, LinkSpec};
use suimon_testing::{assert_in_time, can_emulate, in_time};
use suimon_units::{Duration, Rate};

/// One test at a time: each needs the machine for itself to be in time.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs a test that makes links, where this machine lets them be made.
fn alone(test: impl Fn()) {
    let _guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if can_emulate() {
        in_time(test);
    }
}

fn path(link: &str, queue: &str) -> [Link; 2] {
    let queue = AlgorithmSpec::parse(Role::Queue, queue).unwrap();
    LinkSpec::parse(link).unwrap().links(&queue)
}

/// Sends as much as it can by TCP from the near host to the far one; goodput at the far one.
fn transfer(hosts: &TwoHosts, path: usize, length: time::Duration) -> Rate {
    let address = SocketAddr::from((hosts.paths[path].far, 5_001));
    let listener = hosts.far.run(|| TcpListener::bind(address)).unwrap().unwrap();
    let mut stream = hosts.near.run(|| TcpStream::connect(address)).unwrap().unwrap();
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = vec![0; 1 << 18];
            let (mut got, mut since) = (0_u64, None);
            let mut last = time::Instant::now();
            while let Ok(read) = stream.read(&mut buffer) {
                if read == 0 {
                    break;
                }
                let now = time::Instant::now();
                match since {
                    // The first second is TCP finding its way.
                    None => since = Some(now + time::Duration::from_secs(1)),
                    Some(since) if now > since => {
                        got += read as u64;
                        last = now;
                    }
                    Some(_) => {}
                }
            }
            let seconds = last.saturating_duration_since(since.unwrap()).as_secs_f64();
            Rate::from_bps((got as f64 * 8.0 / seconds) as u64)
        });
        let data = vec![0; 1 << 17];
        let ends = time::Instant::now() + length;
        stream.set_write_timeout(Some(time::Duration::from_millis(500))).unwrap();
        while time::Instant::now() < ends {
            let _ = stream.write(&data);
        }
        // Unsent data is not waited for.
        drop(stream);
        receiver.join().unwrap()
    })
}

/// Echoes datagrams at the far host; the round-trip time of each of `count`, sent every 10 ms.
fn round_trips(hosts: &TwoHosts, count: usize) -> Vec<Duration> {
    let far = SocketAddr::from((hosts.paths[0].far, 7));
    let echo = hosts.far.run(|| UdpSocket::bind(far)).unwrap().unwrap();
    let near = hosts.near.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))).unwrap().unwrap();
    for socket in [&echo, &near] {
        socket.set_read_timeout(Some(time::Duration::from_millis(200))).unwrap();
    }
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut buffer = [0; 100];
            while let Ok((length, from)) = echo.recv_from(&mut buffer) {
                echo.send_to(&buffer[..length], from).unwrap();
            }
        });
        let mut times = Vec::new();
        for nth in 0..count {
            let sent = time::Instant::now();
            near.send_to(&(nth as u64).to_be_bytes(), far).unwrap();
            let mut buffer = [0; 8];
            if near.recv_from(&mut buffer).is_ok() {
                times.push(Duration::from_nanos(sent.elapsed().as_nanos() as u64));
            }
            thread::sleep(time::Duration::from_millis(10));
        }
        times
    })
}

#[test]
fn a_link_has_its_delay_and_can_be_cut_and_restored() {
    alone(|| {
        let hosts = TwoHosts::new(&Setup::default(), &[path("100Mbit 20ms", "droptail")]).unwrap();
        let mut times = round_trips(&hosts, 50);
        times.sort_unstable();
        assert_in_time!(times.len() == 50, "{times:?}");
        // The quicker ones: on a busy machine the others waited for their turn at the hosts.
        let quick = times[5].as_millis_f64();
        assert_in_time!((20.0..20.5).contains(&quick), "{times:?}");
        hosts.emulation.cut(0, Way::There);
        assert_eq!(round_trips(&hosts, 1).len(), 0);
        hosts.emulation.restore(0, Way::There);
        assert_in_time!(round_trips(&hosts, 1).len() == 1, "the link is back");
        let reports = hosts.emulation.finish().unwrap();
        assert!(reports[0].statistics.lateness.packets > 100);
    });
}

#[test]
fn tcp_gets_the_rate_of_the_link_less_headers() {
    alone(|| {
        for segmentation in [true, false] {
            let setup = Setup { segmentation, ..Setup::default() };
            let hosts = TwoHosts::new(&setup, &[path("20Mbit 10ms 50kB", "droptail")]).unwrap();
            let goodput = transfer(&hosts, 0, time::Duration::from_secs(2)).as_bps_f64();
            // 1448 bytes of payload in packets of 1500.
            let possible = 20e6 * 1_448.0 / 1_500.0;
            assert_in_time!(
                (0.97 * possible..1.005 * possible).contains(&goodput),
                "{goodput} of {possible}"
            );
            let reports = hosts.emulation.finish().unwrap();
            let statistics = &reports[0].statistics;
            assert_eq!((statistics.unseen, statistics.directions[0].refused.malformed), (0, 0));
        }
    });
}

#[test]
fn a_queue_of_the_registry_marks_real_tcp() {
    alone(|| {
        let hosts =
            TwoHosts::new(&Setup::default(), &[path("10Mbit 20ms 500packets", "codel:ecn=true")]).unwrap();
        for host in [&hosts.near, &hosts.far] {
            host.set_sysctl("ipv4/tcp_ecn", "1").unwrap();
            host.set_sysctl("ipv4/tcp_congestion_control", "reno").unwrap();
        }
        let goodput = transfer(&hosts, 0, time::Duration::from_secs(2)).as_bps_f64();
        assert_in_time!(goodput > 8e6, "{goodput}");
        let reports = hosts.emulation.finish().unwrap();
        let totals = &reports[0].statistics.directions[0].totals;
        assert!(totals.marked > 0, "{totals:?}");
        assert_eq!((totals.dropped_early, totals.dropped_overflow), (0, 0));
        assert_in_time!(totals.delay_p50.as_millis_f64() < 20.0, "{totals:?}");
    });
}

#[test]
fn a_radio_serves_real_packets() {
    alone(|| {
        for (link, least, most) in [("hsdpa PA3 10dB 40ms", 0.5e6, 14e6), ("wifi 802.11b 11Mbit", 3e6, 8e6)] {
            let hosts = TwoHosts::new(&Setup::default(), &[path(link, "droptail")]).unwrap();
            let goodput = transfer(&hosts, 0, time::Duration::from_secs(2)).as_bps_f64();
            assert_in_time!((least..most).contains(&goodput), "{link}: {goodput}");
            hosts.emulation.finish().unwrap();
        }
    });
}

/// Memory that this process has, in bytes.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
}

#[test]
fn a_flood_of_small_packets_is_dropped_and_the_link_goes_on() {
    alone(|| {
        let hosts = TwoHosts::new(&Setup::default(), &[path("10Mbit 20ms 100packets", "droptail")]).unwrap();
        let far = SocketAddr::from((hosts.paths[0].far, 9));
        // Somebody has to be there, or the far host answers every packet.
        let _sink = hosts.far.run(|| UdpSocket::bind(far)).unwrap().unwrap();
        let near = hosts.near.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))).unwrap().unwrap();
        let before = memory();
        let ends = time::Instant::now() + time::Duration::from_secs(2);
        let mut sent = 0_u64;
        while time::Instant::now() < ends {
            // 64 bytes with headers.
            sent += u64::from(near.send_to(&[0; 36], far).is_ok());
        }
        let grown = memory().saturating_sub(before);
        // The backlog takes its time; other flows get their turn behind it.
        thread::sleep(time::Duration::from_millis(100));
        assert_in_time!(round_trips(&hosts, 3).len() == 3, "the link goes on");
        let reports = hosts.emulation.finish().unwrap();
        let totals = &reports[0].statistics.directions[0].totals;
        assert!(totals.dropped_overflow > sent / 2, "{} of {sent}", totals.dropped_overflow);
        assert_eq!(
            (totals.backlog_max_packets, reports[0].statistics.directions[0].refused.malformed),
            (100, 0)
        );
        assert!(grown < 64 << 20, "{grown}");
    });
}

#[test]
fn the_near_host_reaches_what_this_process_reaches() {
    alone(|| {
        let near = Namespace::new().unwrap();
        let hosts =
            TwoHosts::outward(&Setup::default(), near, &[path("20Mbit 10ms", "droptail")], None).unwrap();
        // A server on this machine, and the same by another of its addresses where it has one.
        let tcp = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let udp = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let (tcp_port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
        let own = Namespace::current().unwrap().addresses().unwrap().into_iter().map(|(address, _)| address);
        let others = own.filter(|address| address.is_ipv4() && !address.is_loopback()).take(1);
        let addresses: Vec<_> = others.chain([hosts.paths[0].far.into()]).collect();
        let count = addresses.len();
        thread::scope(|scope| {
            scope.spawn(move || {
                for stream in tcp.incoming().take(count) {
                    let mut stream = stream.unwrap();
                    let mut text = String::new();
                    stream.read_to_string(&mut text).unwrap();
                    stream.write_all(text.to_uppercase().as_bytes()).unwrap();
                }
            });
            scope.spawn(move || {
                for _ in 0..count {
                    let mut data = [0; 100];
                    let (length, from) = udp.recv_from(&mut data).unwrap();
                    udp.send_to(&data[..length].to_ascii_uppercase(), from).unwrap();
                }
            });
            for address in addresses {
                let mut stream = hosts.near.run(|| TcpStream::connect((address, tcp_port))).unwrap().unwrap();
                stream.write_all(b"hello").unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                assert_eq!(answer, "HELLO", "{address}");
                let socket = hosts.near.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))).unwrap().unwrap();
                socket.set_read_timeout(Some(time::Duration::from_secs(5))).unwrap();
                socket.send_to(b"hello", (address, udp_port)).unwrap();
                let mut data = [0; 100];
                let (length, from) = socket.recv_from(&mut data).unwrap();
                assert_eq!((&data[..length], from), (&b"HELLO"[..], SocketAddr::from((address, udp_port))));
            }
        });
        // Over the link, not past it.
        let reports = hosts.emulation.finish().unwrap();
        assert!(reports[0].statistics.directions[0].totals.packets > 5);
    });
}

//! Real packets over emulated links. Needs root, or the right to make namespaces and devices; skips elsewhere.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time;

use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_emulator::{Setup, TwoHosts, Way};
use suimon_linux::Namespace;
use suimon_scenario::{Link, LinkSpec};
use suimon_units::{Duration, Rate};

/// Whether this machine lets links be made; says why where not.
fn can_emulate() -> bool {
    let refused = Namespace::new().and_then(|namespace| {
        suimon_linux::Tun::open(&namespace, "probe", suimon_linux::TunOptions::default())
    });
    if let Err(error) = &refused {
        eprintln!("skipped: {error}");
    }
    refused.is_ok()
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
        // What is still to be sent is not waited for.
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
    if !can_emulate() {
        return;
    }
    let hosts = TwoHosts::new(&Setup::default(), &[path("100Mbit 20ms", "droptail")]).unwrap();
    let mut times = round_trips(&hosts, 50);
    times.sort_unstable();
    assert_eq!(times.len(), 50);
    let median = times[25].as_millis_f64();
    assert!((20.0..20.5).contains(&median), "{median}");
    hosts.emulation.cut(0, Way::There);
    assert_eq!(round_trips(&hosts, 1).len(), 0);
    hosts.emulation.restore(0, Way::There);
    assert_eq!(round_trips(&hosts, 1).len(), 1);
    let reports = hosts.emulation.finish().unwrap();
    assert!(reports[0].statistics.lateness.packets > 100);
}

#[test]
fn tcp_gets_the_rate_of_the_link_less_headers() {
    if !can_emulate() {
        return;
    }
    for segmentation in [true, false] {
        let setup = Setup { segmentation, ..Setup::default() };
        let hosts = TwoHosts::new(&setup, &[path("20Mbit 10ms 50kB", "droptail")]).unwrap();
        let goodput = transfer(&hosts, 0, time::Duration::from_secs(3)).as_bps_f64();
        // 1448 bytes of payload in packets of 1500.
        let possible = 20e6 * 1_448.0 / 1_500.0;
        assert!((0.97 * possible..1.005 * possible).contains(&goodput), "{goodput} of {possible}");
        let reports = hosts.emulation.finish().unwrap();
        let statistics = &reports[0].statistics;
        assert_eq!((statistics.unseen, statistics.directions[0].refused.malformed), (0, 0));
    }
}

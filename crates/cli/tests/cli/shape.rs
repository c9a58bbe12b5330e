//! `suimon shape`: what it refuses, recordings, and a device of a namespace of the test's own.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_linux::{Namespace, Route};

use super::queue::{can_load, run_inside};
use super::{project, run_in, succeeds, suimon, text};

#[test]
fn what_cannot_be_shaped_is_refused_with_what_can() {
    for (arguments, problem) in [
        (vec!["shape"], "<DEVICE|--simulate"),
        (vec!["shape", "lo", "--controller", "autorate,cake-autorate"], "a device has one"),
        (vec!["shape", "lo", "--controller", "magic"], "accepted: autorate, cake-autorate"),
        (vec!["shape", "lo", "--status"], "nobody shapes lo"),
        (vec!["shape", "--simulate", "no-such-file"], "no-such-file"),
        (
            vec!["shape", "--simulate", "traces/cellular-3g.down", "--controller", "autorate:target=5"],
            "target",
        ),
    ] {
        let output = run_in(&project(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(problem), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn over_a_recording_packets_wait_less_than_with_a_fixed_rate() {
    let arguments = ["shape", "--simulate", "traces/cellular-3g.down", "--duration", "60s", "--json"];
    let rows: Value = serde_json::from_str(&succeeds(&project(), &arguments)).unwrap();
    let row = |shaper: &str| {
        let row = rows.as_array().unwrap().iter().find(|row| row["shaper"] == shaper).unwrap();
        (row["goodput_mbps"].as_f64().unwrap(), row["delay_p95_ms"].as_f64().unwrap())
    };
    let (own, fixed, cake) = (row("autorate"), row("fixed"), row("cake-autorate"));
    assert!(own.0 > 0.95 * fixed.0 && own.0 > 0.95 * cake.0, "{rows}");
    assert!(own.1 < 0.5 * fixed.1 && own.1 < 0.5 * cake.1, "{rows}");
    assert!(text(&run_in(&project(), &arguments[..5]).stdout).contains("The bar is"));
}

/// A host that sends and is shaped, a modem with a bottleneck of 4 Mbit/s, a host that receives.
struct World {
    host: Namespace,
    modem: Namespace,
    far: Namespace,
}

const FAR: Ipv4Addr = Ipv4Addr::new(10, 98, 2, 2);

impl World {
    /// None where this machine cannot load.
    fn new() -> Option<Self> {
        if !can_load() {
            return None;
        }
        let space = || Namespace::new().unwrap();
        let world = Self { host: space(), modem: space(), far: space() };
        world.host.add_veth("wan", &world.modem, "lan").unwrap();
        world.modem.add_veth("line", &world.far, "far").unwrap();
        let ends = [
            (&world.host, "wan", [10, 98, 1, 1]),
            (&world.modem, "lan", [10, 98, 1, 2]),
            (&world.modem, "line", [10, 98, 2, 1]),
            (&world.far, "far", FAR.octets()),
        ];
        for (space, device, address) in ends {
            space.set_most_segments(device, 1).unwrap();
            space.add_address(device, IpAddr::from(address), 24).unwrap();
            space.set_up(device).unwrap();
        }
        world.modem.set_sysctl("ipv4/ip_forward", "1").unwrap();
        world.host.add_route(&Route::default_via(IpAddr::from([10, 98, 1, 2]), "wan")).unwrap();
        world.far.add_route(&Route::default_via(IpAddr::from([10, 98, 2, 1]), "far")).unwrap();
        let line =
            ["queue", "load", "red:min_th=60MB", "--dev", "line", "--rate", "4Mbit", "--buffer", "1MB"];
        let output = run_inside(&world.modem, &line);
        assert!(output.status.success(), "{}", text(&output.stderr));
        Some(world)
    }

    fn shape(&self) -> Child {
        let mut command = suimon();
        // The kernel checks the program of RED faster than that of PIE.
        command
            .args(["shape", "wan", "--policy", "red", "--json"])
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        let child = self.host.spawn(&mut command).unwrap();
        let says = || self.host_says(&["shape", "wan", "--status"]);
        self.until("it says what it believes", || says().contains("because"));
        child
    }

    fn host_says(&self, arguments: &[&str]) -> String {
        text(&run_inside(&self.host, arguments).stdout)
    }

    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Uploads for so long.
    fn upload(&self, time: Duration) {
        let listener = self.far.run(|| TcpListener::bind((FAR, 9)).unwrap()).unwrap();
        let sink =
            thread::spawn(move || std::io::copy(&mut listener.accept().unwrap().0, &mut std::io::sink()));
        let mut stream = self.host.run(|| TcpStream::connect((FAR, 9)).unwrap()).unwrap();
        let begun = Instant::now();
        while begun.elapsed() < time {
            stream.write_all(&[0; 16_384]).unwrap();
        }
        drop(stream);
        let _ = sink.join();
    }

    fn has_queue(&self) -> bool {
        run_inside(&self.host, &["queue", "stat", "wan", "--json"]).status.success()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        run_inside(&self.modem, &["queue", "unload", "line"]);
    }
}

#[test]
fn an_upload_waits_in_front_of_the_shaper_and_the_shaper_says_what_it_believes() {
    let Some(world) = World::new() else { return };
    let mut shaper = world.shape();
    world.upload(Duration::from_secs(4));
    let belief: Value = serde_json::from_str(&world.host_says(&["shape", "wan", "--status"])).unwrap();
    // It begins with 1 Gbit/s, and the line has 4 Mbit/s.
    let rate = belief["rate_mbps"].as_f64().unwrap();
    assert!((0.5..40.0).contains(&rate), "{belief}");
    assert!(belief["delivered_mbps"].as_f64().unwrap() > 1.0, "{belief}");
    assert!(!belief["because"].as_str().unwrap().is_empty());
    let stat = text(&run_inside(&world.modem, &["queue", "stat", "line", "--json"]).stdout);
    let stat: Value = serde_json::from_str(&stat).unwrap();
    let value = |name: &str| stat[0][name].as_f64().unwrap();
    let mean = value("backlog_sum_bytes") / value("packets");
    // Without a shaper, 1 MB.
    assert!(mean < 150_000.0, "{stat}");
    let second = run_inside(&world.host, &["shape", "wan"]);
    assert!(text(&second.stderr).contains("another process shapes wan already"));
    interrupt(&shaper);
    assert!(shaper.wait().unwrap().success());
    assert!(!world.has_queue(), "it takes the queue away");
}

#[test]
fn a_queue_that_somebody_loaded_stays_where_a_shaper_is_refused() {
    let Some(world) = World::new() else { return };
    let shape = ["shape", "line", "--policy", "red", "--seconds", "1"];
    let refused = run_inside(&world.modem, &shape);
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("tbf"), "{}", text(&refused.stderr));
    let there = run_inside(&world.modem, &["queue", "stat", "line"]);
    assert!(there.status.success(), "{}", text(&there.stderr));
}

#[test]
fn a_shaper_that_is_killed_leaves_nothing() {
    let Some(world) = World::new() else { return };
    let mut shaper = world.shape();
    assert!(world.has_queue());
    shaper.kill().unwrap();
    shaper.wait().unwrap();
    world.until("the guard takes it away", || !world.has_queue());
}

fn interrupt(child: &Child) {
    let ended = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(ended.unwrap().success());
}

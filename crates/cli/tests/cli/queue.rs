//! `suimon queue`: what it refuses anywhere, and rounds of it at devices of namespaces of the test's own.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_linux::Namespace;
use tempfile::tempdir;

use super::{run_in, suimon, text};

#[test]
fn what_cannot_be_loaded_is_refused_with_what_can() {
    let folder = tempdir().unwrap();
    let load = |policy: &'static str| vec!["queue", "load", policy, "--dev", "lo", "--rate", "1Mbit"];
    for (arguments, problem) in [
        (load("codel"), "accepted: rtt-aqm, dpd-qt, even, red, ared, pie, rem, sred, shyu"),
        (load("rtt-aqm:zombies=5"), "takes no \"zombies\"; accepted: target"),
        (load("red:max_p=2"), "max_p"),
        (vec!["queue", "load", "red", "--dev", "lo", "--rate", "0Mbit"], "a link has a rate"),
        (vec!["queue", "replay", "no-such-file"], "no-such-file"),
    ] {
        let output = run_in(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(problem), "{arguments:?}: {}", text(&output.stderr));
    }
    let traces = [("", "this is empty"), ("{}", "line 1"), (HEAD, "0 packets, 0 verdicts differ")];
    for (trace, said) in traces {
        std::fs::write(folder.path().join("trace.json"), trace).unwrap();
        let output = run_in(folder.path(), &["queue", "replay", "trace.json"]);
        let all = text(&output.stdout) + &text(&output.stderr);
        assert!(all.contains(said), "{trace}: {all}");
    }
    let late = format!("{HEAD}\n{}", RECORD.replace("\"number\":0", "\"number\":3"));
    std::fs::write(folder.path().join("trace.json"), late).unwrap();
    let output = run_in(folder.path(), &["queue", "replay", "trace.json"]);
    assert!(text(&output.stderr).contains("packet 0 is missing"), "{}", text(&output.stderr));
    // Where the queue is empty no packet is marked.
    let wrong = format!("{HEAD}\n{}", RECORD.replace("\"verdict\":0", "\"verdict\":1"));
    std::fs::write(folder.path().join("trace.json"), wrong).unwrap();
    let output = run_in(folder.path(), &["queue", "replay", "trace.json"]);
    assert!(!output.status.success());
    assert!(text(&output.stdout).contains("1 packets, 1 verdicts differ"), "{}", text(&output.stdout));
}

const HEAD: &str = r#"{"policy":"red","bytes_per_second":125000,"buffer_bytes":30000,"seed":1,"words":[7500,22500,429496730,8589935,12404910,0,0,0]}"#;
const RECORD: &str = r#"{"number":0,"now_ns":5,"backlog_bytes":0,"backlog_packets":0,"size_bytes":100,"flow":1,"ecn":0,"verdict":0,"segments":1}"#;

/// Whether this machine can load a policy; says why not.
pub(super) fn can_load() -> bool {
    let check = run_in(Path::new("."), &["queue", "check"]);
    if !check.status.success() {
        eprintln!("skipped: {}", text(&check.stderr));
    }
    check.status.success()
}

/// What `suimon ARGUMENTS` gives in a namespace.
pub(super) fn run_inside(namespace: &Namespace, arguments: &[&str]) -> Output {
    namespace.run(|| suimon().args(arguments).output().unwrap()).unwrap()
}

/// Two namespaces with a link between them, `near` and `far`.
struct World {
    near: Namespace,
    far: Namespace,
}

const FAR: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 2);

impl World {
    /// None where this machine cannot load.
    fn new() -> Option<Self> {
        if !can_load() {
            return None;
        }
        let world = Self { near: Namespace::new().unwrap(), far: Namespace::new().unwrap() };
        for namespace in [&world.near, &world.far] {
            // No packets but the test's own.
            let _ = namespace.set_sysctl("ipv6/conf/all/disable_ipv6", "1");
        }
        world.near.add_veth("near", &world.far, "far").unwrap();
        world.near.add_address("near", IpAddr::from([10, 99, 0, 1]), 24).unwrap();
        world.far.add_address("far", IpAddr::from(FAR), 24).unwrap();
        world.near.set_up("near").unwrap();
        world.far.set_up("far").unwrap();
        Some(world)
    }

    fn try_run(&self, arguments: &[&str]) -> Output {
        run_inside(&self.near, arguments)
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.try_run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn load(&self, policy: &str) -> String {
        self.run(&[
            "queue", "load", policy, "--dev", "near", "--rate", "8Mbit", "--buffer", "40kB", "--seed", "3",
        ])
    }

    fn stat(&self) -> Value {
        let all: Value = serde_json::from_str(&self.run(&["queue", "stat", "--json"])).unwrap();
        all[0].clone()
    }

    /// Sends so many packets of 1 028 bytes at 41 Mbit/s. What a busy machine delays goes at once.
    fn send(&self, packets: u32) {
        let send = || {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            let begin = Instant::now();
            for packet in 0..packets {
                let due = begin + Duration::from_micros(200) * packet;
                thread::sleep(due.saturating_duration_since(Instant::now()));
                let _ = socket.send_to(&[0; 1_000], (FAR, 9));
            }
        };
        self.near.run(send).unwrap();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.try_run(&["queue", "unload", "near"]);
    }
}

#[test]
fn a_policy_is_loaded_watched_replaced_and_unloaded_and_leaves_nothing() {
    let Some(world) = World::new() else { return };
    assert!(world.load("rtt-aqm").contains("in front of a token bucket of 8 Mbit/s"));
    assert!(world.run(&["queue", "list"]).contains("near"));
    world.send(200);
    let stat = world.stat();
    assert_eq!(stat["policy"], "rtt-aqm");
    assert_eq!((stat["packets"].as_u64(), stat["bytes"].as_u64()), (Some(200), Some(205_600)));
    assert!(stat["largest_backlog_bytes"].as_u64().unwrap() > 5_000, "{stat}");
    let metrics = world.run(&["queue", "stat", "--metrics"]);
    assert!(
        metrics.contains("suimon_queue_packets_total{device=\"near\",policy=\"rtt-aqm\"} 200"),
        "{metrics}"
    );
    let another = ["queue", "load", "even:exponent=10", "--dev", "near", "--rate", "2Mbit"];
    assert!(world.run(&another).contains("in front of a token bucket of 2 Mbit/s"));
    assert_eq!(world.stat()["policy"], "even");
    // 20 kB at 2 Mbit/s wait for each other; at 8 Mbit/s they would leave as they come.
    world.send(20);
    assert!(world.stat()["largest_backlog_bytes"].as_u64().unwrap() > 8_000, "{}", world.stat());
    assert!(world.run(&["queue", "unload", "near"]).contains("token bucket with it"));
    let output = world.try_run(&["queue", "unload", "near"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no policy is loaded at near"), "{}", text(&output.stderr));
    // A device without a queue has nothing to stand in front of; the one of before is gone.
    let bare = ["queue", "load", "red", "--dev", "near", "--rate", "8Mbit", "--in-front-of"];
    let output = world.try_run(&bare);
    assert!(text(&output.stderr).contains("has no queue"), "{}", text(&output.stderr));
    let output = world.try_run(&["queue", "load", "red", "--dev", "nowhere", "--rate", "8Mbit"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("accepted: lo, near"), "{}", text(&output.stderr));
}

#[test]
fn a_replay_gives_the_verdicts_of_the_kernel() {
    let Some(world) = World::new() else { return };
    let folder = tempdir().unwrap();
    for policy in [
        "rtt-aqm:target=2kB",
        "dpd-qt",
        "even",
        "red:max_p=0.5",
        "pie:max_burst=0s",
        "ared:max_p=0.5",
        "rem:gamma=0.5",
        "sred:p_max=1",
        "shyu",
    ] {
        world.load(policy);
        world.send(20);
        let path = folder.path().join("trace.json");
        let mut command = suimon();
        command.args(["queue", "trace", "near", "--json", "--afresh"]);
        command.stdout(std::fs::File::create(&path).unwrap()).stderr(Stdio::piped());
        let mut trace = world.near.spawn(&mut command).unwrap();
        // The first line comes once every packet is recorded.
        while std::fs::read_to_string(&path).unwrap().is_empty() {
            thread::sleep(Duration::from_millis(20));
        }
        world.send(1_500);
        // The records come in within the 0.2 s after which it looks whether it is to end.
        thread::sleep(Duration::from_millis(500));
        let ended = Command::new("kill").args(["-INT", &trace.id().to_string()]).status();
        assert!(ended.unwrap().success() && trace.wait().unwrap().success());
        let said = run_in(folder.path(), &["queue", "replay", "trace.json"]);
        let said = text(&said.stdout) + &text(&said.stderr);
        let name = policy.split(':').next().unwrap();
        assert_eq!(said, format!("{name}: 1500 packets, 0 verdicts differ.\n"));
        let stat = world.stat();
        assert!(
            stat["drops"].as_u64().unwrap() + stat["overflows"].as_u64().unwrap() > 20,
            "{policy}: {stat}"
        );
    }
}

const DOWN: [&str; 8] = ["queue", "load", "rtt-aqm", "--dev", "near", "--down", "--rate", "8Mbit"];

#[test]
fn what_comes_in_waits_at_a_device_of_its_own_and_arrives() {
    let Some(world) = World::new() else { return };
    let before = world.near.devices().unwrap();
    let said = world.run(&DOWN);
    assert!(
        said.contains("which gets what comes in at near, in front of a token bucket of 8 Mbit/s"),
        "{said}"
    );
    assert!(world.run(&["queue", "list"]).contains("(into near)"));
    let receiver = world.near.run(|| UdpSocket::bind("0.0.0.0:9").unwrap()).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let send = || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        (0..100).for_each(|_| assert_eq!(socket.send_to(&[0; 1_000], "10.99.0.1:9").unwrap(), 1_000));
    };
    world.far.run(send).unwrap();
    // At 8 Mbit/s a packet takes a millisecond, and all came at once.
    let mut packet = [0; 2_000];
    let arrived = (0..30).filter(|_| receiver.recv(&mut packet).is_ok_and(|bytes| bytes == 1_000)).count();
    let stat = world.stat();
    assert_eq!((arrived, stat["packets"].as_u64()), (30, Some(100)), "{stat}");
    assert!(stat["largest_backlog_bytes"].as_u64().unwrap() > 20_000, "{stat}");
    // Another policy takes the place of the first, at the same device.
    let device = stat["device"].as_str().unwrap().to_owned();
    let another = ["queue", "load", "pie", "--dev", "near", "--down", "--rate", "2Mbit"];
    assert!(world.run(&another).contains(&device));
    assert!(
        world
            .run(&["queue", "unload", "near"])
            .contains(&format!("unloaded from {device}, and its token bucket"))
    );
    assert_eq!(world.near.devices().unwrap(), before);
    world.far.run(send).unwrap();
    assert!(receiver.recv(&mut packet).is_ok());
    let output = world.try_run(&["queue", "load", "red", "--dev", "lo", "--down", "--rate", "8Mbit"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("lo is no Ethernet device"), "{}", text(&output.stderr));
}

#[test]
fn an_intermediate_device_without_a_pin_goes_with_the_next_list() {
    let Some(world) = World::new() else { return };
    let before = world.near.devices().unwrap();
    // As a loader leaves it that was killed at its first step. Alone on a machine, this finds no folder of pins at all.
    world.near.add_veth("suimon-in99", &world.far, "other").unwrap();
    world.run(&["queue", "list"]);
    assert_eq!(world.near.devices().unwrap(), before);
}

#[test]
fn a_killed_loader_of_what_comes_in_leaves_nothing_or_all_of_it() {
    let Some(world) = World::new() else { return };
    let before = world.near.devices().unwrap();
    for wait in [1, 4, 8, 16, 32, 64, 128] {
        let mut command = suimon();
        command.args(DOWN).stdout(Stdio::null()).stderr(Stdio::null());
        let mut load = world.near.spawn(&mut command).unwrap();
        thread::sleep(Duration::from_millis(wait));
        load.kill().unwrap();
        load.wait().unwrap();
        if world.run(&["queue", "list"]).contains("(into near)") {
            let device = world.stat()["device"].as_str().unwrap().to_owned();
            world.run(&["queue", "unload", &device]);
        }
        assert_eq!(world.near.devices().unwrap(), before, "killed after {wait} ms");
    }
}

#[test]
fn a_hundred_loads_and_a_killed_one_leave_nothing() {
    let Some(world) = World::new() else { return };
    // Other tests, and others on this machine, have programs too.
    let own = world.near.run(|| std::fs::metadata("/proc/thread-self/ns/net").unwrap().ino()).unwrap();
    let programs = || {
        let pins = std::fs::read_dir("/run/suimon/bpf/queue").into_iter().flatten().flatten();
        pins.filter(|pin| pin.file_name().to_string_lossy().starts_with(&format!("{own}-"))).count()
    };
    for _ in 0..100 {
        world.load("red");
        world.run(&["queue", "unload", "near"]);
    }
    assert_eq!(programs(), 0);
    for wait in [1, 5, 10, 20, 40, 80] {
        let mut command = suimon();
        command.args(["queue", "load", "even", "--dev", "near", "--rate", "8Mbit"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut load = world.near.spawn(&mut command).unwrap();
        thread::sleep(Duration::from_millis(wait));
        load.kill().unwrap();
        load.wait().unwrap();
        // Either it works or nothing is there: a policy can be loaded, and packets pass.
        world.run(&["queue", "list"]);
        world.load("red");
        world.send(10);
        assert_eq!(world.stat()["packets"].as_u64(), Some(10));
        world.run(&["queue", "unload", "near"]);
        assert_eq!(programs(), 0, "killed after {wait} ms");
    }
}

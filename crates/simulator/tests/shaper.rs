//! Links whose rate a controller chooses, in front of a bottleneck that keeps flows apart.

use suimon_results::RunResult;
use suimon_scenario::{Capacity, Document};
use suimon_units::{Duration, Rate};

/// Two bulk flows over a shaper and a bottleneck whose rate falls from 8 to 2 Mbit/s and comes back.
fn run(shaper: &str) -> RunResult {
    let text = format!(
        "name = \"shaped\"\nduration = \"30s\"\nwarmup = \"3s\"\n\
         [[link]]\nname = \"access\"\nbetween = [\"host\", \"router\"]\nrate = \"1Gbit\"\ndelay = \"1ms\"\n\
         [[link]]\nname = \"shaper\"\nbetween = [\"router\", \"modem\"]\n{shaper}\nqueue = \"pie\"\nbuffer = \"1MB\"\n\
         [link.reverse]\nrate = \"unlimited\"\n\
         [[link]]\nname = \"line\"\nbetween = [\"modem\", \"net\"]\nrate = \"1bit\"\ndelay = \"19ms\"\n\
         queue = \"fq-codel:target=1000s:interval=1000s\"\nbuffer = \"4MB\"\n[link.reverse]\nrate = \"unlimited\"\n\
         [[flow]]\nname = \"bulk\"\ncount = 2\nfrom = \"host\"\nto = \"net\"\ncc = \"cubic-linux\"\n\
         profile = \"linux-6\"\nwindow = \"4MB\"\nstart = [\"0s\", \"500ms\"]\n\
         [[flow]]\nname = \"probe\"\nfrom = \"router\"\nto = \"net\"\n\
         udp = {{ rate = \"10240bit\", packet = \"64B\", echo = true }}\n"
    );
    let mut run = Document::parse(&text, "shaped.toml").unwrap().runs().unwrap().remove(0);
    let steps = [(0, 8), (10, 2), (20, 8)];
    let steps = steps.map(|(at, mbit)| (Duration::from_secs(at), Rate::from_bps(mbit * 1_000_000)));
    let line = run.scenario.links.iter_mut().find(|link| link.name == "line").unwrap();
    line.capacity = Capacity::Steps { steps: steps.to_vec().into(), period: Duration::from_secs(30) };
    suimon_simulator::run(&run.scenario, &run.labels)
}

fn line(result: &RunResult) -> (f64, Duration) {
    let line = result.queues.iter().find(|queue| queue.name == "line").unwrap();
    (line.utilisation.unwrap(), line.delay_p95)
}

#[test]
fn a_controller_keeps_the_bottleneck_busy_and_its_queue_short_without_a_rate_given() {
    let (use_of_line, wait) = line(&run("rate = \"unlimited\""));
    assert!(use_of_line > 0.99 && wait > Duration::from_secs(1), "{use_of_line} {wait:?}");
    let (use_of_line, wait) = line(&run("shaper = \"autorate\""));
    assert!(use_of_line > 0.95, "{use_of_line}");
    assert!(wait < Duration::from_millis(150), "{wait:?}");
}

#[test]
fn the_same_run_gives_the_same_values_and_its_series_tell_what_the_controller_believes() {
    let [a, b] = [run("shaper = \"autorate\""), run("shaper = \"autorate\"")];
    assert_eq!(format!("{a:?}"), format!("{b:?}"));
    let series = a.queue_series.iter().find(|series| series.subject == "shaper").unwrap();
    let names: Vec<_> = series.columns.iter().map(|column| column.name.as_str()).collect();
    for name in ["shaper_rate_bps", "delivery_bps", "bottleneck_wait_ms"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn probes_that_do_not_wait_tell_cake_autorate_nothing() {
    let settings = "cake-autorate:min=1Mbit:base=4Mbit:max=12Mbit";
    let (_, wait) = line(&run(&format!("shaper = \"{settings}\"")));
    // Ten seconds at 2 Mbit/s, to which the rate does not come down.
    assert!(wait > Duration::from_millis(500), "{wait:?}");
}

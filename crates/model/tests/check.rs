//! What must hold of a scenario, with the messages that readers give.

use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_model::{
    Buffer, Capacity, Flow, Link, Loss, OnOff, Record, Scenario, StackProfile, Start, TcpFlow, Traffic,
    Window,
};
use suimon_scenario::{LinkSpec, ScenarioError, Scheme, drop_tail};
use suimon_units::{Bytes, Duration, Instant, Probability, Rate};

fn scenario() -> Scenario {
    let link = LinkSpec::parse("2Mbit 180ms 96kB").unwrap();
    let Scheme { cc, receiver } = Scheme::parse("reno").unwrap();
    let tcp = TcpFlow {
        cc,
        receiver,
        profile: StackProfile::linux_6(),
        window: Bytes::new(6 << 20),
        size: None,
        application_rate: None,
        on_off: None,
        gateway: None,
    };
    let flow = Flow {
        name: "reno".to_owned(),
        from: "sender".to_owned(),
        to: "receiver".to_owned(),
        via: None,
        start: Start::At(Instant::ZERO),
        stop: None,
        extra_delay: (Duration::ZERO, Duration::ZERO),
        traffic: Traffic::Tcp(Box::new(tcp)),
    };
    Scenario {
        name: "check".to_owned(),
        description: String::new(),
        seed: 1,
        duration: Duration::from_secs(60),
        stop_when_complete: true,
        links: link.links(&drop_tail()).into(),
        flows: vec![flow],
        aggregates: Vec::new(),
        record: Record { interval: Some(Duration::from_millis(100)), ..Record::default() },
    }
}

/// What is said of the scenario after `change`.
fn message(change: impl FnOnce(&mut Scenario)) -> String {
    let mut scenario = scenario();
    assert_eq!(scenario.check(), Ok(()));
    change(&mut scenario);
    ScenarioError::from(scenario.check().unwrap_err()).to_string()
}

fn tcp(scenario: &mut Scenario) -> &mut TcpFlow {
    match &mut scenario.flows[0].traffic {
        Traffic::Tcp(tcp) => tcp,
        Traffic::Udp(_) => unreachable!("the flow is a TCP flow"),
    }
}

#[test]
fn an_estimator_needs_a_series_to_speak_in() {
    let with_estimator = |s: &mut Scenario| {
        s.links[0].estimator = Some(AlgorithmSpec::parse(Role::Estimator, "bursts").unwrap());
    };
    let unreported = message(|s| {
        with_estimator(s);
        s.links[0].reported = false;
    });
    assert!(unreported.ends_with("accepted: reported = true"), "{unreported}");
    let unrecorded = message(|s| {
        with_estimator(s);
        s.record.interval = None;
    });
    assert!(unrecorded.ends_with("accepted: a record_interval other than \"off\""), "{unrecorded}");
}

#[test]
fn times_are_in_order_and_no_longer_than_a_year() {
    let second = Duration::from_secs(1);
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    assert!(message(|s| s.duration = Duration::ZERO).contains("duration: \"0\" is nothing"));
    assert!(message(|s| s.duration = Duration::MAX).contains("at most a year"));
    assert!(message(|s| s.record.warmup = s.duration).contains("warmup"));
    assert!(message(|s| s.record.interval = Some(Duration::from_nanos(1))).contains("samples"));
    assert!(message(|s| s.record.interval = Some(Duration::ZERO)).contains("record_interval"));
    assert!(
        message(|s| s.flows[0].start = Start::At(at(60))).contains("start: \"60 s\" is not before the end")
    );
    assert!(message(|s| s.flows[0].start = Start::Between(at(2), at(1))).contains("two times in order"));
    assert!(
        message(|s| s.flows[0].stop = Some(Instant::ZERO)).contains("stop: \"0 ns\" is not after the start")
    );
    assert!(
        message(|s| tcp(s).on_off = Some(OnOff { on: second, off: Duration::ZERO, reconnect: false }))
            .contains("on_off.off")
    );
    let window = |from, to, sample| {
        let window = Window { name: "w".to_owned(), from: at(from), to: at(to), sample };
        message(|s| s.record.windows = vec![window])
    };
    assert!(window(5, 5, second).contains("window.w.to: \"5 s\" is not after \"from\""));
    assert!(window(5, 61, second).contains("window.w.to: \"61 s\" is after the end"));
    assert!(window(5, 60, Duration::ZERO).contains("window.w.sample"));
    assert!(window(5, 60, Duration::from_nanos(1)).contains("samples"));
    assert!(message(|s| s.links[0].delay = Duration::MAX).contains("link.bottleneck.delay"));
}

#[test]
fn sizes_are_sensible() {
    assert!(message(|s| tcp(s).window = Bytes::new(1_447)).contains("window: \"1.447 kB\" is out of range"));
    assert!(message(|s| tcp(s).window = Bytes::new((1 << 30) + 1)).contains("out of range"));
    assert!(message(|s| tcp(s).size = Some(Bytes::ZERO)).contains("flow.reno.size"));
    assert!(message(|s| tcp(s).profile.mss = Bytes::new(65_535)).contains("stack.mss"));
    assert!(message(|s| tcp(s).profile.initial_window = 0).contains("stack.initial_window"));
    assert!(message(|s| tcp(s).profile.rto_min = Duration::ZERO).contains("stack.rto_min"));
    assert!(message(|s| s.links[0].buffer = Buffer::Packets(0)).contains("more than zero"));
    let text = message(|s| s.links[0].buffer = Buffer::Bytes(Bytes::new(1_499)));
    assert!(
        text.contains("link.bottleneck.buffer: \"1.499 kB\" holds no packet; accepted: at least 1.5 kB"),
        "{text}"
    );
    assert!(
        message(|s| s.links[1].buffer = Buffer::Bytes(Bytes::new(51))).contains("bottleneck-reverse.buffer")
    );
}

#[test]
fn names_are_unique_and_ends_are_connected() {
    assert!(message(|s| s.links.clear()).contains("at least one link"));
    assert!(message(|s| s.flows.clear()).contains("at least one flow"));
    assert!(message(|s| s.flows.push(s.flows[0].clone())).contains("a second flow is called \"reno\""));
    assert!(message(|s| s.links.push(s.links[0].clone())).contains("a second link"));
    assert!(message(|s| s.links[0].to = "sender".to_owned()).contains("both ends"));
    let text = message(|s| s.flows[0].to = "reciever".to_owned());
    assert!(text.contains("no node is called \"reciever\" (did you mean \"receiver\"?)"), "{text}");
    assert!(message(|s| s.flows[0].to = "sender".to_owned()).contains("another node"));
    let text = message(|s| {
        for link in &mut s.links {
            (link.capacity, link.delay) = (Capacity::Rate(Rate::MAX), Duration::ZERO);
        }
    });
    assert!(text.contains("flow.reno.to: \"receiver\" is no time away"), "{text}");
    assert!(message(|s| s.links.truncate(1)).contains("no links lead from \"receiver\" to \"sender\""));
}

#[test]
fn a_route_may_have_many_hops_and_cycles() {
    let mut scenario = scenario();
    let node = |nth: usize| if nth == 0 { "receiver".to_owned() } else { format!("n{nth}") };
    for hop in 0..1_000 {
        for (from, to) in [(hop, hop + 1), (hop + 1, hop)] {
            let name = format!("{from}-{to}");
            scenario.links.push(Link { name, from: node(from), to: node(to), ..scenario.links[0].clone() });
        }
    }
    scenario.flows[0].to = node(1_000);
    assert_eq!(scenario.check(), Ok(()));
    scenario.links[1_500].buffer = Buffer::Bytes(Bytes::new(9));
    assert!(scenario.check().is_err());
}

#[test]
fn lists_of_capacity_made_by_hand_are_checked_too() {
    let ms = Duration::from_millis;
    let steps = |steps: &[(Duration, Rate)]| Capacity::Steps { steps: steps.into(), period: ms(10) };
    let times = |times: &[Duration]| Capacity::Opportunities { times: times.into(), period: ms(10) };
    let rate = Rate::from_bps(1);
    for capacity in [
        times(&[]),
        times(&[ms(2), ms(1)]),
        times(&[ms(11)]),
        steps(&[]),
        steps(&[(ms(0), Rate::ZERO)]),
        steps(&[(ms(1), rate)]),
        steps(&[(ms(0), rate), (ms(0), rate)]),
        steps(&[(ms(0), rate), (ms(10), rate)]),
        Capacity::Rate(Rate::ZERO),
    ] {
        let text = format!("{capacity:?}");
        assert!(message(|s| s.links[0].capacity = capacity).contains("link.bottleneck."), "{text}");
    }
    let mut good = scenario();
    good.links[0].capacity = times(&[ms(1), ms(1), ms(10)]);
    good.links[0].impairments.loss = Loss::Random(Probability::ONE);
    assert_eq!(good.check(), Ok(()));
}

#[test]
fn the_links_of_a_way_come_first_to_last() {
    let mut scenario = scenario();
    let hop =
        |from: &str, to: &str| Link::delaying(format!("{from}-{to}"), from, to, Duration::from_millis(1));
    scenario.links = vec![
        hop("b", "receiver"),
        hop("sender", "a"),
        hop("a", "b"),
        hop("receiver", "b"),
        hop("b", "a"),
        hop("a", "sender"),
    ];
    let names = scenario
        .ways(&scenario.flows[0])
        .map(|way| way.iter().map(|link| link.name.clone()).collect::<Vec<_>>());
    assert_eq!(names[0], ["sender-a", "a-b", "b-receiver"]);
    assert_eq!(names[1], ["receiver-b", "b-a", "a-sender"]);
}

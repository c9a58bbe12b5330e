//! A day of cuts of paths, kills and restarts of both ends, in little time: 40 of them, or as many as `SUIMON_EVENTS` says,
//! shared out among `SUIMON_WORLDS` bonds at once. Whatever happens, no byte is wrong, no part looks like the whole,
//! nobody stays dead, and no device, route or rule is left.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use suimon_algorithms::RandomStream;
use suimon_bond::Fail;
use suimon_emulator::Way;
use suimon_linux::Namespace;
use suimon_testing::{assert_in_time, can_emulate, in_time};

use crate::world::{ENTRY, Running, TARGET, World, pattern};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Cut(usize, Way),
    CutAll,
    KillServer,
    StopServer,
    KillClient,
    StopClient,
    KillBoth,
}

impl Event {
    fn draw(random: &mut RandomStream) -> Self {
        let way = [Way::There, Way::Back, Way::Both][random.below(3) as usize];
        match random.below(9) {
            0..3 => Self::Cut(random.below(2) as usize, way),
            3 => Self::CutAll,
            4 => Self::KillServer,
            5 => Self::StopServer,
            6 => Self::KillClient,
            7 => Self::StopClient,
            _ => Self::KillBoth,
        }
    }

    /// Whether streams outlive it.
    fn is_cut(self) -> bool {
        matches!(self, Self::Cut(..) | Self::CutAll)
    }
}

/// The target of all streams: sends as many bytes as the first eight that it reads say.
fn serve(listener: &TcpListener, over: &AtomicBool) {
    thread::scope(|scope| {
        while let Ok((mut stream, _)) = listener.accept() {
            if over.load(Ordering::Relaxed) {
                return;
            }
            scope.spawn(move || {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                let mut asked = [0; 8];
                stream.read_exact(&mut asked)?;
                stream.write_all(&pattern(0, u64::from_be_bytes(asked) as usize))?;
                stream.shutdown(Shutdown::Write)?;
                // Until the other end has closed, so that nothing is reset that is on its way.
                stream.read(&mut asked).map(drop)
            });
        }
    });
}

/// Asks the target for so many bytes over the bond. A part that looks like the whole, or another byte, ends the test.
fn ask(near: &Namespace, bytes: usize) -> std::io::Result<()> {
    let mut stream = near.run(|| TcpStream::connect(ENTRY)).unwrap()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&(bytes as u64).to_be_bytes())?;
    let mut got = Vec::new();
    let read = stream.read_to_end(&mut got);
    assert!(got == pattern(0, got.len()), "a byte is wrong");
    read?;
    assert_eq!(got.len(), bytes, "a part looks like the whole");
    Ok(())
}

/// Ends the target when dropped, also by a panic.
struct End<'a> {
    far: &'a Namespace,
    over: &'a AtomicBool,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.far.run(|| TcpStream::connect(TARGET));
    }
}

/// What a bond went through.
#[derive(Debug, Default)]
struct Tally {
    events: u64,
    cuts: u64,
    /// Streams that a kill has ended.
    reset: u64,
    late: u64,
    longest: Duration,
}

fn go_through(seed: u64, events: u64) -> Tally {
    let mut random = RandomStream::new(seed, "restarts");
    let mut world = World::new(&["50Mbit 2ms 100packets", "20Mbit 6ms 100packets"]);
    let (near, far) = (world.hosts.near.clone(), world.hosts.far.clone());
    // The clients of this test take all traffic of their host, and none is there yet.
    drop(world.client.take());
    let before = [&near, &far].map(traces);
    world.client = Some(connect(&world));
    assert_ne!([&near, &far].map(traces), before);
    let listener = far.run(|| TcpListener::bind(TARGET)).unwrap().unwrap();
    let over = AtomicBool::new(false);
    let mut tally = Tally::default();
    thread::scope(|scope| {
        scope.spawn(|| serve(&listener, &over));
        let _end = End { far: &far, over: &over };
        for _ in 0..events {
            let event = Event::draw(&mut random);
            let mut pause = |most: u64| thread::sleep(Duration::from_micros(random.below(most * 1_000)));
            let asking = scope.spawn(|| ask(&near, 100_000));
            pause(50);
            bring_about(&mut world, event, || pause(150));
            let back = Instant::now();
            let asked = asking.join().unwrap();
            if event.is_cut() {
                asked.unwrap_or_else(|error| panic!("{event:?} ended a stream: {error}"));
                tally.cuts += 1;
            } else {
                tally.reset += u64::from(asked.is_err());
                while let Err(error) = ask(&near, 2_000) {
                    assert!(back.elapsed() < PATIENCE, "{event:?}: dead for {:?}: {error}", back.elapsed());
                    thread::sleep(Duration::from_millis(10));
                }
                let took = back.elapsed();
                tally.longest = tally.longest.max(took);
                if took > IN_TIME {
                    eprintln!("{event:?}: back after {took:.2?}");
                    tally.late += 1;
                }
            }
            tally.events += 1;
        }
    });
    world.client.take().unwrap().kill();
    world.server.take().unwrap().kill();
    assert_eq!([&near, &far].map(traces), before);
    tally
}

/// A client that takes all traffic of its host.
fn connect(world: &World) -> Running {
    let World { hosts, server_key, client_key, .. } = world;
    let via: Vec<_> = hosts.paths.iter().map(|path| path.device.as_str()).collect();
    let address = hosts.paths[0].far.into();
    Running::tunnel(&hosts.near, client_key, server_key.public(), address, &via, Fail::Open)
}

/// Everything that an end may leave in a namespace: devices, routes of all tables, rules.
fn traces(namespace: &Namespace) -> Vec<String> {
    let list = |words: &[&str]| {
        let output = namespace.run(|| Command::new("ip").args(words).output()).unwrap().unwrap();
        assert!(output.status.success(), "ip {words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let lists = [&["route", "show", "table", "all"][..], &["-6", "route", "show", "table", "all"]];
    let rules = [&["rule"][..], &["-6", "rule"]];
    let routing = lists.into_iter().chain(rules).map(list);
    namespace.devices().unwrap().into_iter().chain(routing).collect()
}

fn bring_about(world: &mut World, event: Event, meanwhile: impl FnOnce()) {
    let serve =
        |world: &World| Running::server(&world.hosts.far, &world.server_key, &[world.client_key.public()]);
    let emulation = &world.hosts.emulation;
    match event {
        Event::Cut(path, way) => {
            emulation.cut(path, way);
            meanwhile();
            emulation.restore(path, way);
        }
        Event::CutAll => {
            (0..2).for_each(|path| emulation.cut(path, Way::Both));
            meanwhile();
            (0..2).for_each(|path| emulation.restore(path, Way::Both));
        }
        Event::KillServer | Event::StopServer => {
            let server = world.server.take().unwrap();
            if event == Event::KillServer {
                server.kill();
            } else {
                drop(server);
            }
            meanwhile();
            world.server = Some(serve(world));
        }
        Event::KillClient | Event::StopClient => {
            let client = world.client.take().unwrap();
            if event == Event::KillClient {
                client.kill();
            } else {
                drop(client);
            }
            meanwhile();
            world.client = Some(connect(world));
        }
        Event::KillBoth => {
            world.server.take().unwrap().kill();
            world.client.take().unwrap().kill();
            meanwhile();
            (world.client, world.server) = (Some(connect(world)), Some(serve(world)));
        }
    }
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("the variable is a number"))
}

/// Descriptors of this process, and its threads.
fn open() -> [usize; 2] {
    ["/proc/self/fd", "/proc/self/task"].map(|folder| std::fs::read_dir(folder).unwrap().count())
}

/// Whoever is not back by then stays dead.
const PATIENCE: Duration = Duration::from_secs(10);
/// New streams work so soon after an end's return.
const IN_TIME: Duration = Duration::from_secs(2);

#[test]
fn a_bond_outlives_any_number_of_cuts_kills_and_restarts() {
    if !can_emulate() {
        return;
    }
    let (events, worlds) = (number("SUIMON_EVENTS", 40), number("SUIMON_WORLDS", 1));
    in_time(|| {
        // A process makes some descriptors once.
        go_through(0, 0);
        let (before, began) = (open(), Instant::now());
        let tallies: Vec<_> = thread::scope(|scope| {
            let started: Vec<_> = (0..worlds)
                .map(|seed| scope.spawn(move || go_through(seed, events.div_ceil(worlds))))
                .collect();
            started.into_iter().map(|world| world.join().unwrap()).collect()
        });
        let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
        let longest = tallies.iter().map(|tally| tally.longest).max().unwrap_or_default();
        let late = sum(|tally| tally.late);
        println!(
            "{} events, {} of them cuts, {} streams reset; back after {:.2} s at most, {late} times after more than 2 s; \
             {:.0} s",
            sum(|tally| tally.events),
            sum(|tally| tally.cuts),
            sum(|tally| tally.reset),
            longest.as_secs_f64(),
            began.elapsed().as_secs_f64()
        );
        // Threads of links end a moment later.
        let ends = Instant::now() + PATIENCE;
        while open() != before && Instant::now() < ends {
            thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(open(), before, "descriptors and threads");
        assert_in_time!(late == 0, "{late} times back after more than {IN_TIME:?}");
    });
}

//! Hostile clients against a server of a bond, one kind after the other, with an honest user beside them: two seconds each,
//! or as many as `SUIMON_ATTACK_S` says. The honest user's requests stay under twice their quiet time, and the server within
//! the memory and the descriptors that docs/bond.md promises. Needs root, for network and mount namespaces.

mod arena;
mod hostile;

use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use suimon_algorithms::RandomStream;
use suimon_bond::frame::Frame;
use suimon_bond::keys::PrivateKey;
use suimon_testing::{assert_in_time, can_emulate, in_time};

use self::arena::{Arena, DESCRIPTORS, FLOODS, MEMORY, SILENT};
use self::hostile::{Hostile, HostileQuic, data, end, head, kind, knock, knock_by_udp, open};

/// One kind of attack: its name, how many do it at once, and one turn of it, which is taken again and again.
struct Attack {
    name: &'static str,
    threads: usize,
    turn: fn(&Arena, &mut RandomStream) -> io::Result<()>,
}

const ATTACKS: [Attack; 18] = [
    Attack { name: "names that nobody answers", threads: 1, turn: slow_names },
    Attack { name: "targets that are none", threads: 1, turn: bad_targets },
    Attack { name: "silent connections of four networks", threads: 4, turn: silent_connections },
    Attack { name: "connections that say one byte", threads: 4, turn: one_byte },
    Attack { name: "no TLS at all", threads: 2, turn: noise },
    Attack { name: "datagrams that are no QUIC", threads: 2, turn: no_quic },
    Attack { name: "handshakes of strangers over QUIC", threads: 4, turn: strangers },
    Attack { name: "sessions that are joined and left", threads: 1, turn: join_and_leave },
    Attack { name: "sessions that are joined and left over QUIC", threads: 1, turn: join_and_leave_by_quic },
    Attack { name: "frames over QUIC that never end", threads: 1, turn: endless_frames },
    Attack { name: "shortest frames with gaps between", threads: 1, turn: pieces },
    Attack { name: "single bytes at every second place of streams", threads: 1, turn: single_bytes },
    Attack { name: "frames that tell nothing new", threads: 1, turn: nothing_new },
    Attack { name: "streams opened and reset", threads: 1, turn: open_and_reset },
    Attack { name: "the last number of a stream again and again", threads: 1, turn: last_number },
    Attack { name: "datagrams from every port", threads: 1, turn: ports },
    Attack { name: "streams to a target that says nothing", threads: 1, turn: descriptors },
    Attack { name: "floods that nobody reads, and metrics", threads: 1, turn: unread },
];

/// A session of its own.
fn join(arena: &Arena, random: &mut RandomStream) -> io::Result<Hostile> {
    join_as(arena, &arena.hostile_key, Ipv4Addr::LOCALHOST, random)
}

fn join_as(
    arena: &Arena,
    key: &PrivateKey,
    from: Ipv4Addr,
    random: &mut RandomStream,
) -> io::Result<Hostile> {
    Hostile::join(arena, key, from, std::array::from_fn(|_| random.below(256) as u8))
}

/// The time until another honest user has joined, who then leaves as one should.
fn join_honestly(arena: &Arena, random: &mut RandomStream) -> io::Result<Duration> {
    let began = Instant::now();
    let mut joined = join_as(arena, &arena.other_key, Ipv4Addr::new(127, 200, 0, 1), random)?;
    let took = began.elapsed();
    joined.send(&Frame::Close)?;
    Ok(took)
}

fn slow_names(arena: &Arena, random: &mut RandomStream) -> io::Result<()> {
    let mut client = join(arena, random)?;
    for round in 0..20_u32 {
        let first = round * 200;
        let opens: Vec<u8> =
            (first..first + 200).flat_map(|id| open(id, format!("slow{id}.example:80").as_bytes())).collect();
        client.stream(&opens)?;
        thread::sleep(Duration::from_millis(100));
        let resets: Vec<u8> =
            (first..first + 200).flat_map(|id| [head(kind::RESET, id), vec![0]].concat()).collect();
        client.stream(&resets)?;
    }
    Ok(())
}

fn bad_targets(arena: &Arena, random: &mut RandomStream) -> io::Result<()> {
    let mut client = join(arena, random)?;
    for id in 0..200_u32 {
        let target: Vec<u8> = (0..random.below(20)).map(|_| random.below(256) as u8).collect();
        client.stream(&open(id, &target))?;
        thread::sleep(Duration::from_millis(2));
    }
    client.stream(&open(1_000, b"a\nb:80"))
}

/// One of four networks, a thread each.
fn a_network() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    Ipv4Addr::new(127, 1, (NEXT.fetch_add(1, Ordering::Relaxed) % 4) as u8, 1)
}

fn hold(arena: &Arena, says: &[u8]) -> io::Result<()> {
    let from = a_network();
    let held: Vec<_> = (0..32)
        .filter_map(|_| {
            let mut stream = knock(arena, from).ok()?;
            stream.write_all(says).ok()?;
            Some(stream)
        })
        .collect();
    thread::sleep(Duration::from_millis(300));
    drop(held);
    Ok(())
}

fn silent_connections(arena: &Arena, _: &mut RandomStream) -> io::Result<()> {
    hold(arena, b"")
}

fn one_byte(arena: &Arena, _: &mut RandomStream) -> io::Result<()> {
    hold(arena, b"\x16")
}

fn noise(arena: &Arena, random: &mut RandomStream) -> io::Result<()> {
    let mut stream = knock(arena, a_network())?;
    let bytes: Vec<u8> = (0..4_000).map(|_| random.below(256) as u8).collect();
    stream.write_all(&bytes)?;
    let _ = stream.read(&mut [0; 100]);
    Ok(())
}

fn join_and_leave(arena: &Arena, random: &mut RandomStream) -> io::Result<()> {
    for _ in 0..20 {
        drop(join(arena, random)?);
    }
    Ok(())
}

/// Packets that seem to begin a connection, to go on with one, to speak another version, and nothing of these.
fn no_quic(arena: &Arena, random: &mut RandomStream) -> io::Result<()> {
    let socket = knock_by_udp(arena, a_network())?;
    for _ in 0..200 {
        let mut bytes: Vec<u8> = (0..1_200).map(|_| random.below(256) as u8).collect();
        match random.below(4) {
            0 => bytes[..6].copy_from_slice(&[0xc3, 0, 0, 0, 1, 8]),
            1 => bytes[0] = 0x43,
            2 => bytes[..5].copy_from_slice(&[0xc3, 1, 2, 3, 4]),
            _ => {}
        }
        socket.send(&bytes)?;
        thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

fn strangers(arena: &Arena, _: &mut RandomStream) -> io::Result<()> {
    let stranger = PrivateKey::generate().map_err(io::Error::other)?;
    match HostileQuic::join(arena, &stranger, a_network(), [7; 16]) {
        Ok(_) => panic!("a stranger has joined"),
        Err(error) => Err(error),
    }
}

fn join_and_leave_by_quic(arena: &Arena, random: &mut RandomStream) -> io::Result<()> {
    for _ in 0..20 {
        let session = std::array::from_fn(|_| random.below(256) as u8);
        drop(HostileQuic::join(arena, &arena.hostile_key, Ipv4Addr::LOCALHOST, session)?);
    }
    Ok(())
}

/// As much as the server gives credit for.
fn endless_frames(arena: &Arena, random: &mut RandomStream) -> io::Result<()> {
    let session = std::array::from_fn(|_| random.below(256) as u8);
    let client = HostileQuic::join(arena, &arena.hostile_key, Ipv4Addr::LOCALHOST, session)?;
    client.begin_frames(2_000, 60_000);
    Ok(())
}

fn pieces(arena: &Arena, random: &mut RandomStream) -> io::Result<()> {
    let mut client = join(arena, random)?;
    for first in (1..8_000_000).step_by(6_500) {
        let mut frames = Vec::new();
        for start in (first..first + 6_500).step_by(5) {
            Frame::Data { start, bytes: &[kind::PACKET, 0, 0, 0] }.encode(&mut frames);
        }
        client.send_all(&frames)?;
        client.drain()?;
    }
    Ok(())
}

fn single_bytes(arena: &Arena, random: &mut RandomStream) -> io::Result<()> {
    let mut client = join(arena, random)?;
    let target = SILENT.to_string();
    for id in 0..1_000_u32 {
        client.stream(&open(id, target.as_bytes()))?;
        for first in (1..64_000_u64).step_by(2_000) {
            let bytes: Vec<_> =
                (first..first + 2_000).step_by(2).flat_map(|place| data(id, place, b"x")).collect();
            client.stream(&bytes)?;
        }
    }
    Ok(())
}

fn nothing_new(arena: &Arena, random: &mut RandomStream) -> io::Result<()> {
    let mut client = join(arena, random)?;
    client.stream(&open(0, SILENT.to_string().as_bytes()))?;
    let frames = [
        &head(kind::BLOCKED, 0)[..],
        &head(kind::OPENED, 0),
        &[kind::PACKET, 1, 0, 0],
        &data(0, 0, b""),
        &head(kind::BLOCKED, 0),
    ]
    .concat();
    for _ in 0..250 {
        client.stream(&frames.repeat(800))?;
    }
    client.stream(&end(0, 0).repeat(2))
}

fn open_and_reset(arena: &Arena, random: &mut RandomStream) -> io::Result<()> {
    let mut client = join(arena, random)?;
    let target = SILENT.to_string();
    for first in (0..100_000_u32).step_by(500) {
        let frames = (first..first + 500)
            .flat_map(|id| [open(id, target.as_bytes()), head(kind::RESET, id), vec![0]].concat());
        client.stream(&frames.collect::<Vec<_>>())?;
    }
    Ok(())
}

fn last_number(arena: &Arena, random: &mut RandomStream) -> io::Result<()> {
    let mut client = join(arena, random)?;
    let opens = open(u32::MAX, SILENT.to_string().as_bytes()).repeat(500);
    for _ in 0..100 {
        client.stream(&opens)?;
    }
    Ok(())
}

fn ports(arena: &Arena, random: &mut RandomStream) -> io::Result<()> {
    let mut client = join(arena, random)?;
    for port in 1_024..3_000_u16 {
        let udp = [&port.to_be_bytes()[..], &9_u16.to_be_bytes(), &[0, 9, 0, 0, b'x']].concat();
        let ip = [0x45, 0, 0, 29, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 127, 0, 0, 1];
        client.stream(&[&[kind::PACKET, 2, 0, 29][..], &ip, &udp].concat())?;
    }
    thread::sleep(Duration::from_millis(500));
    Ok(())
}

fn descriptors(arena: &Arena, random: &mut RandomStream) -> io::Result<()> {
    let mut client = join(arena, random)?;
    let target = SILENT.to_string();
    for id in 0..1_000_u32 {
        client.stream(&open(id, target.as_bytes()))?;
    }
    thread::sleep(Duration::from_millis(500));
    client.drain()
}

fn unread(arena: &Arena, random: &mut RandomStream) -> io::Result<()> {
    let mut client = join(arena, random)?;
    let opens: Vec<u8> = (0..200_u32).flat_map(|id| open(id, FLOODS.to_string().as_bytes())).collect();
    client.send(&Frame::Data { start: 0, bytes: &opens })?;
    // More than are answered at once.
    let _asking: Vec<_> = (0..60).map(|_| arena.metrics()).collect();
    thread::sleep(Duration::from_secs(1));
    Ok(())
}

/// The honest user's time while `attack` goes on, and the most that the server held.
#[derive(Debug)]
struct Beside {
    median: Duration,
    longest: Duration,
    /// The longest time until another honest user has joined.
    join: Duration,
    /// Requests that were not answered, and users that were not let in.
    failed: usize,
    memory: u64,
    descriptors: usize,
    turns: u32,
}

impl Beside {
    /// What holds on any machine does not.
    fn is_broken(&self) -> bool {
        self.failed > 0 || self.turns == 0 || self.memory > MEMORY || self.descriptors >= DESCRIPTORS
    }

    fn is_late(&self, quiet: Duration) -> bool {
        self.median >= 2 * quiet || self.join > JOIN
    }
}

/// The median time of an honest request without an attack.
fn quiet_time(arena: &Arena) -> Duration {
    let mut times: Vec<_> = (0..9).map(|_| arena.request().unwrap()).collect();
    times.sort();
    times[times.len() / 2]
}

fn endure(arena: &Arena, attack: &Attack, length: Duration) -> Beside {
    let (over, turns) = (AtomicBool::new(false), AtomicU32::new(0));
    let (mut random, mut join) = (RandomStream::new(u64::MAX, attack.name), Duration::ZERO);
    let (mut times, mut failed, mut memory, mut descriptors) = (Vec::new(), 0, 0, 0);
    thread::scope(|scope| {
        for thread in 0..attack.threads {
            let (over, turns) = (&over, &turns);
            scope.spawn(move || {
                let mut random = RandomStream::new(thread as u64, attack.name);
                while !over.load(Ordering::Relaxed) {
                    // A server that ends the connection is expected, one that is gone is found out beside.
                    if (attack.turn)(arena, &mut random).is_err() {
                        thread::sleep(Duration::from_millis(5));
                    }
                    turns.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _ends = OnDrop(&over);
        let ends = Instant::now() + length;
        while Instant::now() < ends {
            match arena.request() {
                Ok(time) => times.push(time),
                Err(_) => failed += 1,
            }
            match join_honestly(arena, &mut random) {
                Ok(time) => join = time.max(join),
                Err(_) => failed += 1,
            }
            let (held, open) = arena.server_holds();
            (memory, descriptors) = (held.max(memory), open.max(descriptors));
        }
    });
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or(Duration::MAX);
    let longest = times.last().copied().unwrap_or(Duration::MAX);
    Beside { median, longest, join, failed, memory, descriptors, turns: turns.into_inner() }
}

/// Ends an attack, also by a panic.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn an_honest_user_hardly_notices_any_attack() {
    if !can_emulate() || !is_root() {
        return;
    }
    let seconds =
        std::env::var("SUIMON_ATTACK_S").map_or(2.0, |text| text.parse().expect("a number of seconds"));
    let length = Duration::from_secs_f64(seconds);
    in_time(|| {
        let mut arena = Arena::open();
        let quiet = quiet_time(&arena);
        println!("attack: a quiet request takes {quiet:.0?}");
        let began = Instant::now();
        let (mut broken, mut late) = (Vec::new(), Vec::new());
        for attack in &ATTACKS {
            let (mut quiet, mut beside) = (quiet, endure(&arena, attack, length));
            if !beside.is_broken() && beside.is_late(quiet) {
                // Few requests fit into this time, and other programs may want more of the processors by now than at the quiet time.
                thread::sleep(Duration::from_secs(1));
                quiet = quiet_time(&arena);
                beside = endure(&arena, attack, 3 * length);
            }
            println!(
                "attack: {}: {} turns; an honest request takes {:.0?}, {:.0?} at most, a join {:.0?} at most, {} fail; the server holds {} MB, {} \
                 descriptors",
                attack.name,
                beside.turns,
                beside.median,
                beside.longest,
                beside.join,
                beside.failed,
                beside.memory / 1_000_000,
                beside.descriptors
            );
            let told = arena.ask();
            if beside.is_broken() || told.is_err() {
                broken.push(format!("{}: {beside:?}, {told:?}", attack.name));
                // The next attack meets a server that is whole.
                drop(arena);
                arena = Arena::open();
            } else if beside.is_late(quiet) {
                late.push(format!("{}: beside {quiet:?}: {beside:?}", attack.name));
            }
        }
        println!("attack: {} kinds, {:.0} s", ATTACKS.len(), began.elapsed().as_secs_f64());
        assert!(broken.is_empty(), "{}", broken.join("\n"));
        assert_in_time!(late.is_empty(), "{}", late.join("\n"));
    });
}

/// A user is let in by then.
const JOIN: Duration = Duration::from_secs(1);

/// Mount namespaces of processes take more than a user namespace gives.
fn is_root() -> bool {
    let may = suimon_linux::confined::may_administer_network();
    if !may {
        eprintln!("skipped: the server's list of name servers cannot be replaced without root");
    }
    may
}

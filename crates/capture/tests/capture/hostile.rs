//! Whatever the bytes, a capture is read or refused with file and reason, and memory stays bounded.

use std::io::{self, Read};

use proptest::prelude::*;
use suimon_capture::{Capture, Truth};

use crate::files::{Order, enhanced, interface, pcap, section, whole};

fn study(bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut truth = Truth::new(8);
    let opened = Capture::new("a.pcap", io::Cursor::new(bytes.to_vec()));
    let outcome = opened.and_then(|mut capture| {
        let mut earlier = suimon_units::Instant::ZERO;
        let mut packets = 0;
        while let Some(packet) = capture.next_packet()? {
            packets += 1;
            assert!(packet.time >= earlier && packet.payload <= packet.size);
            earlier = packet.time;
            if let Some(shown) = truth.on_packet(&packet) {
                assert!(shown.rtt().is_none_or(|rtt| rtt >= shown.receiver_side));
            }
        }
        assert_eq!(capture.frames(), packets + capture.skipped().total());
        Ok(())
    });
    if let Err(error) = outcome {
        let message = error.to_string();
        prop_assert!(message.starts_with("a.pcap: ") && message.len() < 300, "{message}");
    }
    Ok(())
}

/// The first packets of a capture of a real link, as pcap or pcapng.
fn real() -> Vec<Vec<u8>> {
    let file = include_bytes!("../data/delayed-acks.pcap");
    let mut frames = Vec::new();
    let mut at = 24;
    while frames.len() < 60 {
        let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let length = number(at + 8) as usize;
        frames.push((
            u64::from(number(at)) * 1_000_000,
            file[at + 16..at + 16 + length].to_vec(),
            number(at + 12),
        ));
        at += 16 + length;
    }
    let mut files = vec![file[..at].to_vec(), pcap(Order::Big, 101, &frames)];
    for order in [Order::Little, Order::Big] {
        let head = [section(order), interface(order, 101, &[(9, vec![6]), (14, vec![0; 8])])].concat();
        let packets = frames.iter().flat_map(|(micros, data, _)| enhanced(order, 0, *micros, data));
        files.push(head.into_iter().chain(packets).collect());
    }
    files
}

/// Files in which bytes were overwritten, cut out, doubled or set to extreme numbers.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let edit = (any::<prop::sample::Index>(), any::<u8>(), 0_usize..24, 0_u8..5);
    (prop::sample::select(real()), prop::collection::vec(edit, 1..12)).prop_map(|(mut bytes, edits)| {
        for (index, byte, length, kind) in edits {
            if bytes.is_empty() {
                break;
            }
            let from = index.index(bytes.len());
            let to = (from + length).min(bytes.len());
            match kind {
                0 => bytes[from] = byte,
                1 => drop(bytes.drain(from..to)),
                2 => bytes[from..to].fill(if byte > 127 { 0xff } else { 0 }),
                3 => bytes.truncate(from),
                _ => {
                    let copy = bytes[from..to].to_vec();
                    bytes.splice(from..from, copy);
                }
            }
        }
        bytes
    })
}

#[test]
fn the_captures_that_are_mutated_are_whole() {
    for file in real() {
        let mut capture = Capture::new("a.pcap", io::Cursor::new(file)).unwrap();
        let mut packets = 0;
        while capture.next_packet().unwrap().is_some() {
            packets += 1;
        }
        assert_eq!((packets + capture.skipped().total(), capture.cut_off()), (60, None));
    }
}

/// Claims a block of 4 GB and goes on for ever.
struct Endless {
    head: io::Cursor<Vec<u8>>,
    given: u64,
}

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.given += into.len() as u64;
        assert!(self.given < 100 << 20, "it should have been refused by now");
        match self.head.read(into)? {
            0 => {
                into.fill(0);
                Ok(into.len())
            }
            length => Ok(length),
        }
    }
}

#[test]
fn a_length_that_fills_memory_is_refused_before() {
    let order = Order::Little;
    let claim = [order.u32(6), order.u32(0xffff_fff0)].concat();
    for head in [
        [section(order), interface(order, 101, &[]), claim].concat(),
        [pcap(order, 101, &[]), vec![0; 8], 0xffff_fff0_u32.to_le_bytes().to_vec()].concat(),
    ] {
        let endless = Endless { head: io::Cursor::new(head), given: 0 };
        let message = Capture::new("-", endless).and_then(|mut c| c.next_packet()).unwrap_err().to_string();
        assert!(message.contains("a length that no capture has"), "{message}");
    }
}

#[test]
fn a_source_that_fails_is_named_with_its_reason() {
    struct Fails;
    impl Read for Fails {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the cable is out"))
        }
    }
    let message = Capture::new("standard input", Fails).err().unwrap().to_string();
    assert_eq!(message, "standard input: cannot read it: the cable is out");
    let head = io::Cursor::new(pcap(Order::Little, 101, &vec![whole(0, &[0; 60]); 2_000]));
    let mut capture = Capture::new("standard input", head.chain(Fails)).unwrap();
    let outcome = std::iter::from_fn(|| capture.next_packet().transpose()).find_map(Result::err);
    let message = outcome.unwrap().to_string();
    assert_eq!(message, "standard input: cannot read it: the cable is out");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn mutated_captures_are_read_or_refused(bytes in mutated()) {
        study(&bytes)?;
    }

    #[test]
    fn bytes_behind_a_header_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        link_type in prop::sample::select(vec![0, 1, 12, 101, 108, 113, 228, 229, 276]),
        ng in any::<bool>(),
    ) {
        let order = Order::Little;
        let mut file = if ng {
            [section(order), interface(order, link_type as u16, &[]), enhanced(order, 0, 1, &bytes)].concat()
        } else {
            pcap(order, link_type, &[whole(0, &bytes)])
        };
        file.extend(&bytes);
        study(&file)?;
        study(&bytes)?;
    }
}

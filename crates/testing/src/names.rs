//! A name server for tests.

use std::net::UdpSocket;
use std::thread;

/// Answers at `socket`, as long as this process lives: with 127.0.0.1 for any name, and never for one that begins with
/// `slow`.
///
/// # Panics
/// On its thread, where a question is none.
pub fn serve_names(socket: UdpSocket) {
    thread::spawn(move || {
        let mut question = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut question) {
            // RFC 1035 §4.1: a head of 12 bytes, the name's labels, type and class.
            let question = &question[..length];
            if question[13..].starts_with(b"slow") {
                continue;
            }
            let name = 12 + question[12..].iter().position(|byte| *byte == 0).expect("a name ends") + 1;
            let is_v4 = question[name..name + 2] == [0, 1];
            let head = [&question[..2], &[0x81, 0x80, 0, 1, 0, u8::from(is_v4), 0, 0, 0, 0]].concat();
            let mut answer = [&head, &question[12..name + 4]].concat();
            if is_v4 {
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
            }
            let _ = socket.send_to(&answer, from);
        }
    });
}

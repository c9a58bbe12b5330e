//! Packets held back until this process has decided (nfnetlink_queue).

use std::io;
use std::sync::Arc;

use netlink_sys::Socket;

use super::message::{Attribute, Message, Received};
use super::open;
use crate::error::{Doing, LinuxError};

/// A queue of packets that rules hold back. Where it is full or its process is gone, packets go on.
#[derive(Debug, Clone)]
pub struct Queue {
    socket: Arc<Socket>,
    number: u16,
}

/// A packet that is held back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The packet's number, for its verdict.
    id: u32,
    /// The number of the device that it came by.
    pub input: u32,
    /// Its beginning: the IP header and what follows it.
    pub packet: Vec<u8>,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on after the chain that held it.
    Accept,
    /// It is thrown away.
    Drop,
    /// It goes through the chain that held it again, with this mark.
    Again(u32),
}

const QUEUE: u16 = 3;
const PACKET: u16 = QUEUE << 8;
const VERDICT: u16 = QUEUE << 8 | 1;
const CONFIGURE: u16 = QUEUE << 8 | 2;
/// NF_REPEAT of linux/netfilter.h.
const REPEAT: u32 = 4;

impl Queue {
    /// Serves the queue of this number in the calling thread's namespace: at most `length` packets wait in it, and of
    /// each `copied` bytes are shown.
    ///
    /// # Errors
    /// Without root's rights, where another process serves it, or where the kernel has no such queues.
    pub fn bind(number: u16, length: u32, copied: u32) -> Result<Self, LinuxError> {
        let doing = format!("serving the netfilter queue {number}");
        let queue = Self { socket: Arc::new(open().doing(&doing)?), number };
        // struct nfqnl_msg_config_cmd: NFQNL_CFG_CMD_BIND. struct nfqnl_msg_config_params: NFQNL_COPY_PACKET.
        let bind = Attribute::bytes(1, &[1, 0, 0, 0]);
        let parameters = Attribute::bytes(2, &[&copied.to_be_bytes()[..], &[2]].concat());
        // NFQA_CFG_F_FAIL_OPEN.
        let (mask, flags) = (Attribute::number(4, 1), Attribute::number(5, 1));
        queue.configure([bind]).doing(&doing)?;
        queue.configure([parameters, Attribute::number(3, length), mask, flags]).doing(&doing)?;
        // Without room for a packet's message the packet goes on, which is no error of this process.
        let _ = queue.socket.as_ref().set_no_enobufs(true);
        Ok(queue)
    }

    fn configure(&self, parts: impl IntoIterator<Item = Attribute>) -> io::Result<()> {
        let message = Message::new(CONFIGURE, libc::NLM_F_ACK as u16, 0, 0, self.number);
        self.socket.send(&parts.into_iter().fold(message, Message::add).finish(), 0)?;
        let (datagram, _) = self.socket.recv_from_full()?;
        match Received::all(&datagram).iter().find_map(Received::error) {
            Some(error) if error != 0 => Err(io::Error::from_raw_os_error(error)),
            _ => Ok(()),
        }
    }

    /// Waits for packets.
    ///
    /// # Errors
    /// The errors are those of `recv(2)`.
    pub fn wait(&self) -> io::Result<Vec<Held>> {
        let (datagram, _) = self.socket.recv_from_full()?;
        Ok(Received::all(&datagram).iter().filter_map(held).collect())
    }

    /// Decides on a packet.
    ///
    /// # Errors
    /// The errors are those of `send(2)`.
    pub fn decide(&self, held: &Held, verdict: Verdict) -> io::Result<()> {
        let (code, mark) = match verdict {
            Verdict::Accept => (libc::NF_ACCEPT as u32, None),
            Verdict::Drop => (libc::NF_DROP as u32, None),
            Verdict::Again(mark) => (REPEAT, Some(mark)),
        };
        let header = [code.to_be_bytes(), held.id.to_be_bytes()].concat();
        let message = Message::new(VERDICT, 0, 0, 0, self.number).add(Attribute::bytes(2, &header));
        let message = mark.into_iter().fold(message, |message, mark| message.add(Attribute::number(3, mark)));
        self.socket.send(&message.finish(), 0).map(drop)
    }
}

fn held(message: &Received<'_>) -> Option<Held> {
    let number = |bytes: &[u8]| bytes.get(..4).map(|word| u32::from_be_bytes(word.try_into().expect("four")));
    let header = (message.kind == PACKET).then(|| message.attribute(1)).flatten()?;
    Some(Held {
        id: number(header)?,
        input: message.attribute(5).and_then(number).unwrap_or_default(),
        packet: message.attribute(10).unwrap_or_default().to_vec(),
    })
}

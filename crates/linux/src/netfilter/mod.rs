//! Netfilter: a table of nftables that belongs to this process, and packets held back until it has decided.
//!
//! The kernel removes the table when the process ends, however it ends (`NFT_TABLE_F_OWNER`, Linux 5.12).

mod message;
mod queue;
mod rules;

use std::fmt;
use std::io;

use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};

use self::message::{Attribute, Message, Received};
use crate::error::{Doing, LinuxError};

pub use self::queue::{Held, Queue, Verdict};
pub use self::rules::{HoldBy, Refusal, Rule};

/// Where a chain sees packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// As they come, before they are routed.
    Prerouting,
    /// As this host sends its own.
    Output,
}

/// A chain.
#[derive(Debug, Clone)]
pub struct Chain {
    /// Its name.
    pub name: &'static str,
    /// Where it sees packets.
    pub hook: Hook,
    /// Chains of lower numbers see packets first: -300 before connections are tracked, -100 as addresses are translated.
    pub priority: i32,
    /// Its rules, in order.
    pub rules: Vec<Rule>,
}

/// A table for IPv4 and IPv6 that is there as long as this.
#[derive(Debug)]
pub struct Table {
    name: &'static str,
    socket: Socket,
}

/// How `nft` writes a table.
#[derive(Debug)]
pub struct AsText<'a>(pub &'a str, pub &'a [Chain]);

impl fmt::Display for AsText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "table inet {} {{\n\tflags owner", self.0)?;
        for chain in self.1 {
            let Chain { name, hook, priority, rules } = chain;
            let hook = if *hook == Hook::Prerouting { "prerouting" } else { "output" };
            writeln!(
                f,
                "\n\tchain {name} {{\n\t\ttype filter hook {hook} priority {priority}; policy accept;"
            )?;
            rules.iter().try_for_each(|rule| writeln!(f, "\t\t{rule}"))?;
            writeln!(f, "\t}}")?;
        }
        writeln!(f, "}}")
    }
}

const NFTABLES: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_TABLE: u16 = NFTABLES << 8;
const NEW_CHAIN: u16 = NFTABLES << 8 | 3;
const NEW_RULE: u16 = NFTABLES << 8 | 6;
const DELETE_RULE: u16 = NFTABLES << 8 | 8;
const INET: u8 = libc::NFPROTO_INET as u8;
const TABLE_OWNER: u32 = 2;

impl Table {
    /// Makes the table of this name with these chains, in the calling thread's namespace, at once or not at all.
    ///
    /// # Errors
    /// Without root's rights, where a table of that name is there, or where the kernel lacks a kind of rule.
    pub fn new(name: &'static str, chains: &[Chain]) -> Result<Self, LinuxError> {
        let create = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
        let append = (libc::NLM_F_CREATE | libc::NLM_F_APPEND) as u16;
        let mut parts =
            vec![(NEW_TABLE, create, vec![Attribute::text(1, name), Attribute::number(2, TABLE_OWNER)])];
        for chain in chains {
            // NF_INET_PRE_ROUTING or NF_INET_LOCAL_OUT, and the priority.
            let number = if chain.hook == Hook::Prerouting { 0 } else { 3 };
            let hook = [Attribute::number(1, number), Attribute::number(2, chain.priority.cast_unsigned())];
            parts.push((
                NEW_CHAIN,
                create,
                vec![
                    Attribute::text(1, name),
                    Attribute::text(3, chain.name),
                    Attribute::nested(4, hook),
                    Attribute::text(7, "filter"),
                ],
            ));
            for rule in &chain.rules {
                let rule = vec![Attribute::text(1, name), Attribute::text(2, chain.name), rule.expressions()];
                parts.push((NEW_RULE, append, rule));
            }
        }
        let doing = format_args!("making the nftables table {name}").to_string();
        let table = Self { name, socket: open().doing(&doing)? };
        table.send(parts).doing(doing)?;
        Ok(table)
    }

    /// Removes the rules of `chain`.
    ///
    /// # Errors
    /// Where the table is gone.
    pub fn clear(&self, chain: &str) -> Result<(), LinuxError> {
        let rules = vec![Attribute::text(1, self.name), Attribute::text(2, chain)];
        self.send(vec![(DELETE_RULE, 0, rules)])
            .doing(format_args!("removing the rules of the chain {chain}"))
    }

    /// Sends changes that the kernel makes all of or none.
    fn send(&self, parts: Vec<(u16, u16, Vec<Attribute>)>) -> io::Result<()> {
        let last = parts.len() as u32;
        let edge = |kind, sequence| Message::new(kind, 0, sequence, 0, NFTABLES).finish();
        let mut batch = edge(BATCH_BEGIN, 0);
        for ((kind, flags, attributes), sequence) in parts.into_iter().zip(1..) {
            // The kernel answers errors, and to the last part also that all is well.
            let answer = if sequence == last { libc::NLM_F_ACK as u16 } else { 0 };
            let message = Message::new(kind, flags | answer, sequence, INET, 0);
            batch.extend(attributes.into_iter().fold(message, Message::add).finish());
        }
        batch.extend(edge(BATCH_END, last + 1));
        self.socket.send(&batch, 0)?;
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            for answer in Received::all(&datagram) {
                match answer.error() {
                    Some(0) if answer.sequence == last => return Ok(()),
                    Some(0) | None => {}
                    Some(error) => return Err(io::Error::from_raw_os_error(error)),
                }
            }
        }
    }
}

fn open() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

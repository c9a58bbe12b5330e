//! Rules of nftables: what each matches and does, for the kernel and as text.

use std::net::{IpAddr, SocketAddr};

use super::message::Attribute;

/// A rule, in the syntax of `nft` and as the kernel takes it.
#[derive(Debug, Clone, Default)]
pub struct Rule {
    words: Vec<String>,
    expressions: Vec<Attribute>,
}

/// Registers of the kernel's interpreter, of 16 bytes each.
const REGISTER: u32 = 1;
const SECOND: u32 = 2;
const VERDICT: u32 = 0;

/// Keys of `enum nft_meta_keys`.
const META_MARK: u32 = 3;
const META_INPUT: u32 = 6;
const META_NFPROTO: u32 = 15;
const META_L4PROTO: u32 = 16;

/// What is done with a connection that a rule refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A TCP reset: nobody listens.
    Reset,
    /// An ICMP message: the host cannot be reached.
    HostUnreachable,
}

/// How the kernel holds packets back: of the two, each lacks in some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldBy {
    /// The statement of nftables (`CONFIG_NFT_QUEUE`).
    Statement,
    /// The target of xtables (`CONFIG_NFT_COMPAT`, `CONFIG_NETFILTER_XT_TARGET_NFQUEUE`).
    Target,
}

impl Rule {
    /// A rule that matches everything and does nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn with(mut self, words: &str, expressions: impl IntoIterator<Item = Attribute>) -> Self {
        self.words.extend((!words.is_empty()).then(|| words.to_owned()));
        self.expressions.extend(expressions);
        self
    }

    /// Of TCP only.
    #[must_use]
    pub fn tcp(self) -> Self {
        self.with("meta l4proto tcp", [load_meta(META_L4PROTO), equals(&[libc::IPPROTO_TCP as u8])])
    }

    /// Of ICMP for IPv4 or for IPv6.
    #[must_use]
    pub fn icmp(self, is_ipv4: bool) -> Self {
        let (word, number) = if is_ipv4 {
            ("icmp", libc::IPPROTO_ICMP as u8)
        } else {
            ("ipv6-icmp", libc::IPPROTO_ICMPV6 as u8)
        };
        self.with(&format!("meta l4proto {word}"), [load_meta(META_L4PROTO), equals(&[number])])
    }

    /// Packets that come by `device`.
    #[must_use]
    pub fn from_device(self, device: &str) -> Self {
        self.with(&format!("iifname \"{device}\""), [load_meta(META_INPUT), equals(&name(device))])
    }

    /// Packets that this host would send on by `device`.
    #[must_use]
    pub fn routed_to(self, device: &str) -> Self {
        // NFTA_FIB_DREG, RESULT (NFT_FIB_RESULT_OIFNAME), FLAGS (NFTA_FIB_F_DADDR).
        let parts = [Attribute::number(1, REGISTER), Attribute::number(2, 2), Attribute::number(3, 2)];
        self.with(
            &format!("fib daddr oifname \"{device}\""),
            [expression("fib", parts), equals(&name(device))],
        )
    }

    /// Packets that a transparent socket of this host takes, which is one that has another host's address; errors of ICMP
    /// are for the socket whose packet they quote.
    #[must_use]
    pub fn of_transparent_socket(self) -> Self {
        let parts = [Attribute::number(1, 0), Attribute::number(2, REGISTER)];
        self.with("socket transparent 1", [expression("socket", parts), equals(&[1])])
    }

    /// Packets with this mark.
    #[must_use]
    pub fn marked(self, mark: u32) -> Self {
        self.with(&format!("meta mark {mark:#010x}"), [load_meta(META_MARK), equals(&mark.to_ne_bytes())])
    }

    /// To this port of TCP.
    #[must_use]
    pub fn to_port(self, port: u16) -> Self {
        self.with(&format!("tcp dport {port}"), [load_tcp(2, 2), equals(&port.to_be_bytes())])
    }

    /// Packets that begin a connection.
    #[must_use]
    pub fn begins(self) -> Self {
        // FIN, SYN, RST and ACK among the flags, of which only SYN is set.
        let (mask, set) = (0x17, 0x02);
        let parts = [
            Attribute::number(1, REGISTER),
            Attribute::number(2, REGISTER),
            Attribute::number(3, 1),
            Attribute::nested(4, [Attribute::bytes(1, &[mask])]),
            Attribute::nested(5, [Attribute::bytes(1, &[0])]),
        ];
        self.with(
            "tcp flags & (fin | syn | rst | ack) == syn",
            [load_tcp(13, 1), expression("bitwise", parts), equals(&[set])],
        )
    }

    /// Gives packets this mark.
    #[must_use]
    pub fn mark(self, mark: u32) -> Self {
        let store = [Attribute::number(2, META_MARK), Attribute::number(3, REGISTER)];
        self.with(
            &format!("meta mark set {mark:#010x}"),
            [immediate(REGISTER, &mark.to_ne_bytes()), expression("meta", store)],
        )
    }

    /// Keeps packets out of the host's list of connections, so that none of its addresses is translated.
    #[must_use]
    pub fn untracked(self) -> Self {
        self.with("notrack", [expression("notrack", [])])
    }

    /// Leads packets to the transparent listener at `address`, of either family only.
    #[must_use]
    pub fn to_listener(self, address: SocketAddr) -> Self {
        let (family, word, octets) = match address.ip() {
            IpAddr::V4(ip) => (libc::NFPROTO_IPV4 as u8, "ip", ip.octets().to_vec()),
            IpAddr::V6(ip) => (libc::NFPROTO_IPV6 as u8, "ip6", ip.octets().to_vec()),
        };
        let tproxy = [
            Attribute::number(1, family.into()),
            Attribute::number(2, REGISTER),
            Attribute::number(3, SECOND),
        ];
        self.with(
            &format!("tproxy {word} to {address}"),
            [
                load_meta(META_NFPROTO),
                equals(&[family]),
                immediate(REGISTER, &octets),
                immediate(SECOND, &address.port().to_be_bytes()),
                expression("tproxy", tproxy),
            ],
        )
    }

    /// Ends the chain for packets, which go on.
    #[must_use]
    pub fn accept(self) -> Self {
        let code = Attribute::nested(2, [Attribute::number(1, libc::NF_ACCEPT as u32)]);
        let data = Attribute::nested(2, [code]);
        self.with("accept", [expression("immediate", [Attribute::number(1, VERDICT), data])])
    }

    /// Refuses packets.
    #[must_use]
    pub fn reject(self, refusal: Refusal) -> Self {
        // NFTA_REJECT_TYPE and NFTA_REJECT_ICMP_CODE.
        let (words, kind, code) = match refusal {
            Refusal::Reset => ("reject with tcp reset", 1, 0),
            Refusal::HostUnreachable => ("reject with icmpx host-unreachable", 2, 2),
        };
        self.with(words, [expression("reject", [Attribute::number(1, kind), Attribute::bytes(2, &[code])])])
    }

    /// Holds packets back in the queue of this number; they go on where nobody serves it.
    #[must_use]
    pub fn hold(self, queue: u16, by: HoldBy) -> Self {
        let part = match by {
            HoldBy::Statement => {
                let parts = [queue, 1, 1].into_iter().zip(1..);
                let parts = parts.map(|(value, kind): (u16, _)| Attribute::bytes(kind, &value.to_be_bytes()));
                expression("queue", parts)
            }
            HoldBy::Target => {
                // `struct xt_NFQ_info_v2`: number, count of queues, bypass.
                let information: Vec<u8> = [queue, 1, 1].iter().flat_map(|word| word.to_ne_bytes()).collect();
                let parts = [
                    Attribute::text(1, "NFQUEUE"),
                    Attribute::number(2, 2),
                    Attribute::bytes(3, &information),
                ];
                expression("target", parts)
            }
        };
        self.with(&format!("queue flags bypass to {queue}"), [part])
    }

    pub(super) fn expressions(&self) -> Attribute {
        Attribute::nested(4, self.expressions.iter().cloned())
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words.join(" "))
    }
}

fn expression(name: &str, parts: impl IntoIterator<Item = Attribute>) -> Attribute {
    Attribute::nested(1, [Attribute::text(1, name), Attribute::nested(2, parts)])
}

fn load_meta(key: u32) -> Attribute {
    expression("meta", [Attribute::number(1, REGISTER), Attribute::number(2, key)])
}

/// Bytes of the TCP header.
fn load_tcp(offset: u32, length: u32) -> Attribute {
    const TRANSPORT: u32 = 2;
    let parts = [REGISTER, TRANSPORT, offset, length];
    expression("payload", parts.iter().zip(1..).map(|(value, kind)| Attribute::number(kind, *value)))
}

fn equals(value: &[u8]) -> Attribute {
    let data = Attribute::nested(3, [Attribute::bytes(1, value)]);
    expression("cmp", [Attribute::number(1, REGISTER), Attribute::number(2, 0), data])
}

fn immediate(register: u32, value: &[u8]) -> Attribute {
    let data = Attribute::nested(2, [Attribute::bytes(1, value)]);
    expression("immediate", [Attribute::number(1, register), data])
}

/// A device's name as the kernel compares it, zeros included (`IFNAMSIZ`).
fn name(device: &str) -> [u8; 16] {
    let mut name = [0; 16];
    let bytes = &device.as_bytes()[..device.len().min(15)];
    name[..bytes.len()].copy_from_slice(bytes);
    name
}

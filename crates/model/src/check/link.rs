//! What must hold of links.

use suimon_algorithms::queue::Buffer;
use suimon_units::Bytes;

use super::{Checked, MAX_PACKET_SIZE, MAX_SIZE, above_zero, bytes, refuse, time};
use crate::capacity::check_capacity;
use crate::link::Link;

pub(super) fn check_link(link: &Link) -> Checked {
    if link.from == link.to {
        return refuse("between", &&link.from, "is both ends", "two nodes that differ");
    }
    time("delay", link.delay)?;
    bytes("overhead", link.overhead, Bytes::ZERO, MAX_PACKET_SIZE)?;
    link.impairments.check()?;
    match link.buffer {
        Buffer::Packets(count) => above_zero("buffer", count == 0)?,
        Buffer::Bytes(size) => bytes("buffer", size, Bytes::new(1), MAX_SIZE)?,
        Buffer::Unbounded => {}
    }
    check_capacity(&link.capacity)
}

//! Addresses of paths. A path behind other paths has addresses out of a block that leads over the outermost of them, so
//! that all hosts of a nest reach each other by routes alone.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The links on the way to a path's near host, from the outermost: its number, and a slot for each one further in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    number: u16,
    slots: Vec<u8>,
}

/// Of an outermost path: of the block that is shared by carriers (RFC 6598), where no home or office network is, from
/// where on Mahimahi takes none of its addresses.
const OUTERMOST: u32 = u32::from_be_bytes([100, 96, 0, 0]);
/// Of paths further in: the block that is reserved (RFC 1112 §4), which Linux routes and nobody else has.
const INNER: u32 = u32::from_be_bytes([240, 0, 0, 0]);
/// Of a unique local prefix (RFC 4193).
const V6: [u16; 3] = [0xfd73, 0x7569, 0x6d6f];
/// How many links may be on the way.
pub(crate) const MAX_DEPTH: usize = 4;
/// How many slots a path has for paths behind it, from the outermost, and where its bits begin in an address. The last
/// slot of all stays free: the highest address is everybody's. Slots further in begin at 1, since the path's own
/// addresses are at 0.
const SLOTS: [(u8, u32); MAX_DEPTH - 1] = [(15, 8), (15, 4), (3, 2)];
/// Where the bits of the number begin in an inner address.
const NUMBER_SHIFT: u32 = 12;
/// Bits of the whole prefix of all paths behind one, from the outermost.
const BLOCK_PREFIX: [u8; MAX_DEPTH - 1] = [20, 24, 28];

impl Place {
    pub(crate) fn outermost(number: u16) -> Self {
        Self { number, slots: Vec::new() }
    }

    /// That of the path whose near host has `address`.
    pub(crate) fn of_near(address: IpAddr) -> Option<Self> {
        let IpAddr::V4(address) = address else { return None };
        let bits = u32::from(address);
        if bits & 3 != 2 {
            return None;
        }
        if let Ok(number) = u16::try_from(bits.wrapping_sub(OUTERMOST) >> 2) {
            return Some(Self::outermost(number));
        }
        let inner = bits.checked_sub(INNER)?;
        let mut slots = vec![(inner >> SLOTS[0].1) as u8 & 15];
        slots.extend(
            SLOTS[1..].iter().map(|(most, shift)| (inner >> shift) as u8 & most).take_while(|slot| *slot > 0),
        );
        Some(Self { number: (inner >> NUMBER_SHIFT) as u16, slots })
    }

    /// Those of paths behind this one; none where too many are on the way already.
    pub(crate) fn behind(&self) -> Vec<Self> {
        let Some((most, _)) = SLOTS.get(self.slots.len()) else { return Vec::new() };
        let first = u8::from(!self.slots.is_empty());
        let place = |slot| Self { number: self.number, slots: [&self.slots[..], &[slot]].concat() };
        (first..first + most).map(place).collect()
    }

    fn v4(&self) -> u32 {
        if self.slots.is_empty() {
            return OUTERMOST + 4 * u32::from(self.number);
        }
        let bits = self.slots.iter().zip(SLOTS).map(|(slot, (_, shift))| u32::from(*slot) << shift);
        INNER + (u32::from(self.number) << NUMBER_SHIFT) + bits.sum::<u32>()
    }

    /// The near host's address, or the far host's.
    pub(crate) fn address(&self, is_near: bool) -> Ipv4Addr {
        Ipv4Addr::from(self.v4() + 1 + u32::from(is_near))
    }

    /// The same of IPv6.
    pub(crate) fn address_v6(&self, is_near: bool) -> Ipv6Addr {
        let mut groups = [V6[0], V6[1], V6[2], self.number, 0, 0, 0, 1 + u16::from(is_near)];
        for (group, (nth, slot)) in groups[4..].iter_mut().zip(self.slots.iter().enumerate()) {
            *group = u16::from(*slot) + u16::from(nth == 0);
        }
        Ipv6Addr::from(groups)
    }

    /// The length of the prefix that both ends have in IPv6, and all paths behind this one.
    pub(crate) fn prefix_v6(&self) -> u8 {
        64 + 16 * self.slots.len() as u8
    }

    /// The block of all paths behind this one, with its prefix.
    pub(crate) fn block(&self) -> Option<(IpAddr, u8)> {
        let prefix = *BLOCK_PREFIX.get(self.slots.len())?;
        let first = match self.slots[..] {
            [] => INNER + (u32::from(self.number) << NUMBER_SHIFT),
            _ => self.v4(),
        };
        Some((Ipv4Addr::from(first).into(), prefix))
    }

    /// The outermost path on the way.
    pub(crate) fn root(&self) -> Self {
        Self::outermost(self.number)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn holds((first, prefix): (IpAddr, u8), address: Ipv4Addr) -> bool {
        let IpAddr::V4(first) = first else { unreachable!("blocks are of IPv4") };
        (u32::from(first) ^ u32::from(address)) >> (32 - prefix) == 0
    }

    #[test]
    fn all_places_of_a_nest_have_addresses_of_their_own_in_the_blocks_on_their_way() {
        for number in [0, 7, u16::MAX] {
            let root = Place::outermost(number);
            let mut nest = vec![root.clone()];
            let mut at = 0;
            while let Some(place) = nest.get(at).cloned() {
                assert_eq!(Place::of_near(place.address(true).into()).as_ref(), Some(&place));
                assert_eq!(Place::of_near(place.address(false).into()), None);
                assert!(
                    place.behind().iter().all(|inner| holds(place.block().unwrap(), inner.address(true)))
                );
                nest.extend(place.behind());
                at += 1;
            }
            assert_eq!(nest.len(), 1 + 15 + 15 * 15 + 15 * 15 * 3);
            let v4: BTreeSet<_> = nest.iter().map(|place| place.address(true)).collect();
            let v6: BTreeSet<_> = nest.iter().map(|place| place.address_v6(true)).collect();
            assert_eq!((v4.len(), v6.len()), (nest.len(), nest.len()));
            assert!(!v4.contains(&Ipv4Addr::BROADCAST));
            assert!(nest[300].root() == root && nest[300].block().is_none());
        }
    }

    #[test]
    fn other_addresses_are_no_places() {
        for address in ["192.168.0.2", "100.95.0.2", "100.100.0.2", "fd73:7569:6d6f::2"] {
            assert_eq!(Place::of_near(address.parse().unwrap()), None, "{address}");
        }
    }
}

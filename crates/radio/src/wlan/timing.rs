//! How long frames and the spaces between them take.

use strum::VariantArray;
use suimon_units::{Bytes, Duration, Rate};

use super::Parameters;

/// MAC header and frame check sequence of a data frame (IEEE 802.11-1999, 7.1.2 and 7.2.2), in bytes.
const DATA_OVERHEAD: Bytes = Bytes::new(28);
/// An acknowledgement (7.2.1.3), in bytes.
const ACKNOWLEDGEMENT: Bytes = Bytes::new(14);

/// A physical layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub enum Standard {
    /// 802.11a: OFDM at 5 GHz.
    A,
    /// 802.11b: DSSS and CCK at 2.4 GHz.
    B,
    /// 802.11g: OFDM at 2.4 GHz, without stations of 802.11b.
    G,
}

/// The preamble of a frame of 802.11b.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preamble {
    /// 192 us with the header.
    Long,
    /// 96 us.
    Short,
}

const OFDM_MBIT: [u64; 8] = [6, 9, 12, 18, 24, 36, 48, 54];

impl Standard {
    /// Every standard.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// As scenarios write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A => "802.11a",
            Self::B => "802.11b",
            Self::G => "802.11g",
        }
    }

    /// The rates that it has.
    #[must_use]
    pub fn rates(self) -> Vec<Rate> {
        match self {
            Self::A | Self::G => OFDM_MBIT.iter().map(|mbit| Rate::from_bps(mbit * 1_000_000)).collect(),
            Self::B => [1_000_000, 2_000_000, 5_500_000, 11_000_000].map(Rate::from_bps).to_vec(),
        }
    }

    /// Rate of acknowledgements: of OFDM's mandatory rates the highest that is not above `rate` (IEEE
    /// 802.11-1999, 9.6); 1 Mbit/s in 802.11b.
    #[must_use]
    pub fn control_rate(self, rate: Rate) -> Rate {
        let mandatory = [24, 12, 6].map(|mbit| Rate::from_bps(mbit * 1_000_000));
        match self {
            Self::A | Self::G => mandatory.into_iter().find(|basic| *basic <= rate).unwrap_or(mandatory[2]),
            Self::B => Rate::from_bps(1_000_000),
        }
    }

    pub(super) fn slot(self) -> Duration {
        Duration::from_micros(if self == Self::B { 20 } else { 9 })
    }

    pub(super) fn sifs(self) -> Duration {
        Duration::from_micros(if self == Self::A { 16 } else { 10 })
    }

    pub(super) fn turnaround(self) -> Duration {
        Duration::from_micros(if self == Self::B { 5 } else { 2 })
    }

    pub(super) fn cw_min(self) -> u32 {
        if self == Self::B { 31 } else { 15 }
    }
}

impl Parameters {
    /// DCF interframe space: SIFS and two slots.
    #[must_use]
    pub fn difs(&self) -> Duration {
        self.sifs + self.slot * 2
    }

    /// Extended interframe space, after a frame that no station could read: room for the acknowledgement that another
    /// station may be sending at the lowest rate (9.2.10).
    #[must_use]
    pub fn eifs(&self) -> Duration {
        self.sifs + self.frame(ACKNOWLEDGEMENT, self.standard.rates()[0]) + self.difs()
    }

    /// How long a station waits for an acknowledgement.
    #[must_use]
    pub fn ack_timeout(&self) -> Duration {
        self.sifs + self.acknowledgement() + self.slot
    }

    /// A frame with a packet of `size`.
    #[must_use]
    pub fn data(&self, size: Bytes) -> Duration {
        self.frame(size + DATA_OVERHEAD, self.rate)
    }

    /// An acknowledgement.
    #[must_use]
    pub fn acknowledgement(&self) -> Duration {
        self.frame(ACKNOWLEDGEMENT, self.control_rate)
    }

    /// A frame of `size` bytes of the MAC layer at `rate`.
    fn frame(&self, size: Bytes, rate: Rate) -> Duration {
        let micros = Duration::from_micros;
        match self.standard {
            Standard::B => {
                let preamble = if self.preamble == Preamble::Long { 192 } else { 96 };
                // Rounded up to a microsecond (15.2.3.5).
                micros(preamble + rate.transmission_time(size).as_nanos().div_ceil(1_000))
            }
            Standard::A | Standard::G => {
                // Service and tail are 22 bits beside the frame's; a symbol of 4 us carries rate x 4 us (17.3.2).
                let bits_a_symbol = (rate.as_bps() * 4 / 1_000_000).max(1);
                let symbols = (22 + 8 * size.get()).div_ceil(bits_a_symbol);
                // 802.11g adds 6 us of silence, which a 2.4 GHz receiver counts to the frame (19.3.2.3).
                let extension = if self.standard == Standard::G { 6 } else { 0 };
                micros(20 + 4 * symbols + extension)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn medium(standard: Standard, kbit: u64) -> Parameters {
        Parameters::new(standard, Rate::from_bps(kbit * 1_000))
    }

    fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn frames_take_what_was_computed_by_hand() {
        // 580 bytes: 22 + 4640 bits in symbols of 24 are 195 symbols; 2512 us are 192 + 4640 / 2.
        let a = medium(Standard::A, 6_000);
        assert_eq!([552, 40].map(|size| a.data(Bytes::new(size))), [us(800), us(116)]);
        assert_eq!((a.acknowledgement(), a.difs(), a.ack_timeout()), (us(44), us(34), us(69)));
        let b = medium(Standard::B, 2_000);
        assert_eq!([552, 40].map(|size| b.data(Bytes::new(size))), [us(2_512), us(464)]);
        assert_eq!((b.acknowledgement(), b.difs(), b.eifs()), (us(304), us(50), us(364)));
        // 1528 bytes at 11 Mbit/s: 1111.3 us.
        let fast = Parameters { preamble: Preamble::Short, ..medium(Standard::B, 11_000) };
        assert_eq!(fast.data(Bytes::new(1_500)), us(96 + 1_112));
        // 1528 bytes at 54 Mbit/s: 12246 bits in 57 symbols of 216.
        let g = medium(Standard::G, 54_000);
        assert_eq!(g.data(Bytes::new(1_500)), us(20 + 4 * 57 + 6));
        assert_eq!(g.acknowledgement(), us(20 + 4 * 2 + 6), "at 24 Mbit/s");
    }

    #[test]
    fn acknowledgements_keep_to_mandatory_rates() {
        let control =
            |mbit: u64| Standard::A.control_rate(Rate::from_bps(mbit * 1_000_000)).as_bps() / 1_000_000;
        assert_eq!([6, 9, 12, 18, 24, 36, 54].map(control), [6, 6, 12, 12, 24, 24, 24]);
    }
}

//! The size of segments (Hoshihara, Koga, Watanabe: A New AQM Algorithm Exploiting Passive RTT
//! Estimation, §3.3).

use suimon_units::Bytes;

use crate::random::RandomStream;

/// The mean segment size with its headers, `MSS + IH`: a moving average over packets drawn at random.
///
/// The paper's equations use the sum of the two alone, so it is taken from the packet's size as it stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct SegmentSize(Option<f64>);

impl SegmentSize {
    /// A packet of `size` passes.
    pub fn on_packet(&mut self, size: Bytes, random: &mut RandomStream) {
        let size = size.as_f64();
        match &mut self.0 {
            None => self.0 = Some(size),
            // Eq. 15.
            Some(mean) if random.below(DRAWN) == 0 => *mean = 0.9 * *mean + 0.1 * size,
            Some(_) => {}
        }
    }

    /// The mean, in bytes; that of a full Ethernet frame before the first packet.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.0.unwrap_or(1_500.0)
    }
}

/// One packet in this many is drawn; the paper gives no number.
const DRAWN: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_packet_is_the_mean_and_then_a_drawn_one_weighs_a_tenth() {
        let mut random = RandomStream::new(1, "sizes");
        let mut mean = SegmentSize::default();
        mean.on_packet(Bytes::new(1_000), &mut random);
        assert_eq!(mean.bytes(), 1_000.0);
        let drawn = (0..1_000).filter(|_| {
            let before = mean.bytes();
            mean.on_packet(Bytes::new(40), &mut random);
            assert!(mean.bytes() == before || mean.bytes() == 0.9 * before + 4.0);
            mean.bytes() != before
        });
        // One in ten of 1 000, five standard deviations.
        assert!((53..147).contains(&drawn.count()));
    }

    #[test]
    fn a_mixture_gives_its_mean() {
        let mut random = RandomStream::new(1, "sizes");
        let mut mean = SegmentSize::default();
        let mut sum = 0.0;
        for packet in 0..100_000 {
            mean.on_packet(Bytes::new(if packet % 4 == 0 { 40 } else { 1_540 }), &mut random);
            sum += mean.bytes();
        }
        assert!((sum / 1e5 / 1_165.0 - 1.0).abs() < 0.03, "{}", sum / 1e5);
    }
}

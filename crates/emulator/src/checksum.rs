//! The Internet checksum (RFC 1071) and its update when covered bytes change (RFC 1624).

/// The one's complement sum of `bytes` as 16-bit words, an odd last byte padded with zero (RFC 1071 §1), on top of
/// `start`.
pub(crate) fn sum(bytes: &[u8], start: u16) -> u16 {
    // Words of 32 bits sum to the same, folded in the end; their order of bytes does not matter until then
    // (RFC 1071 §2 B, C).
    let mut words = bytes.chunks_exact(4);
    let mut sum: u64 =
        words.by_ref().map(|word| u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))).sum();
    let mut last = [0; 4];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    sum += u64::from(u32::from_ne_bytes(last));
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    add(u16::from_be(sum as u16), start)
}

/// One's complement addition.
pub(crate) fn add(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u16::from(carry)
}

/// `checksum` after a covered word `was` becomes `is` (RFC 1624 §3, eqn. 3).
pub(crate) fn updated(checksum: u16, was: u16, is: u16) -> u16 {
    !add(add(!checksum, !was), is)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_rfc_1071_sums_up() {
        // RFC 1071 §3.
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7], 0), 0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624_updates() {
        // RFC 1624 §4: checksum 0xdd2f, a word 0x5555 becomes 0x3285.
        assert_eq!(updated(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        #[test]
        fn an_updated_checksum_is_that_of_the_new_words(
            mut words in proptest::collection::vec(any::<u16>(), 2..40), place in any::<proptest::sample::Index>(), new: u16
        ) {
            let bytes = |words: &[u16]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
            let place = place.index(words.len());
            let before = !sum(&bytes(&words), 0);
            let was = std::mem::replace(&mut words[place], new);
            let verified = sum(&bytes(&words), updated(before, was, new));
            // A receiver sees 0xffff for a right checksum; of no words but zeros, zero is one too.
            prop_assert!(verified == 0xffff || words.iter().all(|word| *word == 0), "{verified:#x}");
        }

        #[test]
        fn sums_of_parts_are_the_sum_of_the_whole(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0_usize..100) {
            let cut = (2 * cut).min(bytes.len() / 2 * 2);
            prop_assert_eq!(sum(&bytes[cut..], sum(&bytes[..cut], 0)), sum(&bytes, 0));
        }
    }
}

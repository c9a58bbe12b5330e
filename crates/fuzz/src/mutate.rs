//! Changes of inputs.

use suimon_algorithms::RandomStream;

/// Changes made to one input at most.
const MAX_CHANGES: u64 = 8;
/// Longer inputs are cut, as they take time and find nothing that shorter ones do not.
const MAX_LENGTH: usize = 8_192;
/// Numbers at which counters and lengths turn over.
const NUMBERS: [u64; 12] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 62, u64::MAX / 2, u64::MAX];

/// One of `seeds`, or the beginning of one and the end of another, with a few changes.
pub(crate) fn mutated(random: &mut RandomStream, seeds: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut input = part(random, seeds);
    if random.below(4) == 0 {
        let other = part(random, seeds);
        let (from, at) = (place(random, &other), place(random, &input));
        input.truncate(at);
        input.extend_from_slice(&other[from..]);
    }
    for _ in 0..random.below(MAX_CHANGES) + 1 {
        change(random, &mut input, words);
    }
    input.truncate(MAX_LENGTH);
    input
}

/// A piece of one of `seeds`, mostly its beginning.
fn part(random: &mut RandomStream, seeds: &[Vec<u8>]) -> Vec<u8> {
    let seed = &seeds[random.below(seeds.len() as u64) as usize];
    let from = if random.below(8) == 0 { place(random, seed) } else { 0 };
    seed[from..seed.len().min(from + MAX_LENGTH)].to_vec()
}

fn place(random: &mut RandomStream, bytes: &[u8]) -> usize {
    random.below(bytes.len() as u64 + 1) as usize
}

fn change(random: &mut RandomStream, input: &mut Vec<u8>, words: &[&str]) {
    let at = place(random, input);
    let end = at + random.below((input.len() - at).min(64) as u64 + 1) as usize;
    match random.below(9) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 if at < input.len() => input[at] = random.below(256) as u8,
        2 => drop(input.drain(at..end)),
        3 => {
            let again = input[at..end].to_vec();
            input.splice(at..at, again);
        }
        4 => {
            let number = NUMBERS[random.below(NUMBERS.len() as u64) as usize];
            let width = 1 << random.below(4);
            put(input, at, &number.to_be_bytes()[8 - width..]);
        }
        5 if !words.is_empty() => {
            let word = words[random.below(words.len() as u64) as usize];
            input.splice(at..end, word.bytes());
        }
        6 => {
            let number = NUMBERS[random.below(NUMBERS.len() as u64) as usize];
            input.splice(at..end, number.to_string().into_bytes());
        }
        7 => input.truncate(at),
        _ => {
            let bytes: Vec<u8> = (0..random.below(16)).map(|_| random.below(256) as u8).collect();
            input.splice(at..at, bytes);
        }
    }
}

fn put(input: &mut [u8], at: usize, bytes: &[u8]) {
    let end = input.len().min(at + bytes.len());
    input[at..end].copy_from_slice(&bytes[..end - at]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_follow_from_the_seed_and_differ() {
        let seeds = [b"a seed of a few bytes".to_vec(), b"another one".to_vec()];
        let inputs = |seed| {
            let mut random = RandomStream::new(seed, "test");
            (0..100).map(|_| mutated(&mut random, &seeds, &["word"])).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
        let distinct: std::collections::HashSet<_> = inputs(1).into_iter().collect();
        assert!(distinct.len() > 90, "{}", distinct.len());
    }
}

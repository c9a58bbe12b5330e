//! Rounding without the standard library, whose `f64::round` is not in `core`.

/// The nearest whole number, halves up: `value.round() as u64`, so zero for what is negative or undefined.
pub(crate) fn nearest(value: f64) -> u64 {
    // The cast cuts towards zero and saturates. The part cut off is exact: above 2^53 it is zero.
    let whole = value as u64;
    whole.saturating_add(u64::from(value - whole as f64 >= 0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_as_the_standard_library_does() {
        let below_half = 0.5_f64.next_down();
        let wide = 2_f64.powi(52);
        let values =
            [0.0, below_half, 0.5, 1.5, 2.5, 1e9 + 0.5, wide - 0.5, wide + 1.0, wide * 2.0 + 2.0, 1e19];
        let edges = [1.8e19, 2_f64.powi(64), 1e300, f64::INFINITY, f64::NAN];
        for value in values.into_iter().chain(edges) {
            assert_eq!(nearest(value), value.round() as u64, "{value}");
            assert_eq!(nearest(-value), 0, "-{value}");
        }
        for step in 0..100_000_u64 {
            let value = step as f64 * 0.1 + 1e-7 * step as f64 * step as f64;
            assert_eq!(nearest(value), value.round() as u64, "{value}");
        }
    }
}

//! Fewer points for the eye, with the extremes kept.

/// Points of a curve: time and value; a value that is not a number is a gap.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Points {
    pub(crate) times: Vec<f64>,
    pub(crate) values: Vec<f64>,
}

/// At most `limit` of the points: of each stretch of equally many samples the smallest and the
/// largest, so that no peak of a queue and no outage is lost. A stretch without any value stays a gap.
pub(crate) fn downsample(points: &Points, limit: usize) -> Points {
    let count = points.values.len();
    if count <= limit {
        return points.clone();
    }
    let buckets = (limit / 2).max(1);
    let mut kept = Points::default();
    for bucket in 0..buckets {
        let range = bucket * count / buckets..(bucket + 1) * count / buckets;
        let (mut low, mut high) = (None, None);
        for index in range.clone().filter(|index| !points.values[*index].is_nan()) {
            let value = points.values[index];
            if low.is_none_or(|low: usize| value < points.values[low]) {
                low = Some(index);
            }
            if high.is_none_or(|high: usize| value > points.values[high]) {
                high = Some(index);
            }
        }
        let mut keep = |index: usize| {
            kept.times.push(points.times[index]);
            kept.values.push(points.values[index]);
        };
        match low.zip(high) {
            None => keep(range.start),
            Some((low, high)) if low == high => keep(low),
            Some((low, high)) => {
                keep(low.min(high));
                keep(low.max(high));
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: Vec<f64>) -> Points {
        Points { times: (0..values.len()).map(|i| i as f64).collect(), values }
    }

    #[test]
    fn few_points_stay_as_they_are() {
        let few = points(vec![3.0, 1.0, 2.0]);
        assert_eq!(downsample(&few, 3), few);
    }

    #[test]
    fn the_extremes_survive_in_order_and_the_limit_holds() {
        let mut values: Vec<f64> = (0..10_000).map(|i| f64::from(i % 7)).collect();
        values[1_234] = 99.0;
        values[8_765] = -5.0;
        let kept = downsample(&points(values), 100);
        assert!(kept.values.len() <= 100, "{}", kept.values.len());
        assert!(kept.times.is_sorted());
        let position = |value| kept.values.iter().position(|kept| *kept == value).unwrap();
        assert_eq!(kept.times[position(99.0)], 1_234.0);
        assert_eq!(kept.times[position(-5.0)], 8_765.0);
    }

    #[test]
    fn a_stretch_without_values_stays_a_gap() {
        let values = (0..1_000).map(|i| if (400..600).contains(&i) { f64::NAN } else { 1.0 }).collect();
        let kept = downsample(&points(values), 20);
        let gap: Vec<f64> = kept
            .times
            .iter()
            .zip(&kept.values)
            .filter(|(_, value)| value.is_nan())
            .map(|(t, _)| *t)
            .collect();
        assert_eq!(gap, [400.0, 500.0]);
    }
}

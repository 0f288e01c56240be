//! Where labels stand so that none lies over another.

/// Moves heights as little as can be until each is at least `gap` from the next, all within `low..=high` if they fit.
/// The order of the heights is kept; they are answered in the order in which they were given.
pub fn apart(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&one, &other| wanted[one].total_cmp(&wanted[other]));
    // Less the gaps before it, each height must only not be above the one before: neighbours that are share their mean
    // (isotonic regression by pooling adjacent violators).
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (place, &index) in order.iter().enumerate() {
        let (mut mean, mut count) = (wanted[index] - place as f64 * gap, 1);
        while let Some((before, with)) = pools.pop_if(|(before, _)| *before > mean) {
            mean = (mean * count as f64 + before * with as f64) / (count + with) as f64;
            count += with;
        }
        pools.push((mean, count));
    }
    let most = (high - wanted.len().saturating_sub(1) as f64 * gap).max(low);
    let means = pools.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean.clamp(low, most), count));
    let mut heights = vec![0.0; wanted.len()];
    for ((place, index), mean) in order.into_iter().enumerate().zip(means) {
        heights[index] = mean + place as f64 * gap;
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn labels_that_are_in_nobodys_way_stay() {
        assert_eq!(apart(&[70.0, 10.0, 40.0], 14.0, 0.0, 100.0), [70.0, 10.0, 40.0]);
        assert_eq!(apart(&[50.0, 50.0, 50.0], 10.0, 0.0, 100.0), [40.0, 50.0, 60.0]);
        assert_eq!(apart(&[98.0, 99.0], 10.0, 0.0, 100.0), [90.0, 100.0]);
        assert_eq!(apart(&[], 10.0, 0.0, 100.0), [0.0; 0]);
    }

    proptest! {
        #[test]
        fn none_lies_over_another(wanted in prop::collection::vec(0.0..300.0f64, 0..20)) {
            let heights = apart(&wanted, 15.0, 0.0, 300.0);
            for (index, height) in heights.iter().enumerate() {
                prop_assert!((-1e-6..=300.0 + 1e-6).contains(height), "{height}");
                for (other, beside) in heights[..index].iter().enumerate() {
                    prop_assert!((height - beside).abs() > 15.0 - 1e-6, "{height} {beside}");
                    let kept = (wanted[index] - wanted[other]) * (height - beside) >= 0.0;
                    prop_assert!(kept, "the order is kept");
                }
            }
        }
    }
}

//! Which pages are asked for once the records of `fans` are built: half of them popular, half of them rare.

use crate::draw::{Rng, mix};

/// So that what is drawn here has nothing to do with the data that the same seed has made.
const QUERIES: u64 = 0x7175_6572_6965_7321;
/// Popular are the pages that are among the first of so many by their fans.
const POPULAR_ONE_IN: usize = 10;

/// So many of the pages of `ranked`, which has the pages with the most fans first: each at most once, in the order in
/// which they are asked for. Half of them are drawn from the first tenth, or from as many as it takes; the others from
/// the last half.
pub fn drawn(mut ranked: Vec<usize>, queries: usize, seed: u64) -> Vec<usize> {
    let mut random = Rng::new(mix(seed ^ QUERIES));
    let (popular, rare) = (queries.div_ceil(2), queries / 2);
    let first = ranked.len().div_ceil(POPULAR_ONE_IN).max(popular);
    let mut last = ranked.split_off(ranked.len() - ranked.len() / 2);
    ranked.truncate(first);
    shuffle(&mut ranked, popular, &mut random);
    shuffle(&mut last, rare, &mut random);
    let mut drawn = [&ranked[..popular], &last[..rare]].concat();
    shuffle(&mut drawn, queries, &mut random);
    drawn
}

/// Fisher and Yates' shuffle, of the first `count` places.
fn shuffle(list: &mut [usize], count: usize, random: &mut Rng) {
    for place in 0..count {
        let left = (list.len() - place) as u128;
        let other = place + ((u128::from(random.draw()) * left) >> 64) as usize;
        list.swap(place, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_are_popular_and_half_are_rare_and_none_comes_twice() {
        for pages in [1, 2, 3, 10, 11, 1000] {
            for queries in [1, 2, 3, 7, 10, 500, 999, 1000].into_iter().filter(|queries| *queries <= pages) {
                let drawn = drawn((0..pages).collect(), queries, 3);
                let mut each = drawn.clone();
                each.sort_unstable();
                each.dedup();
                assert_eq!((drawn.len(), each.len()), (queries, queries), "{queries} of {pages}");
                let first = pages.div_ceil(10).max(queries.div_ceil(2));
                let popular = each.iter().filter(|page| **page < first).count();
                let rare = each.iter().filter(|page| **page >= pages - pages / 2).count();
                assert_eq!((popular, rare), (queries.div_ceil(2), queries / 2), "{queries} of {pages}");
            }
        }
    }

    #[test]
    fn draws_as_ever() {
        assert_eq!(drawn((0..100).collect(), 6, 1), drawn((0..100).collect(), 6, 1));
        assert_ne!(drawn((0..100).collect(), 6, 1), drawn((0..100).collect(), 6, 2));
        assert_eq!(drawn((0..100).collect(), 6, 1), [0, 51, 1, 73, 63, 7]);
    }
}

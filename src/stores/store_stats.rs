//! What a store says of itself: its own counters, numbers by the store's own names. A server's answer is not trusted:
//! nothing but numbers is kept of it, its names are made readable, and neither it nor they may be long or many. It
//! knows no store.

use std::collections::BTreeMap;

use crate::model::op::Fault;

/// A store's own counters at one moment, by its own names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreStats(BTreeMap<String, f64>);

/// The most counters of one store: MongoDB, which has the most, tells some 1,500.
const MOST: usize = 4_000;
/// The most characters of a name: WiredTiger's longest have some 90.
const NAME_CHARACTERS: usize = 100;
/// The most bytes of an answer: a Redis that was asked for every command tells some 100 kB.
const ANSWER_BYTES: usize = 1 << 20;

impl StoreStats {
    /// Of names and what stands beside them, those that are numbers.
    pub fn of_texts<N: AsRef<str>, T: AsRef<str>>(pairs: impl IntoIterator<Item = (N, T)>) -> StoreStats {
        pairs.into_iter().filter_map(|(name, text)| Some((name, number(text.as_ref())?))).collect()
    }

    /// Of several servers: each counter added up.
    pub fn sum(all: &[StoreStats]) -> StoreStats {
        let mut sums = BTreeMap::new();
        for (name, number) in all.iter().flat_map(|stats| &stats.0) {
            *sums.entry(name.clone()).or_insert(0.0) += number;
        }
        sums.into_iter().collect()
    }

    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Each counter as it is here and as it is in `later`. One that is not named is 0: stores leave out what has not
    /// happened yet (Redis a command that nobody has asked, LevelDB a level without files), and so do we.
    pub fn until(&self, later: &StoreStats) -> BTreeMap<String, [f64; 2]> {
        let of = |stats: &StoreStats, name: &str| stats.get(name).unwrap_or(0.0);
        let names = self.0.keys().chain(later.0.keys());
        let both = names.map(|name| (name.clone(), [of(self, name), of(later, name)]));
        both.filter(|(_, numbers)| *numbers != [0.0, 0.0]).collect()
    }
}

impl<N: AsRef<str>> FromIterator<(N, f64)> for StoreStats {
    fn from_iter<I: IntoIterator<Item = (N, f64)>>(pairs: I) -> StoreStats {
        // A record is JSON, which has no word for what is no number.
        let finite = pairs.into_iter().filter(|(_, number)| number.is_finite());
        StoreStats(finite.take(MOST).map(|(name, number)| (plain(name.as_ref()), number)).collect())
    }
}

/// Letters, digits, signs and blanks: nothing that could move a cursor or turn a line around.
fn plain(name: &str) -> String {
    let letters = name.trim().chars().take(NAME_CHARACTERS);
    letters.map(|letter| if letter.is_ascii_graphic() || letter == ' ' { letter } else { '?' }).collect()
}

/// A number as stores write one, `-1` or `13.72`; no hexadecimal digest that happens to be one with an exponent.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'));
    if is_plain { text.parse().ok() } else { None }
}

/// Reads an answer that is no longer than counters are: nobody fills our memory with them.
pub fn bounded<T>(
    mut read: impl FnMut(&[u8]) -> Result<Option<(usize, T)>, Fault>,
) -> impl FnMut(&[u8]) -> Result<Option<(usize, T)>, Fault> {
    move |bytes| match read(bytes)? {
        None if bytes.len() > ANSWER_BYTES => {
            Err(Fault::Garbled(format!("counters of more than {ANSWER_BYTES} bytes")))
        }
        answer => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_kept() {
        let texts = [("a", "12"), ("b", "-1"), ("c", " 0.50 "), ("d", "7.0.15"), ("e", "hunter2"), ("f", "")];
        let more = [("g", "nan"), ("h", "inf"), ("i", "0x10"), ("j", "61e4"), ("k", "99.57%"), ("l", "-")];
        let stats = StoreStats::of_texts(texts.into_iter().chain(more));
        assert_eq!(stats, [("a", 12.0), ("b", -1.0), ("c", 0.5)].into_iter().collect());
        assert_eq!(StoreStats::from_iter([("x", f64::NAN), ("y", f64::INFINITY)]), StoreStats::default());
        // More digits than any number of the type has.
        assert_eq!(StoreStats::of_texts([("z", "9".repeat(400))]), StoreStats::default());
    }

    #[test]
    fn names_are_readable_short_and_few() {
        let stats = StoreStats::from_iter([("\u{1b}[2J\u{202e}evil\n", 1.0), (&"n".repeat(10_000), 2.0)]);
        assert_eq!(stats, [("?[2J?evil".to_string(), 1.0), ("n".repeat(100), 2.0)].into_iter().collect());
        let many = StoreStats::from_iter((0..100_000).map(|index| (index.to_string(), 1.0)));
        assert_eq!(many.0.len(), MOST);
    }

    #[test]
    fn what_was_not_named_was_nothing() {
        let before: StoreStats = [("kept", 2.0), ("gone", 3.0), ("never", 0.0)].into_iter().collect();
        let after: StoreStats = [("kept", 5.0), ("new", 1.0), ("never", 0.0)].into_iter().collect();
        let told = before.until(&after);
        assert_eq!(
            told,
            BTreeMap::from(
                [("gone", [3.0, 0.0]), ("kept", [2.0, 5.0]), ("new", [0.0, 1.0])]
                    .map(|(name, numbers)| (name.to_string(), numbers))
            )
        );
    }

    #[test]
    fn a_long_answer_is_refused_before_it_is_all_there() {
        let mut endless = bounded(|_| Ok(None::<(usize, ())>));
        assert!(endless(&[0; ANSWER_BYTES]).is_ok());
        assert!(endless(&vec![0; ANSWER_BYTES + 1]).expect_err("too long").to_string().contains("1048576 bytes"));
    }
}

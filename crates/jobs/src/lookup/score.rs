//! Stupid backoff: how likely a message is by the counts of its n-grams. Brants, Popat, Xu, Och and Dean, "Large
//! Language Models in Machine Translation", EMNLP-CoNLL 2007, equation 5:
//!
//! S(u | context) = f(context u) / f(context) where f(context u) > 0, else 0.4 S(u | context without its first unit);
//! S(u) = f(u) / N.
//!
//! The paper says nothing of a unit u that was never counted: here S(u) = 0.4 / N then.

/// What a step back to a shorter context costs.
const ALPHA: f64 = 0.4;

/// The decimal logarithm of a message's score: the sum of log10 S of its units in their order. `all` is N, the units
/// that were counted, and `count` how often the run was that begins at a unit and has that length.
///
/// These are additions, multiplications and divisions of IEEE 754 in a fixed order, and a logarithm by integers and
/// such operations: the same on every machine.
pub fn log10_score(units: usize, order: usize, all: u64, count: impl Fn(usize, usize) -> u64) -> f64 {
    (0..units).fold(0.0, |sum, unit| sum + libm::log10(share(unit, order.min(unit + 1), all, &count)))
}

/// S of one unit, of which runs of up to `longest` units end there.
fn share(unit: usize, longest: usize, all: u64, count: &impl Fn(usize, usize) -> u64) -> f64 {
    let begin = |length: usize| unit + 1 - length;
    let known = (1..=longest).rev().find(|&length| count(begin(length), length) > 0).unwrap_or(0);
    let (counted, of) = match known {
        0 => (1, all),
        1 => (count(unit, 1), all),
        length => (count(begin(length), length), count(begin(length), length - 1)),
    };
    (known..longest).fold(counted as f64 / of as f64, |share, _| share * ALPHA)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of "the cat the dog": the 2, cat 1, dog 1, "the cat" 1, "cat the" 1, "the dog" 1.
    fn count(message: &'static str) -> impl Fn(usize, usize) -> u64 {
        move |first, length| {
            let run: Vec<&str> = message.split(' ').skip(first).take(length).collect();
            match run.join(" ").as_str() {
                "the" => 2,
                "cat" | "dog" | "the cat" | "cat the" | "the dog" => 1,
                _ => 0,
            }
        }
    }

    #[test]
    fn scores_are_those_of_the_formula() {
        let score = |message: &'static str, order| log10_score(message.split(' ').count(), order, 4, count(message));
        // By hand: 2/4, and of them 1/2.
        assert_eq!(score("the cat", 2), libm::log10(2.0 / 4.0) + libm::log10(1.0 / 2.0));
        // "dog cat" was never counted: a step back to cat.
        assert_eq!(score("dog cat", 2), libm::log10(1.0 / 4.0) + libm::log10(1.0 / 4.0 * 0.4));
        // Two steps back where the order is 3, and one more for a word that was never counted.
        assert_eq!(
            score("dog dog bird", 3),
            libm::log10(0.25) + libm::log10(0.25 * 0.4) + libm::log10(0.25 * 0.4 * 0.4 * 0.4)
        );
        assert_eq!(score("the cat", 1), libm::log10(0.5) + libm::log10(0.25));
        assert_eq!(log10_score(0, 2, 4, |_, _| 0), 0.0);
    }
}

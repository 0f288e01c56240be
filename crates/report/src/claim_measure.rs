//! By what a target costs less than another: the costs of which differences are claimed.

use serde::{Deserialize, Serialize};

/// As JSON, pages and bundles name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimMeasure {
    /// Of the job, or of all requests at a point of a sweep.
    Seconds,
    /// Of client and server for an op.
    Cpu,
    /// At a rate: from when a request was due to its answer.
    ResponseP99,
    /// From sending a request to its answer, while clients ask as fast as they are answered.
    LatencyP99,
}

/// How a claim is said of each: "redis is faster than lmdb", "lmdb takes 1.2 times as long".
const WORDS: [(ClaimMeasure, &str, &str, &str); 4] = [
    (ClaimMeasure::Seconds, "is faster than", "takes", "as long"),
    (ClaimMeasure::Cpu, "uses less CPU than", "uses", "as much CPU"),
    (ClaimMeasure::ResponseP99, "answers sooner (p99) than", "takes", "as long"),
    (ClaimMeasure::LatencyP99, "has a shorter p99 than", "has", "as long a p99"),
];

impl ClaimMeasure {
    /// "is faster than".
    pub fn costs_less(self) -> &'static str {
        self.words().1
    }

    /// "takes" and "as long".
    pub fn costs_as_much(self) -> (&'static str, &'static str) {
        (self.words().2, self.words().3)
    }

    fn words(self) -> &'static (ClaimMeasure, &'static str, &'static str, &'static str) {
        WORDS.iter().find(|(measure, ..)| *measure == self).expect("each measure has its words")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_measure_has_its_words_and_its_name() {
        for (measure, ..) in WORDS {
            assert!(!measure.costs_less().is_empty() && !measure.costs_as_much().1.is_empty());
        }
        let names = WORDS.map(|(measure, ..)| serde_json::to_value(measure).expect("a name"));
        assert_eq!(names, ["seconds", "cpu", "response_p99", "latency_p99"]);
    }
}

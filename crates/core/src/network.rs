//! The network that a proxy of kvfair's stands for between a client and its server.

use serde::{Deserialize, Serialize};

/// What was asked for, and what the proxy made of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The round-trip time that was asked for, in microseconds: half of it each way.
    pub rtt_us: u64,
    /// What a ping took through the proxy before the run, in microseconds: the median.
    pub ping_us: f64,
    /// What it took through a proxy that delays nothing: the proxy's own cost, which is in every row.
    pub own_us: f64,
    /// Bytes that the proxy passed on in this trial, both ways together.
    pub bytes: u64,
    /// How much later than it was due a chunk was passed on in this trial, in microseconds: the mean.
    pub late_us: f64,
}

/// A delay is kept that is off by no more than this share of it, or by so many microseconds.
const OFF_SHARE: f64 = 0.1;
const OFF_US: f64 = 30.0;

impl Network {
    /// Of a run that has not begun.
    pub fn of(rtt_us: u64) -> Network {
        Network { rtt_us, ..Network::default() }
    }

    /// What the proxy really added to a round trip, as the ping before the run saw it.
    pub fn added_us(&self) -> f64 {
        self.ping_us - self.own_us
    }

    /// Whether the ping before the run saw the delay that was asked for.
    pub fn is_kept(&self) -> bool {
        self.may_be_off(self.added_us() - self.rtt_us as f64)
    }

    /// Whether the delay was kept in the trial too: a round trip is late twice.
    pub fn is_kept_under_load(&self) -> bool {
        self.may_be_off(2.0 * self.late_us)
    }

    /// What the ping saw, where that is not what was asked for.
    pub fn off(&self) -> String {
        let (asked, added_ms) = (in_words(self.rtt_us).replace(' ', ""), self.added_us() / 1e3);
        format!("--rtt {asked}: a ping shows that the proxy adds {added_ms:.2} ms to a round trip")
    }

    fn may_be_off(&self, by_us: f64) -> bool {
        by_us.abs() <= OFF_US.max(OFF_SHARE * self.rtt_us as f64)
    }
}

/// A round-trip time as it is typed: "0.2 ms".
pub fn in_words(rtt_us: u64) -> String {
    format!("{} ms", rtt_us as f64 / 1e3)
}

/// Several of them: "0, 0.2, 1 ms".
pub fn listed(rtts_us: &[u64]) -> String {
    let numbers: Vec<String> = rtts_us.iter().map(|&rtt_us| (rtt_us as f64 / 1e3).to_string()).collect();
    format!("{} ms", numbers.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_may_be_off_by_a_tenth_or_by_thirty_microseconds() {
        let pinged = |rtt_us, ping_us| Network { ping_us, own_us: 50.0, ..Network::of(rtt_us) }.is_kept();
        assert!(pinged(0, 79.0) && !pinged(0, 81.0));
        assert!(pinged(200, 279.0) && pinged(200, 221.0) && !pinged(200, 281.0) && !pinged(200, 219.0));
        assert!(pinged(1_000, 1_149.0) && !pinged(1_000, 1_151.0) && !pinged(1_000, 949.0));
        let late = |late_us| Network { late_us, ..Network::of(1_000) }.is_kept_under_load();
        assert!(late(49.0) && !late(51.0));
    }

    #[test]
    fn round_trips_read_as_they_are_typed() {
        assert_eq!([0, 50, 200, 1_000, 1_500].map(in_words), ["0 ms", "0.05 ms", "0.2 ms", "1 ms", "1.5 ms"]);
        assert_eq!(listed(&[0, 200, 1_000]), "0, 0.2, 1 ms");
    }
}

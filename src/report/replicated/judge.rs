//! The claims of one run held against another run: which of them it makes too, which it makes the other way round, and
//! of which it can say nothing.

use super::{PageClaim, PageRun, PageTarget, machines};
use crate::model::network;
use crate::model::trial::Transport;
use crate::model::units;
use crate::report::claims::over;
use crate::report::versus::{Versus, at_least, in_a_sentence, versus};

/// What claims are about: `PageClaim::measure`.
pub const MEASURES: [&str; 3] = ["seconds", "cpu", "response_p99"];

/// What another run says to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    Reproduced,
    Contradicted,
    Untold,
}

impl Judgement {
    pub fn in_words(self) -> &'static str {
        match self {
            Judgement::Reproduced => "reproduced",
            Judgement::Contradicted => "contradicted",
            Judgement::Untold => "cannot be told",
        }
    }
}

/// A claim in the light of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedClaim {
    pub judgement: Judgement,
    /// The ratio there, or why there is none.
    pub words: String,
}

/// A claim and what each of several runs says to it.
pub struct ClaimAcross<'a> {
    pub claim: &'a PageClaim,
    /// "redis over a Unix socket is faster than over TCP".
    pub words: String,
    pub by_run: Vec<JudgedClaim>,
}

/// What this run says to a claim of another one.
pub fn judge(claim: &PageClaim, run: &PageRun) -> JudgedClaim {
    let of = |less: &str, more: &str| {
        run.claims.iter().find(|one| about(one) == about(claim) && one.less == less && one.more == more)
    };
    if let Some(same) = of(&claim.less, &claim.more) {
        return JudgedClaim { judgement: Judgement::Reproduced, words: ratio(same) };
    }
    if let Some(other) = of(&claim.more, &claim.less) {
        return JudgedClaim { judgement: Judgement::Contradicted, words: evidence(other) };
    }
    JudgedClaim { judgement: Judgement::Untold, words: why_not(claim, run) }
}

/// What a claim is about, besides its two targets.
fn about(claim: &PageClaim) -> impl PartialEq + '_ {
    let part = (&claim.part, &claim.swept, claim.step);
    (&claim.measure, claim.units, claim.order, claim.rtt_us, part)
}

fn why_not(claim: &PageClaim, run: &PageRun) -> String {
    for name in [&claim.less, &claim.more] {
        match run.targets.iter().find(|target| target.target == *name) {
            None => return format!("{name} did not run"),
            Some(target) if target.trials == 0 || !["right", "unchecked"].contains(&target.status.as_str()) => {
                return format!("{name}: {}", target.status.replace('_', " "));
            }
            Some(_) => {}
        }
    }
    if run.claims.is_empty() {
        return "nothing could be claimed there".to_string();
    }
    "not told apart there".to_string()
}

/// "1.29x [1.23-1.34]"; of a noisy run the near end alone.
pub fn ratio(claim: &PageClaim) -> String {
    let PageClaim { ratio, low, high, preliminary, .. } = *claim;
    match low.filter(|_| claim.noisy) {
        Some(near_end) => at_least(near_end),
        None => versus(Versus { ratio, low, high, preliminary }),
    }
}

/// "redis over a Unix socket is faster than over TCP".
pub fn in_words(claim: &PageClaim, targets: &[PageTarget]) -> String {
    let of = |name: &str| targets.iter().find(|target| target.target == name);
    let (less, more) = match of(&claim.less).zip(of(&claim.more)) {
        Some((less, more)) if is_by_transport(less, more) => {
            (format!("{} {}", less.store, over(less.transport)), over(more.transport).to_string())
        }
        _ => (claim.less.clone(), claim.more.clone()),
    };
    let verb = match claim.measure.as_str() {
        "cpu" => "uses less CPU than",
        "response_p99" => "answers sooner (p99) than",
        _ => "is faster than",
    };
    format!("{less} {verb} {more}{}", where_of(claim))
}

/// The same store by two transports, each called by the store's name.
fn is_by_transport(less: &PageTarget, more: &PageTarget) -> bool {
    let plain = |target: &PageTarget| match target.transport {
        Transport::Unix => target.target == format!("{}+unix", target.store),
        Transport::InProcess | Transport::Tcp => target.target == target.store,
    };
    less.store == more.store && less.transport != more.transport && plain(less) && plain(more)
}

/// ", get at 50 clients": of which part of the run the claim is.
fn where_of(claim: &PageClaim) -> String {
    let swept = claim.swept.as_deref().unwrap_or("step").replace('_', " ");
    let parts = [
        claim.units.map(|size| format!("size {}", units::thousands(size))),
        claim.order.map(|order| format!("order {order}")),
        claim.rtt_us.map(|rtt_us| format!("round trip {}", network::in_words(rtt_us))),
        claim.part.clone().filter(|part| !part.is_empty()),
        claim.step.map(|step| format!("{swept} {}", units::thousands(step))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// "redis takes 1.18 times as long [1.14-1.27] as redis+unix".
pub fn evidence(claim: &PageClaim) -> String {
    let (verb, as_what) = match claim.measure.as_str() {
        "cpu" => ("uses", "as much CPU"),
        _ => ("takes", "as long"),
    };
    let told = in_a_sentence(ratio(claim).trim_start_matches('~'), as_what);
    format!("{} {verb} {told}, beside {}", claim.more, claim.less)
}

/// Every claim of these runs, that of the first run first. One that a later run makes the other way round is no other
/// claim.
pub fn across<'a>(runs: &[&'a PageRun]) -> Vec<ClaimAcross<'a>> {
    let mut rows: Vec<(&PageClaim, &PageRun)> = Vec::new();
    for run in runs {
        for claim in &run.claims {
            let pair = |one: &PageClaim| {
                if one.less < one.more {
                    (one.less.clone(), one.more.clone())
                } else {
                    (one.more.clone(), one.less.clone())
                }
            };
            if !rows.iter().any(|(one, _)| about(one) == about(claim) && pair(one) == pair(claim)) {
                rows.push((claim, run));
            }
        }
    }
    let each = rows.into_iter().map(|(claim, run)| ClaimAcross {
        claim,
        words: in_words(claim, &run.targets),
        by_run: runs.iter().map(|run| judge(claim, run)).collect(),
    });
    each.collect()
}

impl ClaimAcross<'_> {
    pub fn count(&self, judgement: Judgement) -> usize {
        self.by_run.iter().filter(|one| one.judgement == judgement).count()
    }

    /// "held on 2 of 3 machines; contradicted on 1".
    pub fn held(&self, runs: &[&PageRun]) -> String {
        let (all, machines) = (runs.len(), machines(runs));
        let (on, of) = if machines == all { ("on", "machines") } else { ("in", "runs") };
        let of = if all == 1 { of.trim_end_matches('s') } else { of };
        let mut words = format!("held {on} {} of {all} {of}", self.count(Judgement::Reproduced));
        if machines < all {
            words += &format!(" on {machines} machine{}", if machines == 1 { "" } else { "s" });
        }
        for judgement in [Judgement::Contradicted, Judgement::Untold] {
            let count = self.count(judgement);
            if count > 0 {
                words += &format!("; {} {on} {count}", judgement.in_words());
            }
        }
        words
    }
}

/// What a reader is told first of several runs: what is contradicted, then the same store by two ways, then the rest.
pub fn sentence(rows: &[ClaimAcross<'_>], runs: &[&PageRun]) -> String {
    const TOLD: usize = 2;
    let mut first: Vec<&ClaimAcross<'_>> = rows.iter().collect();
    let is_of_time = |row: &ClaimAcross<'_>| row.claim.measure != "cpu";
    first.sort_by_key(|row| (row.count(Judgement::Contradicted) == 0, !is_of_time(row), !row.words.contains(" over ")));
    let told = first.iter().take(TOLD).map(|row| format!("{}: {}.", row.words, row.held(runs)));
    told.collect::<Vec<_>>().join(" ")
}

//! The claims of one run held against another run: which of them it makes too, which it makes the other way round, and
//! of which it can say nothing.

use std::collections::BTreeSet;

use super::findings::{self, FindingKind, PageFinding};
use super::{PageClaim, PageRun, PageTarget, machines};
use crate::claim_measure::ClaimMeasure;
use crate::claims::over;
use crate::versus::{Versus, claimed, in_a_sentence};
use kvfair_core::network;
use kvfair_core::trial::Transport;
use kvfair_core::units;

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
    /// The same in numbers, as the claim has it: how many times as much its second target costs.
    pub seen: Option<SeenRatio>,
}

/// A ratio with the interval that it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeenRatio {
    pub ratio: f64,
    pub span: Option<[f64; 2]>,
    pub noisy: bool,
}

impl SeenRatio {
    fn of(claim: &PageClaim) -> SeenRatio {
        let PageClaim { ratio, low, high, noisy, .. } = *claim;
        SeenRatio { ratio, span: low.zip(high).map(|(low, high)| [low, high]), noisy }
    }

    /// The same of the two targets the other way round.
    fn inverse(self) -> SeenRatio {
        let span = self.span.filter(|[low, _]| *low > 0.0).map(|[low, high]| [1.0 / high, 1.0 / low]);
        SeenRatio { ratio: 1.0 / self.ratio, span, ..self }
    }
}

/// A claim and what each of several runs says to it.
pub struct ClaimAcross<'a> {
    /// None of a finding.
    pub claim: Option<&'a PageClaim>,
    /// "redis over a Unix socket is faster than over TCP".
    pub words: String,
    /// It is about the same store by two transports.
    pub by_transport: bool,
    pub by_run: Vec<JudgedClaim>,
}

/// What a run says to each claim of another one, in words.
pub fn each(first: &PageRun, run: &PageRun) -> Vec<(String, JudgedClaim)> {
    let Some(kind) = findings::kind(first) else {
        return first.claims.iter().map(|claim| (in_words(claim, &first.targets), judge(claim, run))).collect();
    };
    let claims = first.findings.iter().filter(|finding| finding.is_claim());
    claims.map(|finding| (finding.words.clone(), by_kind(kind, finding, first, run))).collect()
}

fn by_kind(kind: &FindingKind, finding: &PageFinding, first: &PageRun, run: &PageRun) -> JudgedClaim {
    (kind.judge)(finding, &run.findings, first.machine == run.machine)
}

/// What this run says to a claim of another one.
pub fn judge(claim: &PageClaim, run: &PageRun) -> JudgedClaim {
    let of = |less: &str, more: &str| {
        run.claims.iter().find(|one| about(one) == about(claim) && one.less == less && one.more == more)
    };
    if let Some(same) = of(&claim.less, &claim.more) {
        let seen = Some(SeenRatio::of(same));
        return JudgedClaim { judgement: Judgement::Reproduced, words: ratio(same), seen };
    }
    if let Some(other) = of(&claim.more, &claim.less) {
        let seen = Some(SeenRatio::of(other).inverse());
        return JudgedClaim { judgement: Judgement::Contradicted, words: evidence(other), seen };
    }
    JudgedClaim { judgement: Judgement::Untold, words: why_not(claim, run), seen: None }
}

/// What a claim is about, besides its two targets.
fn about(claim: &PageClaim) -> impl Ord + '_ {
    let part = (&claim.part, &claim.swept, claim.step);
    (claim.measure, claim.units, claim.order, claim.rtt_us, part)
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
    "no difference was found there".to_string()
}

/// "1.29x [1.23-1.34]"; of a noisy run the near end alone.
pub fn ratio(claim: &PageClaim) -> String {
    let PageClaim { ratio, low, high, preliminary, .. } = *claim;
    claimed(Versus { ratio, low, high, preliminary }, claim.noisy)
}

/// "redis over a Unix socket is faster than over TCP".
pub fn in_words(claim: &PageClaim, targets: &[PageTarget]) -> String {
    let (less, more) = match by_transport(claim, targets) {
        Some((less, more)) => (format!("{} {}", less.store, over(less.transport)), over(more.transport).to_string()),
        None => (claim.less.clone(), claim.more.clone()),
    };
    format!("{less} {} {more}{}", claim.measure.costs_less(), where_of(claim))
}

/// The targets of a claim about the same store by two transports; nothing of other claims.
fn by_transport<'a>(claim: &PageClaim, targets: &'a [PageTarget]) -> Option<(&'a PageTarget, &'a PageTarget)> {
    let of = |name: &str| targets.iter().find(|target| target.target == name);
    of(&claim.less).zip(of(&claim.more)).filter(|(less, more)| is_by_transport(less, more))
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
    let (verb, as_what) = claim.measure.costs_as_much();
    let told = in_a_sentence(&ratio(claim), as_what);
    format!("{} {verb} {told}, beside {}", claim.more, claim.less)
}

/// Every claim of these runs, that of the first run first. One that a later run makes the other way round is no other
/// claim.
pub fn across<'a>(runs: &[&'a PageRun]) -> Vec<ClaimAcross<'a>> {
    if let Some(kind) = runs.first().and_then(|first| findings::kind(first)) {
        return findings_across(kind, runs);
    }
    let mut seen = BTreeSet::new();
    let mut rows: Vec<(&PageClaim, &PageRun)> = Vec::new();
    for run in runs {
        let is_new = |claim: &&'a PageClaim| {
            let pair = [&claim.less, &claim.more];
            let pair = if pair.is_sorted() { pair } else { [pair[1], pair[0]] };
            seen.insert((about(claim), pair))
        };
        rows.extend(run.claims.iter().filter(is_new).map(|claim| (claim, *run)));
    }
    let each = rows.into_iter().map(|(claim, run)| ClaimAcross {
        claim: Some(claim),
        words: in_words(claim, &run.targets),
        by_transport: by_transport(claim, &run.targets).is_some(),
        by_run: runs.iter().map(|run| judge(claim, run)).collect(),
    });
    each.collect()
}

fn findings_across<'a>(kind: &FindingKind, runs: &[&'a PageRun]) -> Vec<ClaimAcross<'a>> {
    let mut seen = BTreeSet::new();
    let all = runs.iter().flat_map(|run| run.findings.iter().map(move |finding| (finding, *run)));
    let first = all.filter(|(finding, _)| finding.is_claim() && seen.insert(&finding.about));
    let each = first.map(|(finding, of)| ClaimAcross {
        claim: None,
        words: finding.words.clone(),
        by_transport: false,
        by_run: runs.iter().map(|run| by_kind(kind, finding, of, run)).collect(),
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

/// What a reader is told first of several runs: what is contradicted, then what the first run claims of times, of these
/// first the same store by two ways.
pub fn sentence(rows: &[ClaimAcross<'_>], runs: &[&PageRun]) -> String {
    const TOLD: usize = 2;
    let mut first: Vec<&ClaimAcross<'_>> = rows.iter().collect();
    let is_of_time = |row: &ClaimAcross<'_>| row.claim.is_none_or(|claim| claim.measure != ClaimMeasure::Cpu);
    first.sort_by_key(|row| {
        let is_of_first = row.by_run.first().is_some_and(|one| one.judgement != Judgement::Untold);
        (row.count(Judgement::Contradicted) == 0, !is_of_first, !is_of_time(row), !row.by_transport)
    });
    let told = first.iter().take(TOLD).map(|row| format!("{}: {}.", row.words, row.held(runs)));
    told.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::{of_json, unlike};
    use super::*;

    fn claim(less: &str, more: &str) -> serde_json::Value {
        serde_json::json!({"measure": "seconds", "less": less, "more": more, "ratio": 1.29, "low": 1.23, "high": 1.34,
            "preliminary": false, "noisy": false})
    }

    /// A run of two targets on a machine of that name.
    fn run(cpu: &str, claims: &[serde_json::Value]) -> PageRun {
        let target = |name: &str, transport: &str| {
            serde_json::json!({"target": name, "store": "redis", "transport": transport, "version": "7",
                "client_library": "", "units": 9, "status": "right", "trials": 6, "seconds": 1.0})
        };
        let run = serde_json::json!({
            "form": 2, "kvfair": "0.2.0", "method": 2, "debug_build": false, "began": "20261121T020000Z",
            "command": ["run", "fans", "redis", "lmdb", "--profiles=9", "redis+unix", "--html", "x.html", "--json"],
            "seeds": {"order": 1}, "blocks": 6, "discarded_blocks": 0, "durability": "none",
            "configuration": "matched", "clients": 1,
            "job": {"name": "fans", "unit": "profile", "sizes": [9], "ops": 9, "via": "portable", "split": "pages"},
            "data": {"recipe": "likes10k", "seed": 1, "sha256": "0".repeat(64)},
            "machine": {"cpu": cpu, "cpus": 2, "memory_bytes": 1, "kernel": "", "os": "", "filesystem": ""},
            "targets": [target("redis", "tcp"), target("redis+unix", "unix"), target("lmdb", "in-process")],
            "claims": claims
        });
        of_json(&run.to_string()).expect("a run")
    }

    #[test]
    fn a_claim_is_held_against_each_machine() {
        let one = run("a", &[claim("redis+unix", "redis")]);
        let (other, silent) = (run("b", &[claim("redis", "redis+unix")]), run("c", &[claim("lmdb", "redis")]));
        let (again, none) = (run("a", &[claim("redis+unix", "redis")]), run("d", &[]));
        let told = |run: &PageRun| {
            let judged = judge(&one.claims[0], run);
            (judged.judgement, judged.words)
        };
        assert_eq!(told(&again), (Judgement::Reproduced, "1.29x [1.23-1.34]".to_string()));
        let contradicted = "redis+unix takes 1.29 times as long [1.23-1.34], beside redis".to_string();
        assert_eq!(told(&other), (Judgement::Contradicted, contradicted));
        let seen = judge(&one.claims[0], &other).seen.expect("a ratio");
        assert!((seen.ratio * 1.29 - 1.0).abs() < 1e-9, "{seen:?}");
        let [low, high] = seen.span.expect("an interval");
        assert!((low * 1.34 - 1.0).abs() < 1e-9 && (high * 1.23 - 1.0).abs() < 1e-9, "{seen:?}");
        assert_eq!(told(&silent), (Judgement::Untold, "no difference was found there".to_string()));
        assert_eq!(told(&none), (Judgement::Untold, "nothing could be claimed there".to_string()));
        let held = |runs: &[&PageRun]| sentence(&across(runs), runs);
        let words = "redis over a Unix socket is faster than over TCP: held on";
        assert_eq!(held(&[&one]), format!("{words} 1 of 1 machine."));
        let several = run("a", &[claim("lmdb", "redis+unix"), claim("redis+unix", "redis")]);
        let all = held(&[&several]);
        assert!(all.starts_with(words), "the same store by two ways comes first: {all}");
        let all = held(&[&one, &other, &silent]);
        assert!(
            all.starts_with(&format!("{words} 1 of 3 machines; contradicted on 1; cannot be told on 1. ")),
            "{all}"
        );
        let words = words.replace(" on", " in");
        assert_eq!(held(&[&one, &again]), format!("{words} 2 of 2 runs on 1 machine."));
        assert_eq!(
            super::super::refute::command(&one, &one.claims[0]),
            "kvfair run fans redis --profiles=9 redis+unix"
        );
    }

    #[test]
    fn what_is_missing_or_failed_is_why_nothing_can_be_told() {
        let one = run("a", &[claim("redis+unix", "redis")]);
        let mut other = run("b", &[claim("lmdb", "redis")]);
        other.targets[1].status = "missing".to_string();
        assert_eq!(judge(&one.claims[0], &other).words, "redis+unix: missing");
        other.targets.remove(1);
        assert_eq!(judge(&one.claims[0], &other).words, "redis+unix did not run");
    }

    #[test]
    fn runs_of_other_jobs_are_not_laid_side_by_side() {
        let one = run("a", &[]);
        assert_eq!(unlike(&one, &run("b", &[])), None);
        let mut other = run("b", &[]);
        other.job.name = "ngrams".to_string();
        assert_eq!(unlike(&one, &other).as_deref(), Some("another job: \"fans\" and \"ngrams\""));
        other = run("b", &[]);
        other.data.sha256 = "1".repeat(64);
        assert!(unlike(&one, &other).is_some_and(|what| what.starts_with("another SHA-256 of the data: ")));
    }
}

//! What is told of records whose costs are known.

use super::*;
use crate::exit::Exit;
use crate::histograms::tests::record;
use crate::levers_shown::LeversShown;
use crate::render::{OutputForm, printed};
use kvfair_core::levers::LeverTrial;
use kvfair_core::metrics::Metrics;
use kvfair_core::part::Part;
use kvfair_core::record::Phase;

const BLOCKS: u32 = 10;
/// The share of its time that base waits for the store.
const WAITS: f64 = 0.41;

fn lever(name: &str, change: &str) -> RunLever {
    RunLever { name: name.to_string(), change: change.to_string(), ..RunLever::default() }
}

fn run() -> LeverRun {
    let levers = vec![lever("transport", "unix"), lever("io-threads", "io-threads=2")];
    LeverRun { base: "store".to_string(), levers, ..LeverRun::default() }
}

/// Blocks of a part: each set at its cost in seconds, with a little noise, and base twice.
fn part(run: &LeverRun, part: LeverPart, costs: &[(&[&str], f64)]) -> Vec<Record> {
    let one = |changed: &[&str], block: u32, cost_s: f64, aa_control: bool| {
        let label = if changed.is_empty() { "store".to_string() } else { format!("store with {}", changed.join(" ")) };
        let mut made = record(&label, "finished", &[]);
        let wobble = 1.0 + f64::from((block * 13 + label.len() as u32 * 7 + u32::from(aa_control)) % 11) / 2e4;
        let took_s = cost_s * wobble;
        let metrics = Metrics { waiting_s: took_s * f64::from(made.clients) * WAITS, ..Metrics::default() };
        made.phases = vec![Phase { part: Part::Run, took_s, metrics, ..Phase::default() }];
        made.run.levers = Some(run.clone());
        made.run.blocks = BLOCKS;
        made.job.name = if part == LeverPart::Synthetic { "getset" } else { "fans" }.to_string();
        let changed = changed.iter().map(|name| name.to_string()).collect();
        made.levers = Some(LeverTrial { part, changed });
        Record { block, aa_control, ..made }
    };
    let block = |block: u32| {
        let twice = costs.first().map(|(changed, cost_s)| one(changed, block, *cost_s, true));
        costs.iter().map(move |(changed, cost_s)| one(changed, block, *cost_s, false)).chain(twice).collect::<Vec<_>>()
    };
    (1..=BLOCKS).flat_map(block).collect()
}

const BASE: &[&str] = &[];
const UNIX: &[&str] = &["transport"];
const THREADS: &[&str] = &["io-threads"];
const ALL: &[&str] = &["transport", "io-threads"];

/// A socket halves the time, and threads do nothing.
fn gains() -> Vec<Record> {
    part(&run(), LeverPart::Gains, &[(BASE, 4.0), (UNIX, 2.0), (THREADS, 4.0), (ALL, 2.0)])
}

fn fresh(attempt: u32, unix_s: f64) -> Vec<Record> {
    part(&run(), LeverPart::Confirm { attempt }, &[(BASE, 4.0), (ALL, 2.0), (UNIX, unix_s)])
}

fn told(parts: &[Vec<Record>]) -> (LeverReport, String) {
    let report = report(&parts.concat()).expect("records").expect("of levers");
    let shown = LeversShown { command: Vec::new(), exit: Exit::Ok, report };
    let text = printed(&shown, Exit::Ok, OutputForm::Text, 80).expect("text");
    (shown.report, text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The blocks that chose a set are no test of it: only what fresh blocks show confirms it, or denies it.
#[test]
fn a_set_is_confirmed_by_fresh_blocks_alone() {
    let (chosen, text) = told(&[gains()]);
    assert_eq!(chosen.enough.levers, ["unix"]);
    assert!(chosen.enough.confirmation.is_none() && chosen.enough.gain.is_none() && !chosen.is_clear());
    assert!(text.contains("not confirmed: it was not run in fresh blocks"), "{text}");

    let (confirmed, text) = told(&[gains(), fresh(1, 2.0)]);
    assert_eq!(confirmed.enough.confirmation.map(|seen| seen.found), Some(Confirmed::Enough));
    assert!(confirmed.is_clear() && text.contains("confirmed in 10 fresh blocks"), "{text}");

    // In the blocks that chose it the set was as fast as all levers; in fresh ones it is not.
    let (short, text) = told(&[gains(), fresh(1, 3.0)]);
    assert_eq!(short.enough.confirmation.map(|seen| seen.found), Some(Confirmed::Short));
    assert!(short.enough.is_all && short.enough.levers.len() == 2, "{text}");
    assert!(text.contains("no smaller set that was tried is enough"), "{text}");

    // The gain that is told of it is that of the fresh blocks too.
    let slower = told(&[gains(), fresh(1, 2.02)]).0.enough.gain.expect("fresh blocks").ratio.estimate;
    assert!((slower - 4.0 / 2.02).abs() < 0.005, "{slower}");
}

#[test]
fn a_lever_that_cannot_be_combined_has_a_struck_cell_with_the_reason() {
    let mut run = run();
    run.levers[1].not_in_all = Some("a cache cannot see that".to_string());
    let (report, text) = told(&[part(&run, LeverPart::Gains, &[(BASE, 4.0), (UNIX, 2.0), (THREADS, 3.0)])]);
    let [unix, threads] = report.levers.as_slice() else { panic!("{text}") };
    assert!(threads.alone.is_some_and(|gain| gain.helps()) && threads.last.is_none());
    assert_eq!((&unix.not_in_all, threads.not_in_all.as_deref()), (&None, Some("a cache cannot see that")));
    assert!(text.contains("cannot be combined") && text.contains("not with all: a cache cannot see that"), "{text}");
    assert!(!report.enough.levers.contains(&"io-threads=2".to_string()));
}

/// A benchmark of requests alone says more of a lever than a job that does other things too.
#[test]
fn the_answer_of_set_and_get_alone_stands_beside_that_of_the_job() {
    assert!(told(&[gains()]).0.synthetic.is_none());
    let alone = part(&run(), LeverPart::Synthetic, &[(BASE, 3.0), (UNIX, 1.0)]);
    let (report, text) = told(&[gains(), fresh(1, 2.0), alone]);
    let synthetic = report.synthetic.as_ref().expect("it was measured");
    assert_eq!((synthetic.job.as_str(), synthetic.blocks), ("getset", 10));
    assert!((synthetic.waiting_share.expect("trials of base") - WAITS).abs() < 1e-9);
    let [unix, threads] = report.levers.as_slice() else { panic!("{text}") };
    let ratio = |gain: &Option<Gain>| gain.map(|gain| gain.ratio.estimate.round());
    assert_eq!((ratio(&unix.synthetic), ratio(&unix.alone)), (Some(3.0), Some(2.0)));
    assert!(threads.synthetic.is_none(), "it was not measured");
    for words in ["on set/get alone: 3.0", "Set/get alone says 3.0", "it waits for the store 41 % of its time"] {
        assert!(text.contains(words), "no '{words}' in {text}");
    }
    let json = serde_json::to_value(&report).expect("JSON");
    assert_eq!(json["synthetic"]["job"], "getset");
    assert!(json["levers"][0]["synthetic"]["ratio"].is_object() && json["levers"][1]["synthetic"].is_null());
    assert_eq!(report.job, "fans");
}

/// A level for which there was no time says so, and is no failure.
#[test]
fn a_durability_level_without_a_number_has_a_reason() {
    let base = part(&run(), LeverPart::Durability, &[(BASE, 4.0)]);
    let at = |durability: Durability, outcome: Outcome| {
        let one = Record { durability, outcome, ..base[0].clone() };
        vec![Record { phases: Vec::new(), keeps: "synced".to_string(), ..one }]
    };
    let over = || Outcome::left_out("the time of the run was over");
    let (report, text) = told(&[gains(), fresh(1, 2.0), base.clone(), at(Durability::Power, over())]);
    assert_eq!(report.durability[1].failed.as_deref(), Some("the time of the run was over"));
    assert!(text.contains("power: no number: the time of the run was over (synced)"), "{text}");
    assert!(!text.contains("none: no number"), "the first level was measured: {text}");
    let text = told(&[gains(), at(Durability::None, over()), at(Durability::Power, over())]).1;
    assert!(text.contains("none: no number: the time of the run was over"), "{text}");
}

//! What is told of runs whose numbers are known.

use super::*;
use crate::histograms::tests::record;
use crate::render;
use kvfair_core::part::Part;
use kvfair_core::record::{Outcome, Phase, StoreFacts};

const BLOCKS: u32 = 6;

/// What a target took in a run, in seconds, and the version that it told.
#[derive(Clone, Copy)]
struct Took<'a> {
    target: &'a str,
    seconds: f64,
    version: &'a str,
}

fn took<'a>(target: &'a str, seconds: f64) -> Took<'a> {
    Took { target, seconds, version: "1.0" }
}

/// A run of six blocks in which the first target ran twice; `base` is a baseline. Noise is a little, and the same each
/// time.
fn run(day: u32, targets: &[Took<'_>]) -> HistoryRun {
    run_with(day, targets, 1.0)
}

/// The same whose A/A control is so many times the first trial's cost.
fn run_with(day: u32, targets: &[Took<'_>], twice: f64) -> HistoryRun {
    let one = |took: &Took<'_>, block: u32, aa_control: bool| {
        let mut made = record(took.target, "finished", &[]);
        let wobble = 1.0 + f64::from((block * 13 + day * 7 + took.target.len() as u32 * 5) % 11) / 1e3;
        let took_s = took.seconds * wobble * if aa_control { twice } else { 1.0 };
        made.phases = vec![Phase { part: Part::Run, took_s, ..Phase::default() }];
        made.run.began = format!("202611{day:02}T020000Z");
        made.run.blocks = BLOCKS;
        made.job.name = "fans".to_string();
        made.target.store = took.target.to_string();
        made.target.baseline = took.target == "base";
        made.store = Some(StoreFacts {
            version: took.version.to_string(),
            client_library: String::new(),
            increment: String::new(),
            settings: Default::default(),
            command: Vec::new(),
            program_sha256: None,
        });
        Record { block, aa_control, ..made }
    };
    let block = |block: u32| {
        let all = targets.iter().map(move |took| one(took, block, false));
        all.chain(targets.iter().take(1).map(move |took| one(took, block, true))).collect::<Vec<_>>()
    };
    HistoryRun { path: format!("kvfair-results/{day}.jsonl"), records: (1..=BLOCKS).flat_map(block).collect() }
}

fn told(runs: &[HistoryRun], measure: HistoryMeasure) -> HistoryReport {
    history(runs, measure, &|sides: &Sides<'_>| format!("kvfair compare {} {}", sides.paths[0], sides.paths[1]))
}

fn series<'a>(report: &'a HistoryReport, target: &str) -> &'a SeriesSeen {
    let mut all = report.setups.iter().flat_map(|setup| &setup.series);
    all.find(|series| series.target == target).unwrap_or_else(|| panic!("no {target}"))
}

/// Twenty runs, of which those from the eleventh on have so many times the seconds.
fn twenty(factors: &[(&str, f64)]) -> Vec<HistoryRun> {
    let of = |day: u32| {
        let version = if day > 10 { "2.0" } else { "1.0" };
        let targets: Vec<Took<'_>> = factors
            .iter()
            .map(|(target, factor)| Took { target, seconds: if day > 10 { *factor } else { 1.0 }, version })
            .collect();
        run(day, &targets)
    };
    (1..=20).map(of).collect()
}

fn text(report: &HistoryReport) -> String {
    render::text::written(&blocks(report), 100)
}

#[test]
fn a_change_of_a_store_is_told_with_its_versions_and_the_command_that_decides() {
    let report = told(&twenty(&[("base", 1.0), ("store", 1.12), ("other", 1.0)]), HistoryMeasure::Ratio);
    let found = series(&report, "store");
    assert_eq!((found.counted.as_str(), found.used, found.changes.len()), ("seconds, ratio to base", 20, 1));
    let change = &found.changes[0];
    assert_eq!((change.at, change.before, change.since.as_str()), (10, 9, "2026-11-11 02:00"));
    assert_eq!((change.versions.as_deref(), &change.machine), (Some("store 1.0 -> store 2.0"), &None));
    assert!((change.change.ratio.estimate - 1.12).abs() < 0.005, "{change:?}");
    assert!(series(&report, "other").changes.is_empty() && series(&report, "base").changes.is_empty());
    let text = text(&report);
    for part in [
        "1 change may be a store's",
        "store: maybe since 2026-11-11 02:00 1.12 times as much as before",
        "  decide: kvfair compare kvfair-results/10.jsonl kvfair-results/11.jsonl\n",
        "20 runs, 2026-11-01 to 2026-11-20",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn where_a_baseline_or_three_targets_move_it_is_the_machine() {
    let of = |factors: &[(&str, f64)], measure| {
        let report = told(&twenty(factors), measure);
        series(&report, "store").changes.first().and_then(|change| change.machine.clone())
    };
    let moved = of(&[("base", 1.1), ("store", 1.1)], HistoryMeasure::Seconds);
    assert_eq!(moved.as_deref(), Some("the machine changed: the baseline base moved too"));
    // The ratio of all stores falls where the baseline alone got slower.
    assert!(of(&[("base", 1.3), ("store", 1.0)], HistoryMeasure::Ratio).is_some());
    let three = [("store", 1.1), ("second", 1.1), ("third", 1.1)];
    let together = of(&three, HistoryMeasure::Seconds);
    assert_eq!(together.as_deref(), Some("the machine changed: 3 targets moved together"));
    assert_eq!(of(&three[..2], HistoryMeasure::Seconds), None, "two targets are no machine");
}

#[test]
fn few_runs_are_shown_and_not_judged() {
    let runs: Vec<HistoryRun> = (1..=7).map(|day| run(day, &[took("base", 1.0), took("store", 2.0)])).collect();
    let said = text(&told(&runs, HistoryMeasure::Ratio));
    let command = "7 of 10 runs; until then: kvfair compare kvfair-results/1.jsonl kvfair-results/7.jsonl";
    assert!(said.contains(command) && said.contains("does not look for changes"), "{said}");
    let said = text(&told(&runs[..1], HistoryMeasure::Ratio));
    assert!(
        said.contains("1 of 10 runs: a second one can be compared with it.") && said.contains("1 run, 2026-11-01"),
        "{said}"
    );
}

#[test]
fn a_line_ends_where_the_method_or_the_machine_changes() {
    let mut runs: Vec<HistoryRun> = (1..=20).map(|day| run(day, &[took("base", 1.0), took("store", 2.0)])).collect();
    runs[10..].iter_mut().flat_map(|run| &mut run.records).for_each(|record| record.method = 2);
    let report = told(&runs, HistoryMeasure::Ratio);
    assert_eq!(report.setups.len(), 2);
    assert_eq!(report.setups[1].differs.as_deref(), Some("another method: 1 and 2"));
    let said = text(&report);
    assert!(said.contains("2026-11-11 02:00: the lines of fans end at another method: 1 and 2."), "{said}");
    let (charts, left_out) = charts(&report);
    let rules: Vec<(usize, &str)> =
        charts[0].steps().rules.iter().map(|rule| (rule.before, rule.words.as_str())).collect();
    assert_eq!((left_out, rules), (0, vec![(10, "another method")]));
    assert_eq!(charts[0].plots[0].across.places.len(), 20);

    runs[10..].iter_mut().flat_map(|run| &mut run.records).for_each(|record| record.machine.cpus = 64);
    runs[10..].iter_mut().flat_map(|run| &mut run.records).for_each(|record| record.method = 1);
    let report = told(&runs, HistoryMeasure::Ratio);
    assert_eq!((report.setups.len(), report.setups[1].differs_in), (2, "machine"));
}

/// Two jobs in turn are two histories, each whole.
#[test]
fn set_ups_in_turn_do_not_break_each_other() {
    let mut runs: Vec<HistoryRun> = (1..=24).map(|day| run(day, &[took("base", 1.0), took("store", 2.0)])).collect();
    for run in runs.iter_mut().step_by(2) {
        run.records.iter_mut().for_each(|record| record.clients = 50);
    }
    let report = told(&runs, HistoryMeasure::Ratio);
    assert_eq!(report.setups.iter().map(|setup| setup.runs.len()).collect::<Vec<_>>(), [12, 12]);
    assert!(charts(&report).0.iter().all(|chart| chart.steps().rules.is_empty()));
}

#[test]
fn noisy_runs_are_not_used_failures_are_named_and_gaps_stay() {
    let both = [took("base", 1.0), took("store", 2.0)];
    let mut runs: Vec<HistoryRun> = (1..=14).map(|day| run(day, &both)).collect();
    runs[3] = run_with(4, &both, 1.2);
    runs[5] = run(6, &both[..1]);
    let failed = runs[7].records.iter_mut().filter(|record| record.target.label == "store");
    failed.for_each(|record| record.outcome = Outcome::Failed { reason: "it broke".to_string() });
    let report = told(&runs, HistoryMeasure::Ratio);
    let found = series(&report, "store");
    assert_eq!(found.used, 11);
    assert!(
        matches!(&found.dots[3].seen, DotSeen::Noisy { why, .. } if why.contains("run twice")),
        "{:?}",
        found.dots[3]
    );
    assert_eq!(found.dots[5].seen, DotSeen::Absent);
    assert_eq!(found.dots[7].seen, DotSeen::Failed { why: "it broke".to_string() });
    let text = text(&report);
    assert!(text.contains("11 of 14") && text.contains("no change seen, 1 failed"), "{text}");
    let why = "store: 3 of 14 runs are not used: it broke (1), it did not run, or the run has no baseline (1), the same \
               store run twice did not come out the same (1).";
    assert!(notes(&report).iter().any(|note| note.words() == why), "{:?}", notes(&report));
}

/// All that is said of runs of which none is used says why.
#[test]
fn of_runs_that_are_all_noisy_it_is_said_why_none_is_used() {
    let runs: Vec<HistoryRun> =
        (1..=5).map(|day| run_with(day, &[took("base", 1.0), took("store", 2.0)], 1.2)).collect();
    let report = told(&runs, HistoryMeasure::Ratio);
    assert_eq!(series(&report, "store").used, 0);
    let why = "base, store: 5 of 5 runs are not used: the same store run twice did not come out the same (5).";
    assert!(notes(&report).iter().any(|note| note.words() == why), "{:?}", notes(&report));
}

/// Versions are marked, whether or not anything changed.
#[test]
fn a_new_version_is_marked_in_the_picture() {
    let report = told(&twenty(&[("base", 1.0), ("store", 1.0)]), HistoryMeasure::Ratio);
    let (charts, _) = charts(&report);
    let of = charts.iter().find(|chart| chart.title == "fans, store").expect("a picture");
    let rules: Vec<(usize, &str, bool)> =
        of.steps().rules.iter().map(|rule| (rule.before, rule.words.as_str(), rule.is_break)).collect();
    assert_eq!(rules, [(10, "store 2.0", false)]);
    assert_eq!(of.steps().levels.len(), 1);
    assert_eq!(charts.len(), 2, "the baseline has its own, in seconds");
}

#[test]
fn what_is_no_run_of_one_size_is_passed_over() {
    let mut records = run(1, &[took("store", 1.0)]).records;
    assert_eq!(no_run(&records), None);
    records[0].run.sizes = vec![1, 2];
    assert!(no_run(&records).is_some());
    records[0].run.sizes.clear();
    records[0].run.command = vec!["growth".to_string()];
    assert_eq!(no_run(&records), Some("of `kvfair growth`"));
    assert!(no_run(&run(1, &[]).records).is_none());
}

#[test]
fn hostile_text_stays_text() {
    use crate::page::{Mask, history_page, history_svg};
    let hostile = "<script>alert(1)</script>";
    let runs: Vec<HistoryRun> = (1..=3).map(|day| run(day, &[took(hostile, 1.0)])).collect();
    let report = told(&runs, HistoryMeasure::Seconds);
    let page = history_page(&report, &Mask::of(&runs[0].records), &[], &["<b>bad</b>.jsonl: broken".to_string()]);
    assert!(
        page.contains("&lt;script&gt;alert") && !page.contains("<script>alert") && !page.contains("<b>bad"),
        "{page}"
    );
    let svg = history_svg(&report).expect("numbers");
    assert!(svg.contains("&lt;script&gt;") && !svg.contains("<script>"), "{svg}");
}

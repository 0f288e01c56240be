//! What is told of versions whose costs are known.

use super::*;
use crate::histograms::tests::record;
use kvfair_core::part::Part;
use kvfair_core::record::{Outcome, Phase, StoreFacts};

/// Blocks of versions that take so long, with a little noise; the first one runs twice.
fn records(versions: &[(&str, &str, f64)], blocks: u32) -> Vec<Record> {
    let one = |(place, (label, version, took_s)): (usize, &(&str, &str, f64)), block: u32, aa_control: bool| {
        let mut made = record(label, "finished", &[]);
        let wobble = 1.0 + f64::from((block * 13 + place as u32 * 7 + u32::from(aa_control)) % 11) / 2e3;
        made.phases = vec![Phase { part: Part::Run, took_s: took_s * wobble, ..Phase::default() }];
        made.run.blocks = blocks;
        made.job.name = "getset".to_string();
        made.target.store = "store".to_string();
        made.store = Some(StoreFacts {
            version: version.to_string(),
            client_library: String::new(),
            increment: String::new(),
            settings: Default::default(),
            command: Vec::new(),
            program_sha256: None,
        });
        Record { block, aa_control, ..made }
    };
    let block = |block: u32| {
        let all = versions.iter().enumerate().map(move |version| one(version, block, false));
        all.chain(versions.iter().enumerate().take(1).map(move |version| one(version, block, true))).collect::<Vec<_>>()
    };
    (1..=blocks).flat_map(block).collect()
}

fn labels(records: &[Record]) -> Vec<String> {
    let first = records.iter().filter(|record| record.block == 1 && !record.aa_control);
    first.map(|record| record.target.label.clone()).collect()
}

fn told(records: &[Record]) -> VersionsReport {
    report(records, &labels(records))
}

const FOUR: &[(&str, &str, f64)] =
    &[("a", "6.2.5", 1.0), ("b", "7.0.15", 1.0), ("c", "8.2.3", 1.2), ("d", "valkey 9.1.2", 0.9)];

#[test]
fn steps_are_told_between_neighbours_by_the_versions_that_servers_told() {
    let report = told(&records(FOUR, 8));
    let said = report.sentences();
    assert!(said[0].starts_with("From store 6.2.5 to store 7.0.15 no step is seen: one of "), "{said:?}");
    assert!(said[1].starts_with("store 8.2.3 takes 1.2"), "{said:?}");
    assert!(said[1].contains(" times as long as store 7.0.15 [1."), "{said:?}");
    assert!(said[2].starts_with("valkey 9.1.2 takes 0.75 times as long as store 8.2.3 ["), "{said:?}");
    assert_eq!(report.heading(), said[1..].join(" "));
    let text = format!("{:?}", report.blocks(Medium::Terminal(100)));
    assert!(text.contains("none seen") && text.contains("slower") && text.contains("faster"), "{text}");
}

#[test]
fn a_step_is_drawn_where_one_is_claimed() {
    let chart = told(&records(FOUR, 8)).chart();
    let levels: Vec<(usize, usize)> = chart.steps().levels.iter().map(|level| (level.first, level.last)).collect();
    assert_eq!(levels, [(0, 1), (2, 2), (3, 3)]);
    assert!(chart.steps().band.is_some() && chart.plots[0].across.places[3].1 == "valkey 9.1.2");
    assert_eq!(told(&records(&FOUR[..2], 8)).chart().steps().levels.len(), 1);
}

#[test]
fn of_few_blocks_nothing_is_said_and_no_level_is_drawn() {
    let report = told(&records(FOUR, 3));
    assert!(report.sentences()[0].ends_with("nothing can be said: 3 blocks are too few."), "{:?}", report.sentences());
    assert!(report.chart().steps().levels.is_empty() && report.heading().contains("3 blocks are too few"));
    let mut alone = records(FOUR, 8);
    alone.retain(|record| !record.aa_control);
    assert!(told(&alone).heading().contains("A/A control"), "{}", told(&alone).heading());
}

#[test]
fn two_builds_of_one_version_are_called_by_their_targets() {
    let report = told(&records(&[("old", "7.0.15", 1.0), ("new", "7.0.15", 1.2)], 8));
    assert!(report.sentences()[0].starts_with("new takes 1.2"), "{:?}", report.sentences());
}

/// Neighbours of a version that broke are compared with each other.
#[test]
fn a_version_without_a_number_is_named_and_stepped_over() {
    let mut broken = records(FOUR, 8);
    let of_b = broken.iter_mut().filter(|record| record.target.label == "b");
    of_b.for_each(|record| record.outcome = Outcome::Failed { reason: "it broke".to_string() });
    let report = told(&broken);
    let said = report.sentences();
    assert_eq!(said[0], "store 7.0.15 has no number: it broke.");
    assert!(said[1].contains("times as long as store 6.2.5"), "{said:?}");
    assert_eq!(report.chart().steps().failed, [1]);
}

/// Of one seed the later version is the faster one, or as fast as the one before it.
#[test]
fn what_depends_on_the_data_is_no_step() {
    for took_s in [0.98, 1.0] {
        let mut records = records(&FOUR[1..3], 12);
        for record in &mut records {
            record.run.seeds.data = vec![1, 2, 3];
            let seed = u64::from(record.block % 3) + 1;
            record.job.data = kvfair_core::trial::Data::Recipe { name: String::new(), seed };
            if seed == 1 {
                record.phases[0].took_s = if record.target.label == "c" { took_s } else { 1.0 };
            }
        }
        let report = told(&records);
        assert!(report.steps[0].claim.is_none() && report.steps[0].depends_on_data, "{took_s}: {:?}", report.steps);
        assert!(report.sentences()[0].contains("depends on the data"), "{:?}", report.sentences());
    }
}

/// The same with an A/A control that comes out up to 6 % from itself: its floor is 4 %, the ± of its interval.
fn beside_a_control(versions: &[(&str, &str, f64)]) -> VersionsReport {
    let mut records = records(versions, 8);
    for record in records.iter_mut().filter(|record| record.aa_control) {
        record.phases[0].took_s *= if record.block.is_multiple_of(2) { 1.06 } else { 0.98 };
    }
    told(&records)
}

#[test]
fn a_step_lies_beyond_the_far_end_of_the_control() {
    let of = |factor| beside_a_control(&[("a", "6.2.5", 1.0), ("b", "7.0.15", factor)]);
    let within = of(1.05);
    assert!((within.noise.floor() - 0.04).abs() < 0.005, "{:?}", within.noise);
    assert_eq!((within.steps[0].claim, within.claims().len()), (None, 0));
    assert!(within.heading().starts_with("No step is seen"), "{}", within.heading());
    let beyond = of(1.08);
    let said = "store 7.0.15 takes 1.08 times as long as store 6.2.5 [";
    assert!(beyond.heading().starts_with(said), "{}", beyond.heading());
    assert!(beyond.heading().ends_with("(seconds of the whole getset)."), "{}", beyond.heading());
}

/// What the heading says stands among the claims, with the one that costs less first.
#[test]
fn each_step_of_the_heading_is_a_claim() {
    let report = told(&records(FOUR, 8));
    let claims = report.claims();
    let pairs: Vec<(&str, &str)> = claims.iter().map(|claim| (claim.less, claim.more)).collect();
    assert_eq!(pairs, [("b", "c"), ("d", "c")]);
    assert!(
        claims.iter().all(|claim| claim.measure == ClaimMeasure::Seconds && claim.versus.ratio > 1.1 && !claim.noisy)
    );
}

/// The third version may cost as much as the first one.
#[test]
fn no_line_is_raised_of_a_version_whose_interval_holds_1() {
    let mut records = records(&[("a", "6.2.5", 1.0), ("b", "7.0.15", 1.2), ("c", "8.2.3", 1.15)], 8);
    let levels = |records: &[Record]| -> Vec<(usize, usize)> {
        told(records).chart().steps().levels.iter().map(|level| (level.first, level.last)).collect()
    };
    for record in records.iter_mut().filter(|record| record.target.label == "c") {
        record.phases[0].took_s *= if record.block.is_multiple_of(2) { 1.25 } else { 0.8 };
    }
    assert_eq!(levels(&records), [(0, 0), (1, 1)]);
    let chart = told(&records).chart();
    assert_eq!(chart.steps().levels[0].number, 1.0);
    assert!((chart.steps().levels[1].number - 1.2).abs() < 0.01, "{:?}", chart.steps().levels);
}

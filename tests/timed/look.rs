//! What first looks foretell of larger jobs, measured.

use std::collections::{BTreeMap, BTreeSet};

use kvfair::harness::load::{self, Parts};
use kvfair::report::standing::standings;
use kvfair::report::{ahead, cells};

use crate::common::desk::{Desk, LIMIT, Started, one_line};
use crate::common::load::alone;

/// So many first looks, and what is then measured at the full size: whether it lies in the ranges that they foretell,
/// and in those that they keep to themselves, since the machine was too noisy. It prints what docs/statistics.md has.
#[test]
#[ignore = "20 first looks take half an hour"]
fn what_first_looks_foretell_is_measured_at_the_full_size() {
    let _alone = alone();
    let looks: Vec<Look> = (0..LOOKS).map(|_| look()).collect();
    let mut measured: BTreeMap<(String, String), f64> = BTreeMap::new();
    for embedded in looks.iter().map(|look| look.embedded.clone()).collect::<BTreeSet<String>>() {
        let desk = Desk::with_only(&["redis-server"]);
        let full = FULL.to_string();
        let run = ["run", "fans", "--profiles", &full, "--blocks", "4", &embedded, "redis+unix", "redis"];
        // Blocks of the full size take minutes.
        Started::new(desk.kvfair(&run)).wait_within(12 * LIMIT);
        let rows = desk.rows();
        let took_s = |target: &str| {
            let row = rows.iter().find(|row| row["target"] == target).unwrap_or_else(|| panic!("{target}: {rows:?}"));
            row["took_s"].as_f64().expect("seconds")
        };
        for served in ["redis+unix", "redis"] {
            measured.insert((embedded.clone(), served.to_string()), took_s(served) / took_s(&embedded));
        }
    }
    let (mut all, mut told) = ([0, 0], [0, 0]);
    for Look { embedded, ranges, is_told } in &looks {
        for (served, low, high) in ranges {
            let ratio = measured[&(embedded.clone(), served.clone())];
            let holds = *low <= ratio && ratio <= *high;
            eprintln!("forecast of {served} to {embedded}: {low:.1} to {high:.1}, told {is_told}: {ratio:.1}, {holds}");
            all = [all[0] + 1, all[1] + i32::from(holds)];
            told = [told[0] + i32::from(*is_told), told[1] + i32::from(*is_told && holds)];
        }
    }
    eprintln!("forecasts: {} of {} hold; of {} that were told {}", all[1], all[0], told[0], told[1]);
    assert!(all[0] > 0 && 10 * told[1] >= 9 * told[0], "{} of {} that were told hold", told[1], told[0]);
}

const LOOKS: usize = 20;
const FULL: u64 = 10_000;

struct Look {
    embedded: String,
    ranges: Vec<(String, f64, f64)>,
    is_told: bool,
}

fn look() -> Look {
    let desk = Desk::with_only(&["redis-server"]);
    let said = desk.run(&[]);
    let mut files = std::fs::read_dir(desk.home().join("kvfair-results")).expect("results").flatten();
    let file = files.find(|entry| entry.path().extension().is_some_and(|end| end == "jsonl")).expect("a file").path();
    let records = load::records(&file, Parts::All).expect("records");
    let (records, ahead) = ahead::split(&records);
    let standings = standings(records);
    let rows = cells::rows(records, &standings);
    let forecasts = ahead::forecasts(&rows, ahead, FULL, standings.noise.floor());
    eprintln!("{forecasts:?}: noise floor {:.2}", standings.noise.floor());
    Look {
        embedded: forecasts.first().map_or_else(String::new, |forecast| forecast.embedded.to_string()),
        ranges: forecasts.iter().map(|one| (one.served.to_string(), one.low, one.high)).collect(),
        is_told: one_line(&said.out).contains(" At 10,000 expect "),
    }
}

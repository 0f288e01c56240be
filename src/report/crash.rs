//! What is said of stores that were killed, whose syncs were counted and who lost power: a table, and some sentences.

use super::table::{TableLine, layout, width, wrap};
use super::verified;
use crate::model::crash::{Audit, ClaimStanding, DiskFacts, Outages, Tried};
use crate::model::trial::Durability;
use crate::model::units;
use crate::stats::never;

/// A target at a durability level: what was seen, or why nothing was.
pub struct CrashRow {
    pub label: String,
    pub level: Durability,
    pub tried: Result<Tried, String>,
}

/// "crash: 20 kills of each store at each durability level, seed 7 · data on ext4 on /dev/vda, a sync takes 4.1 ms (p99
/// 9 ms)".
pub fn headline(kills: u32, seed: u64, ground: &DiskFacts) -> String {
    let (p50, p99) = (units::nanoseconds(ground.sync_ns_p50), units::nanoseconds(ground.sync_ns_p99));
    let times = if kills == 1 { "1 kill".to_string() } else { format!("{} kills", units::thousands(kills.into())) };
    let on = format!("data on {}, where a sync takes {p50} (p99 {p99})", ground.filesystem);
    wrap(&format!("crash: {times} of each store at each durability level, seed {seed} · {on}"), width()).join("\n")
}

/// The table, then a sentence for each row, then what must be known of the disk.
pub fn shown(rows: &[CrashRow], ground: &DiskFacts) -> String {
    let headings = ["target", "lost", "holes", "corrupt", "back", "syncs", "outage", "keeps"];
    let mut lines = vec![TableLine::Cells(headings.map(str::to_string).to_vec())];
    lines.extend(rows.iter().map(line));
    let mut text = layout(&lines, width());
    let sentences = rows.iter().map(|row| {
        let said = match &row.tried {
            Ok(tried) => sentence(tried),
            Err(why) => format!("not tried: {why}"),
        };
        format!("{}, {}: {said}", row.label, row.level)
    });
    sentences
        .chain(preloaded(rows))
        .chain(warning(ground))
        .for_each(|said| text.push_str(&format!("{}\n", wrap(&said, width()).join("\n"))));
    text
}

fn line(row: &CrashRow) -> TableLine {
    let Ok(tried) = &row.tried else {
        return TableLine::Reason(row.label.clone(), format!("{}: not tried", row.level));
    };
    let sum = |of: fn(&crate::model::crash::Kill) -> u64| units::thousands(tried.kills.iter().map(of).sum());
    TableLine::Cells(vec![
        row.label.clone(),
        sum(|kill| kill.lost),
        sum(|kill| kill.holes),
        sum(|kill| kill.corrupt),
        recovery_s(tried).map_or_else(|| "-".to_string(), |took_s| units::nanoseconds((took_s * 1e9) as u64)),
        tried.audit.syncs_per_write().map_or_else(|| "unknown".to_string(), |syncs| format!("{syncs:.2}")),
        outage_loses(&tried.outages),
        verified::verdict(tried),
    ])
}

/// The median time from starting the store to its first right answer.
fn recovery_s(tried: &Tried) -> Option<f64> {
    let mut all: Vec<f64> = tried.kills.iter().filter_map(|kill| kill.recovery_s).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// "0 of 20 kills lost anything: at most 14 % at 95 %; 1,003 syncs for 999 writes."
fn sentence(tried: &Tried) -> String {
    let kills = tried.kills.len();
    let lost = match tried.bad_kills() {
        0 => {
            let writes = units::thousands(tried.kills.iter().map(|kill| kill.acknowledged).sum());
            let bound = 100.0 * never::at_most(kills);
            format!("0 of {kills} kills lost anything of {writes} writes: at most {bound:.0} % would at 95 %")
        }
        bad => {
            let first = tried.kills.iter().find_map(|kill| kill.wrong.as_deref()).unwrap_or_default();
            format!("{bad} of {kills} kills lost something; the first: {first}")
        }
    };
    let synced = match &tried.audit {
        Audit::Counted { writes, by } => {
            let syncs = by.iter().map(|(name, count)| format!("{} {name}", units::thousands(*count)));
            let syncs: Vec<String> = syncs.collect();
            let syncs = if syncs.is_empty() { "no syncs".to_string() } else { syncs.join(", ") };
            format!("{syncs} for {} writes one by one", units::thousands(*writes))
        }
        Audit::Unknown(why) => format!("syncs unknown: {why}"),
    };
    let outages = outages(&tried.outages);
    let standing = match tried.standing() {
        ClaimStanding::Holds(_) => String::new(),
        ClaimStanding::Demoted(less) => format!("; what it keeps is {less}, not {}", tried.level),
        // Why was said.
        ClaimStanding::Unknown(_) if tried.ground.untestable.is_none() => format!("; {} cannot be said", tried.level),
        ClaimStanding::Unknown(why) => format!("; {} cannot be said: {why}", tried.level),
    };
    format!("{lost}; {synced}; {outages}{standing}.")
}

/// The share of what was written last, at the median: "none", "18.8 %", "all"; where that rounds to nothing, how many
/// lost something: "7 of 20".
fn outage_loses(outages: &Outages) -> String {
    match outages.lost_share() {
        None => "unknown".to_string(),
        Some(_) if outages.are_survived() => "none".to_string(),
        Some(share) if share < 0.0005 => outages.bad_of_all(),
        Some(share) => part(share),
    }
}

fn part(share: f64) -> String {
    if share >= 1.0 { "all".to_string() } else { format!("{:.1} %", share * 100.0) }
}

/// "0 of 20 emulated losses of power lost anything", "20 of 20 emulated losses of power lost something, at the median
/// 18.8 % of what was written last; the first: ...".
fn outages(outages: &Outages) -> String {
    match outages {
        Outages::Unknown(why) => format!("what a loss of power takes is unknown: {why}"),
        Outages::Emulated(seen) if outages.bad() == 0 => {
            format!("0 of {} emulated losses of power lost anything", seen.len())
        }
        Outages::Emulated(seen) => {
            let first = seen.iter().find_map(|kill| kill.wrong.as_deref()).unwrap_or_default();
            format!(
                "{} emulated losses of power lost something, at the median {} of what was written since the one before; \
                 the first: {first}",
                outages.bad_of_all(),
                part(outages.lost_share().unwrap_or_default())
            )
        }
    }
}

/// The libraries that these verdicts were made with: without them nothing is known.
fn preloaded(rows: &[CrashRow]) -> Option<String> {
    let libraries = &rows.iter().find_map(|row| row.tried.as_ref().ok())?.preloaded;
    let all = libraries.join(", ");
    (!libraries.is_empty()).then(|| format!("preloaded: {all}. These verdicts hold only where the same is preloaded."))
}

fn warning(ground: &DiskFacts) -> Option<String> {
    ground.is_too_fast().then(|| {
        let took = units::nanoseconds(ground.sync_ns_p50);
        format!(
            "warning: a sync takes {took} here: unless this disk has a battery of its own it may not reach the medium"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::crash::Kill;

    fn row(label: &str, level: Durability, wrong: Option<&str>, syncs: u64) -> CrashRow {
        let kill = |wrong: Option<&str>| Kill {
            acknowledged: 1000,
            lost: u64::from(wrong.is_some()),
            recovery_s: Some(0.045),
            wrong: wrong.map(str::to_string),
            ..Kill::default()
        };
        let tried = Tried {
            store: "some".to_string(),
            version: "1".to_string(),
            settings: Default::default(),
            level,
            tried: String::new(),
            kvfair: String::new(),
            ground: DiskFacts::default(),
            preloaded: Vec::new(),
            kills: std::iter::once(kill(wrong)).chain((1..20).map(|_| kill(None))).collect(),
            audit: Audit::Counted { writes: 999, by: [("fsync".to_string(), syncs)].into() },
            outages: Outages::default(),
        };
        CrashRow { label: label.to_string(), level, tried: Ok(tried) }
    }

    #[test]
    fn a_loss_that_the_median_hides_is_counted() {
        let lost = |lost| Kill { lost, records: 100, wrong: (lost > 0).then(String::new), ..Kill::default() };
        for (each, column) in [([0, 0, 0], "none"), ([1, 0, 0], "1 of 3"), ([100, 40, 0], "40.0 %"), ([100; 3], "all")]
        {
            let outages = Outages::Emulated(each.map(lost).to_vec());
            assert_eq!(outage_loses(&outages), column);
        }
    }

    #[test]
    fn the_table_fits_and_the_sentences_are_plain() {
        let missing =
            CrashRow { label: "some+unix".to_string(), level: Durability::Crash, tried: Err("no program".to_string()) };
        let rows = [
            row("some", Durability::Crash, None, 0),
            row("some", Durability::Power, None, 1003),
            row("a-very-long-name?with=settings", Durability::Power, Some("client 0: write 7 is gone"), 3),
            missing,
        ];
        let ground = DiskFacts { sync_ns_p50: 900, ..DiskFacts::default() };
        let text = shown(&rows, &ground);
        assert!(text.lines().all(|line| line.chars().count() <= width()), "{text}");
        let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "some, crash: 0 of 20 kills lost anything of 20,000 writes: at most 14 % would at 95 %",
            "1,003 fsync for 999 writes one by one; what a loss of power takes is unknown: not emulated.",
            "1 of 20 kills lost something; the first: client 0: write 7 is gone",
            "what it keeps is none, not power",
            "some+unix, crash: not tried: no program",
            "warning: a sync takes",
        ] {
            assert!(one_line.contains(words), "no '{words}' in\n{text}");
        }
    }
}

//! What is said of stores that were killed, whose syncs were counted and who lost power: a table, and some sentences.

use anyhow::Result;
use serde_json::Value;

use super::columns::{Column, exported, exported_wide, shown, value};
use super::exit::{Exit, worst};
use super::formats::{count, duration, plain};
use super::grid::Grid;
use super::render::csv::csv;
use super::render::json;
use super::render::{Block, Medium, Shown};
use super::table::of_columns;
use super::verified;
use kvfair_core::crash::{Audit, ClaimStanding, CrashTry, DiskFacts, Kill, Outages, Tried};
use kvfair_core::units;
use kvfair_stats::never;

/// Each target at each durability level.
pub struct CrashReport {
    /// What was typed behind `kvfair`.
    pub command: Vec<String>,
    pub claims: Vec<CrashTry>,
}

const COLUMNS: &[Column<CrashTry>] = &[
    shown("target", "target", plain, |claim| claim.target.as_str().into()),
    exported("store", |claim| of(claim, |tried| tried.store.as_str())),
    exported("version", |claim| of(claim, |tried| tried.version.as_str())),
    exported("level", |claim| claim.level.to_string().into()),
    shown("keeps", "keeps", plain, |claim| of(claim, verified::verdict)),
    exported("reason", |claim| value(claim.untried.as_ref().map(|untried| untried.reason.as_str()))),
    exported("kills", |claim| of(claim, |tried| tried.kills.len())),
    exported("acknowledged", |claim| sum(claim, |kill| kill.acknowledged)),
    shown("lost", "lost", count, |claim| sum(claim, |kill| kill.lost)),
    shown("holes", "holes", count, |claim| sum(claim, |kill| kill.holes)),
    shown("corrupt", "corrupt", count, |claim| sum(claim, |kill| kill.corrupt)),
    shown("recovery_s_median", "back", duration, |claim| value(claim.tried.as_ref().and_then(recovery_s))),
    shown("syncs_per_write", "syncs", syncs, |claim| {
        value(claim.tried.as_ref().and_then(|tried| tried.audit.syncs_per_write()))
    }),
    shown("outage_loses", "outage", plain, |claim| of(claim, |tried| outage_loses(&tried.outages))),
    exported("outage_lost_share", |claim| value(claim.tried.as_ref().and_then(|tried| tried.outages.lost_share()))),
    exported("filesystem", |claim| claim.ground.filesystem.as_str().into()),
    exported("sync_us_p50", |claim| (claim.ground.sync_ns_p50 as f64 / 1e3).into()),
    exported("sync_us_p99", |claim| (claim.ground.sync_ns_p99 as f64 / 1e3).into()),
    exported("seed", |claim| claim.seed.into()),
    exported_wide("tried", |claim| json::nested(&claim.tried)),
];

const VIEW: &[&str] =
    &["target", "lost", "holes", "corrupt", "recovery_s_median", "syncs_per_write", "outage_loses", "keeps"];

fn of<'a, T: Into<Value>>(claim: &'a CrashTry, what: impl Fn(&'a Tried) -> T) -> Value {
    value(claim.tried.as_ref().map(what))
}

fn sum(claim: &CrashTry, of_kill: fn(&Kill) -> u64) -> Value {
    of(claim, |tried| tried.kills.iter().map(of_kill).sum::<u64>())
}

fn syncs(value: &Value) -> String {
    value.as_f64().map_or_else(|| "unknown".to_string(), |syncs| format!("{syncs:.2}"))
}

impl Shown for CrashReport {
    fn exit(&self) -> Exit {
        worst(self.claims.iter().map(exit_of))
    }

    /// The table, then a sentence for each claim, then what must be known of the disk.
    fn blocks(&self, _: Medium) -> Result<Vec<Block>> {
        let not_tried = |claim: &CrashTry| format!("{}: not tried", claim.level);
        let why_not = |claim: &CrashTry| claim.tried.is_none().then(|| (claim.target.clone(), not_tried(claim)));
        let lines = of_columns(COLUMNS, VIEW, &self.claims, why_not);
        let sentences = self.claims.iter().map(|claim| {
            let untried = claim.untried.as_ref().map(|untried| format!("not tried: {}", untried.reason));
            let said = claim.tried.as_ref().map(sentence).or(untried).unwrap_or_default();
            format!("{}, {}: {said}", claim.target, claim.level)
        });
        let warning = self.claims.first().and_then(|claim| warning(&claim.ground));
        let sentences = sentences.chain(preloaded(&self.claims)).chain(warning).collect();
        let headline = self.claims.first().map(|claim| headline(claim.kills, claim.seed, &claim.ground));
        let headline = headline.map(Block::Headline);
        let table = Block::Table(Grid::of(lines));
        Ok(headline.into_iter().chain([table, Block::List(sentences)]).collect())
    }

    fn csv(&self) -> Result<String> {
        Ok(csv(COLUMNS, &self.claims, false))
    }

    fn json(&self, exit: Exit) -> Result<String> {
        json::of_rows(&self.command, exit, COLUMNS, &self.claims)
    }
}

fn exit_of(claim: &CrashTry) -> Exit {
    match (&claim.tried, &claim.untried) {
        (Some(tried), _) => match tried.standing() {
            ClaimStanding::Holds(_) => Exit::Ok,
            ClaimStanding::Demoted(_) => Exit::WrongAnswers,
            ClaimStanding::Unknown(_) => Exit::Inconclusive,
        },
        (None, Some(untried)) if untried.is_missing => Exit::Missing,
        (None, _) => Exit::Error,
    }
}

/// "crash: 20 kills of each store at each durability level, seed 7 · data on ext4 on /dev/vda, a sync takes 4.1 ms (p99
/// 9 ms)".
fn headline(kills: u32, seed: u64, ground: &DiskFacts) -> String {
    let (p50, p99) = (units::nanoseconds(ground.sync_ns_p50), units::nanoseconds(ground.sync_ns_p99));
    let times = units::counted(kills.into(), "kill");
    let on = format!("data on {}, where a sync takes {p50} (p99 {p99})", ground.filesystem);
    format!("crash: {times} of each store at each durability level, seed {seed} · {on}")
}

/// The median time from starting the store to its first right answer.
fn recovery_s(tried: &Tried) -> Option<f64> {
    let mut all: Vec<f64> = tried.kills.iter().filter_map(|kill| kill.recovery_s).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// "0 of 20 kills lost anything: at most 14 % at 95 %; 1,003 syncs for 999 writes."
fn sentence(tried: &Tried) -> String {
    let kills = units::counted(tried.kills.len() as u64, "kill");
    let lost = match tried.bad_kills() {
        0 => {
            let writes = units::thousands(tried.kills.iter().map(|kill| kill.acknowledged).sum());
            let bound = 100.0 * never::at_most(tried.kills.len());
            format!("0 of {kills} lost anything of {writes} writes: at most {bound:.0} % would at 95 %")
        }
        bad => {
            let first = tried.kills.iter().find_map(|kill| kill.wrong.as_deref()).unwrap_or_default();
            format!("{bad} of {kills} lost something; the first: {first}")
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
            format!("0 of {} lost anything", emulated(seen.len()))
        }
        Outages::Emulated(seen) => {
            let all = emulated(seen.len());
            let first = seen.iter().find_map(|kill| kill.wrong.as_deref()).unwrap_or_default();
            format!(
                "{} of {all} lost something, at the median {} of what was written since the one before; the first: {first}",
                outages.bad(),
                part(outages.lost_share().unwrap_or_default())
            )
        }
    }
}

fn emulated(count: usize) -> String {
    if count == 1 { "1 emulated loss of power".to_string() } else { format!("{count} emulated losses of power") }
}

/// The libraries that these verdicts were made with: without them nothing is known.
fn preloaded(claims: &[CrashTry]) -> Option<String> {
    let libraries = &claims.iter().find_map(|claim| claim.tried.as_ref())?.preloaded;
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
    use crate::render::{OutputForm, printed};
    use kvfair_core::crash::NotTried;
    use kvfair_core::trial::Durability;

    fn claim(target: &str, level: Durability) -> CrashTry {
        let ground = DiskFacts { sync_ns_p50: 900, ..DiskFacts::default() };
        CrashTry { kills: 20, seed: 7, ground, target: target.to_string(), level, tried: None, untried: None }
    }

    fn row(target: &str, level: Durability, wrong: Option<&str>, syncs: u64) -> CrashTry {
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
        CrashTry { tried: Some(tried), ..claim(target, level) }
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
        let untried = Some(NotTried { reason: "no program".to_string(), is_missing: true });
        let missing = CrashTry { untried, ..claim("some+unix", Durability::Crash) };
        let rows = [
            row("some", Durability::Crash, None, 0),
            row("some", Durability::Power, None, 1003),
            row("a-very-long-name?with=settings", Durability::Power, Some("client 0: write 7 is gone"), 3),
            missing,
        ];
        let report = CrashReport { command: Vec::new(), claims: rows.to_vec() };
        assert_eq!(report.exit(), Exit::WrongAnswers);
        let text = printed(&report, Exit::Ok, OutputForm::Text, 100).expect("text");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
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

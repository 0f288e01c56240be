//! What is said of primaries that were killed and of the replicas that took their place: a table, and some sentences.

use anyhow::Result;
use serde_json::Value;

use super::columns::{Column, exported, exported_wide, shown, value};
use super::exit::{Exit, worst};
use super::formats::{count, duration, per_second, plain};
use super::grid::Grid;
use super::render::csv::csv;
use super::render::json;
use super::render::{Block, Medium, Shown};
use super::table::of_columns;
use kvfair_core::crash::failover::{FailoverKill, Failovers};
use kvfair_core::units;
use kvfair_stats::never;

/// Each target.
pub struct FailoverReport {
    /// What was typed behind `kvfair`.
    pub command: Vec<String>,
    pub targets: Vec<Failovers>,
}

const COLUMNS: &[Column<Failovers>] = &[
    shown("target", "target", plain, |failovers| failovers.target.as_str().into()),
    exported("level", |failovers| failovers.level.to_string().into()),
    exported("clients", |failovers| failovers.clients.into()),
    exported("version", |failovers| failovers.version.as_str().into()),
    exported("wait", |failovers| failovers.wait.into()),
    shown("writes_per_s", "writes/s", per_second, |failovers| {
        let rate = |kill: &FailoverKill| Some(kill.acknowledged as f64 / kill.after_s.max(1e-3));
        value(Spread::of(&failovers.kills, rate).map(|rates| rates.median))
    }),
    exported("acknowledged", |failovers| failovers.acknowledged().into()),
    shown("lost", "lost", count, |failovers| failovers.lost().into()),
    exported("lost_share", |failovers| value(failovers.lost_share())),
    shown("oldest_lost_s", "oldest", before_kill, |failovers| {
        value(Spread::of(&failovers.kills, |kill| kill.oldest_lost_s).map(|oldest| oldest.most))
    }),
    shown("accepted_s_median", "accepted", duration, |failovers| {
        value(failovers.accepted_s().map(|(median, _)| median))
    }),
    shown("accepted_s_worst", "worst", duration, |failovers| value(failovers.accepted_s().map(|(_, worst)| worst))),
    shown("followed", "followed", plain, |failovers| {
        value(followed(failovers).map(|count| format!("{count} of {}", failovers.kills.len())))
    }),
    exported("wrong", |failovers| failovers.wrong().into()),
    exported("fault", |failovers| value(failovers.fault())),
    exported("reason", |failovers| value(failovers.untried.as_ref().map(|untried| untried.reason.as_str()))),
    exported("seed", |failovers| failovers.seed.into()),
    exported_wide("kills", |failovers| json::nested(&failovers.kills)),
];

const VIEW: &[&str] =
    &["target", "writes_per_s", "lost", "oldest_lost_s", "accepted_s_median", "accepted_s_worst", "followed"];

/// How long before the kill the oldest lost write was acknowledged.
fn before_kill(value: &Value) -> String {
    value.as_f64().map_or_else(|| "-".to_string(), before_kill_s)
}

impl Shown for FailoverReport {
    fn exit(&self) -> Exit {
        worst(self.targets.iter().map(exit_of))
    }

    /// The table, then what is to be said of each target.
    fn blocks(&self, _: Medium) -> Result<Vec<Block>> {
        let why_not = |failovers: &Failovers| {
            failovers.kills.is_empty().then(|| (failovers.target.clone(), "not tried".to_string()))
        };
        let lines = of_columns(COLUMNS, VIEW, &self.targets, why_not);
        let said =
            self.targets.iter().map(|failovers| format!("{}: {}", failovers.target, sentences(failovers))).collect();
        let headline = self.targets.first().map(|failovers| Block::Headline(headline(failovers)));
        let table = Block::Table(Grid::of(lines));
        Ok(headline.into_iter().chain([table, Block::List(said)]).collect())
    }

    fn csv(&self) -> Result<String> {
        Ok(csv(COLUMNS, &self.targets, false))
    }

    fn json(&self, exit: Exit) -> Result<String> {
        json::of_rows(&self.command, exit, COLUMNS, &self.targets)
    }
}

fn exit_of(failovers: &Failovers) -> Exit {
    match &failovers.untried {
        _ if failovers.fault().is_some() => Exit::WrongAnswers,
        Some(untried) if untried.is_missing => Exit::Missing,
        Some(_) => Exit::Error,
        None => Exit::Ok,
    }
}

/// "failover: 5 kills of each primary at durability crash, 4 clients, seed 7".
fn headline(failovers: &Failovers) -> String {
    let Failovers { kills_asked, seed, clients, level, .. } = failovers;
    let times = units::counted((*kills_asked).into(), "kill");
    format!("failover: {times} of each primary at durability {level}, {clients} clients, seed {seed}")
}

/// After how many kills all other replicas followed; nothing where there is no other one.
fn followed(failovers: &Failovers) -> Option<usize> {
    let has_others = failovers.kills.iter().any(|kill| !kill.followers.is_empty());
    has_others.then(|| failovers.kills.iter().filter(|kill| kill.all_followed()).count())
}

fn sentences(failovers: &Failovers) -> String {
    if failovers.kills.is_empty() {
        let reason = failovers.untried.as_ref().map(|untried| untried.reason.as_str());
        return format!("not tried: {}", reason.unwrap_or_default());
    }
    let promise = match failovers.wait {
        0 => "The primary alone acknowledges a write".to_string(),
        1 => "A write is acknowledged when 1 replica has it".to_string(),
        wait => format!("A write is acknowledged when {wait} replicas have it"),
    };
    // What is wrong stands first.
    let mut said: Vec<String> =
        failovers.fault().map(|fault| format!("This must not happen: {fault}")).into_iter().collect();
    said.extend([promise, lost(failovers), accepted(failovers)]);
    said.extend(others(failovers));
    said.push(match failovers.wrong() {
        0 => "No key held a value that was never written there".to_string(),
        wrong => format!("{} held a value that was never written there", units::counted(wrong, "key")),
    });
    said.extend(failovers.untried.as_ref().map(|untried| format!("There is no further kill: {}", untried.reason)));
    format!("{}.", said.join(". "))
}

/// "0 of 5 kills lost any of 81,203 acknowledged writes (at 95 % confidence, at most 45 % of kills do)".
fn lost(failovers: &Failovers) -> String {
    let (kills, writes) = (failovers.kills.len(), units::thousands(failovers.acknowledged()));
    let bad = failovers.kills.iter().filter(|kill| kill.lost > 0).count();
    let (Some(each), Some(oldest)) = (
        Spread::of(&failovers.kills, |kill| Some(kill.lost as f64)),
        Spread::of(&failovers.kills, |kill| kill.oldest_lost_s),
    ) else {
        let bound = 100.0 * never::at_most(kills);
        return format!(
            "0 of {} lost any of {writes} acknowledged writes (at 95 % confidence, at most {bound:.0} % of kills do)",
            units::counted(kills as u64, "kill")
        );
    };
    let (share, least, most) = (percent(failovers.lost_share().unwrap_or_default()), each.least, each.most);
    let each = if kills == 1 {
        String::new()
    } else {
        format!(", {} to {} a kill", units::thousands(least as u64), units::thousands(most as u64))
    };
    let when = before_kill_s(oldest.most);
    let when = if oldest.most > 0.0 { format!("{when} before the kill") } else { when };
    format!(
        "{bad} of {} lost {} of {writes} acknowledged writes ({share}){each}. The oldest of them was acknowledged \
         {when}",
        units::counted(kills as u64, "kill"),
        units::thousands(failovers.lost()),
    )
}

/// "Writes were accepted again 14 ms (9 ms to 33 ms) after the kill: a client noticed it after 2 ms, ...".
fn accepted(failovers: &Failovers) -> String {
    let spread = |of: fn(&FailoverKill) -> Option<f64>| Spread::of(&failovers.kills, of).unwrap_or_default();
    let detected = spread(|kill| Some(kill.detected_s));
    let promoted = spread(|kill| Some(kill.promoted_s));
    format!(
        "Writes were accepted again {} after the kill: a client noticed it after {}, the replica was a primary \
         after {}",
        spread(|kill| Some(kill.accepted_s)).in_words(),
        time(detected.median),
        time(promoted.median)
    )
}

fn others(failovers: &Failovers) -> Option<String> {
    let followed = followed(failovers)?;
    let kills = units::counted(failovers.kills.len() as u64, "kill");
    let in_sync = |kill: &FailoverKill| kill.followers.iter().filter_map(|other| other.in_sync_s).reduce(f64::max);
    let when = Spread::of(&failovers.kills, in_sync);
    let when = when.map_or_else(String::new, |when| format!(", in sync {} after the kill", when.in_words()));
    let mut failed = failovers.kills.iter().flat_map(|kill| &kill.followers).filter(|other| other.in_sync_s.is_none());
    let why = failed.next().map_or_else(String::new, |other| {
        format!(". {} did not: {}", other.name, other.reason.as_deref().unwrap_or("no reason is known"))
    });
    Some(format!("The other replicas followed the new primary after {followed} of {kills}{when}{why}"))
}

/// Of some numbers, one a kill.
#[derive(Default)]
struct Spread {
    count: usize,
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    /// Nothing where no kill has one.
    fn of(kills: &[FailoverKill], what: impl Fn(&FailoverKill) -> Option<f64>) -> Option<Spread> {
        let mut all: Vec<f64> = kills.iter().filter_map(what).collect();
        all.sort_by(f64::total_cmp);
        let (least, most) = (*all.first()?, *all.last()?);
        Some(Spread { count: all.len(), least, median: all[all.len() / 2], most })
    }

    /// Of seconds: "14 ms (9 ms to 33 ms)".
    fn in_words(&self) -> String {
        match self.count {
            0 | 1 => time(self.median),
            _ => format!("{} ({} to {})", time(self.median), time(self.least), time(self.most)),
        }
    }
}

/// How long before the kill; what a client noted after it was acknowledged while processes were killed.
fn before_kill_s(before_s: f64) -> String {
    if before_s > 0.0 { time(before_s) } else { "at the kill".to_string() }
}

fn time(took_s: f64) -> String {
    units::nanoseconds((took_s.max(0.0) * 1e9) as u64)
}

fn percent(share: f64) -> String {
    if share == 0.0 { "0 %".to_string() } else { format!("{} %", units::digits(100.0 * share)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{OutputForm, printed};
    use kvfair_core::crash::NotTried;
    use kvfair_core::crash::failover::Follower;

    fn kill(lost: u64) -> FailoverKill {
        let follower = Follower { name: "replica 2".to_string(), in_sync_s: Some(0.12), ..Follower::default() };
        FailoverKill {
            after_s: 1.5,
            acknowledged: 15_000,
            lost,
            oldest_lost_s: (lost > 0).then_some(0.302),
            detected_s: 0.002,
            promoted: "replica 1".to_string(),
            promoted_s: 0.006,
            accepted_s: 0.014 + lost as f64 / 1e5,
            acknowledged_later: 5000,
            followers: vec![follower],
            ..FailoverKill::default()
        }
    }

    #[test]
    fn the_table_fits_and_the_sentences_tell_all() {
        let row = |target: &str, failovers: Failovers| Failovers { target: target.to_string(), ..failovers };
        let lossy = Failovers { kills: vec![kill(3000), kill(0), kill(1500)], ..Failovers::default() };
        let waits = Failovers { wait: 1, kills: vec![kill(0); 3], ..Failovers::default() };
        let mut broken = Failovers { wait: 1, kills: vec![kill(7)], ..Failovers::default() };
        broken.kills[0].followers[0] =
            Follower { name: "replica 2".to_string(), reason: Some("no link".to_string()), ..Follower::default() };
        let untried = NotTried { reason: "replica 1 cannot be promoted".to_string(), is_missing: false };
        let dead = Failovers { untried: Some(untried), ..Failovers::default() };
        let rows = [row("some?replicas=2", lossy), row("some?wait=1", waits), row("broken", broken), row("dead", dead)];
        let report = FailoverReport { command: Vec::new(), targets: rows.to_vec() };
        assert_eq!(report.exit(), Exit::WrongAnswers);
        let text = printed(&report, Exit::Ok, OutputForm::Text, 100).expect("text");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "some?replicas=2 10 k 4,500 302 ms 29 ms 44 ms 3 of 3",
            "2 of 3 kills lost 4,500 of 45,000 acknowledged writes (10.0 %), 0 to 3,000 a kill. The oldest of",
            "them was acknowledged 302 ms before the kill.",
            "some?wait=1: A write is acknowledged when 1 replica has it. 0 of 3 kills lost any of 45,000 acknowledged",
            "(at 95 % confidence, at most 63 % of kills do)",
            "a client noticed it after 2.0 ms, the replica was a primary after 6.0 ms",
            "The other replicas followed the new primary after 3 of 3 kills, in sync 120 ms (120 ms to 120 ms)",
            "replica 2 did not: no link",
            "broken: This must not happen: 7 writes were acknowledged after 1 replica had them, and are gone",
            "dead: not tried: replica 1 cannot be promoted",
        ] {
            assert!(one_line.contains(words), "no '{words}' in\n{text}");
        }
    }
}

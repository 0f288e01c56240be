//! Which durability levels were put to the test, and what that makes of a run's headline and groups.

use std::collections::{BTreeMap, BTreeSet};

use kvfair_core::crash::{ClaimBasis, ClaimStanding, TESTED_LEAST, Tried};
use kvfair_core::record::Record;
use kvfair_core::trial::{Configuration, Durability};
use kvfair_core::units;
use kvfair_stats::never;

/// Notes in each record what was found out about its store's claim: of the same version, durability level, settings and
/// file system. What is behind a cache in the client keeps less than the store does, and was not tried.
pub fn note(records: &mut [Record], tried: &[Tried]) {
    for record in records {
        record.tried = tried.iter().rfind(|tried| is_about(tried, record)).map(Tried::standing);
    }
}

fn is_about(tried: &Tried, record: &Record) -> bool {
    let version = record.store.as_ref().map(|store| store.version.as_str());
    record.target.managed
        && record.target.cache.is_none()
        && record.configuration == Configuration::Matched
        && tried.store == record.target.store
        && Some(tried.version.as_str()) == version
        && tried.settings == record.target.settings
        && tried.level == record.durability
        && tried.ground.filesystem == record.machine.filesystem
        && tried.preloaded == record.machine.preloaded
}

/// "crash (tested: 20 kills, up to 14 % of kills could lose)", "crash (claimed: redis; tested (20 kills, up to 14 % of
/// kills could lose): lmdb)", "power (claimed: redis; claimed, tested crash: lmdb)".
pub fn in_words(records: &[Record]) -> String {
    let level = records.first().map_or(Durability::None, |record| record.durability);
    // Nothing has to survive: there is nothing to claim.
    if level == Durability::None {
        return level.to_string();
    }
    let mut by_standing: BTreeMap<(&'static str, String), BTreeSet<&str>> = BTreeMap::new();
    for record in records.iter().filter(|record| !record.target.baseline) {
        by_standing.entry(standing(record.tried.as_ref())).or_default().insert(&record.target.label);
    }
    if by_standing.len() < 2 {
        let (word, number) = by_standing.pop_first().map_or_else(|| standing(None), |(standing, _)| standing);
        return format!("{level} ({})", with_number(word, &number));
    }
    let parts = by_standing.into_iter().map(|((word, number), labels)| {
        let number = if number.is_empty() { number } else { format!(" ({number})") };
        format!("{word}{number}: {}", labels.into_iter().collect::<Vec<_>>().join(", "))
    });
    format!("{level} ({})", parts.collect::<Vec<_>>().join("; "))
}

/// Whether the level of a store is claimed by its settings, and rests on no test that is enough.
pub fn is_claimed(records: &[Record]) -> bool {
    let mut stores = records.iter().filter(|record| !record.target.baseline).peekable();
    let is_tested = |record: &Record| match &record.tried {
        Some(ClaimStanding::Holds(ClaimBasis::Kills(kills))) => *kills >= TESTED_LEAST,
        Some(ClaimStanding::Holds(_)) => true,
        Some(ClaimStanding::Demoted(_) | ClaimStanding::Unknown(_)) | None => false,
    };
    stores.peek().is_none() || stores.any(|record| !is_tested(record))
}

/// The word, and what it rests on where that is a number of tries.
fn standing(standing: Option<&ClaimStanding>) -> (&'static str, String) {
    match standing {
        Some(ClaimStanding::Holds(evidence)) => (word(*evidence), bound(*evidence)),
        Some(ClaimStanding::Demoted(Durability::None)) => ("claimed, tested none", String::new()),
        Some(ClaimStanding::Demoted(_)) => ("claimed, tested crash", String::new()),
        Some(ClaimStanding::Unknown(_)) | None => ("claimed", String::new()),
    }
}

fn with_number(word: &str, number: &str) -> String {
    if number.is_empty() { word.to_string() } else { format!("{word}: {number}") }
}

/// "Tested" from [`TESTED_LEAST`] tries on.
fn word(evidence: ClaimBasis) -> &'static str {
    match evidence {
        ClaimBasis::Kills(kills) if kills < TESTED_LEAST => "claimed",
        ClaimBasis::Kills(_) => "tested",
        ClaimBasis::Emulations(_) => "tested by emulation",
        ClaimBasis::Syncs => "syncs counted",
    }
}

/// "20 kills"; nothing where syncs were counted.
fn tries(evidence: ClaimBasis) -> String {
    match evidence {
        ClaimBasis::Kills(count) => units::counted(count as u64, "kill"),
        ClaimBasis::Emulations(count) => format!("{} losses of power", units::thousands(count as u64)),
        ClaimBasis::Syncs => String::new(),
    }
}

/// "20 kills, up to 14 % of kills could lose".
fn bound(evidence: ClaimBasis) -> String {
    let (count, what) = match evidence {
        ClaimBasis::Kills(count) => (count, "kills"),
        ClaimBasis::Emulations(count) => (count, "them"),
        ClaimBasis::Syncs => return String::new(),
    };
    format!("{}, up to {:.0} % of {what} could lose", tries(evidence), 100.0 * never::at_most(count))
}

/// The verdict as a table has it: "crash (tested: 20 kills)", "crash (claimed: 1 kill)", "power (tested by emulation)",
/// "power (syncs counted)", "crash (claimed power)", "power (claimed)".
pub fn verdict(tried: &Tried) -> String {
    let level = tried.level;
    match tried.standing() {
        ClaimStanding::Holds(evidence @ ClaimBasis::Kills(_)) => {
            format!("{level} ({})", with_number(word(evidence), &tries(evidence)))
        }
        ClaimStanding::Holds(evidence) => format!("{level} ({})", word(evidence)),
        ClaimStanding::Demoted(less) => format!("{less} (claimed {level})"),
        ClaimStanding::Unknown(_) => format!("{level} (claimed)"),
    }
}

/// The same in a list of stores: "tested 20261122T0200: 20 kills, up to 14 % of kills could lose".
pub fn dated(tried: &Tried, when: &str) -> String {
    match tried.standing() {
        ClaimStanding::Holds(evidence) => with_number(&format!("{} {when}", word(evidence)), &bound(evidence)),
        ClaimStanding::Demoted(less) => format!("claimed, but keeps only {less}: tested {when}"),
        ClaimStanding::Unknown(_) => "claimed".to_string(),
    }
}

/// What is no rival of those that keep the durability level: "crash (claimed power)".
pub fn demoted(record: &Record) -> Option<String> {
    match record.tried {
        Some(ClaimStanding::Demoted(less)) => Some(format!("{less} (claimed {})", record.durability)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kvfair_core::crash::{Audit, DiskFacts, Kill, Outages};
    use kvfair_core::record::Machine;

    const DISK: &str = "ext4 on /dev/vda";

    fn record(label: &str, version: &str) -> Record {
        let record = json!({
            "method": 2, "kvfair": "0", "run": {"began": "", "seeds": {"order": 1}, "blocks": 1, "answers_only": false},
            "block": 1, "position": 1,
            "target": {
                "label": label, "store": label, "transport": "unix", "settings": {}, "managed": true, "baseline": false
            },
            "durability": "power", "keeps": "", "clients": 1,
            "job": {
                "name": "", "data": {"recipe": {"name": "", "seed": 1}}, "format": "", "units": null, "skip_bad": 0
            },
            "stream": {"sha256": "", "unit": "", "units": 1, "ops": 1, "skipped_lines": 0},
            "store": {"version": version, "client_library": "", "increment": "", "settings": {}, "command": []},
            "outcome": {"kind": "finished"}, "verdict": {"kind": "baseline"}, "phases": [],
            "memory": {"client": {"anonymous_bytes": 0, "file_bytes": 0}, "server": null}, "bytes_on_disk": null,
            "machine": Machine { filesystem: DISK.to_string(), ..Machine::default() },
        });
        serde_json::from_value(record).expect("a record")
    }

    fn tried(store: &str, syncs: u64) -> Tried {
        Tried {
            store: store.to_string(),
            version: "1".to_string(),
            settings: BTreeMap::new(),
            level: Durability::Power,
            tried: String::new(),
            kvfair: String::new(),
            ground: DiskFacts { filesystem: DISK.to_string(), ..DiskFacts::default() },
            preloaded: Vec::new(),
            kills: vec![Kill { acknowledged: 10, ..Kill::default() }],
            audit: Audit::Counted { writes: 999, by: [("fsync".to_string(), syncs)].into() },
            outages: Outages::default(),
        }
    }

    fn killed(kills: usize) -> Tried {
        let kills = vec![Kill { acknowledged: 10, ..Kill::default() }; kills];
        Tried { level: Durability::Crash, kills, ..tried("a", 999) }
    }

    #[test]
    fn tested_is_said_from_twenty_kills_on_and_carries_their_number() {
        let record = |tried: &Tried| {
            let mut all = [Record { durability: Durability::Crash, ..record("a", "1") }];
            note(&mut all, std::slice::from_ref(tried));
            assert_eq!(is_claimed(&all), in_words(&all).contains("claimed"), "{}", in_words(&all));
            in_words(&all)
        };
        let (one, few, enough) = (killed(1), killed(19), killed(20));
        assert_eq!(record(&one), "crash (claimed: 1 kill, up to 95 % of kills could lose)");
        assert_eq!(record(&few), "crash (claimed: 19 kills, up to 15 % of kills could lose)");
        assert_eq!(record(&enough), "crash (tested: 20 kills, up to 14 % of kills could lose)");
        assert_eq!(verdict(&one), "crash (claimed: 1 kill)");
        assert_eq!(verdict(&enough), "crash (tested: 20 kills)");
        assert_eq!(dated(&enough, "today"), "tested today: 20 kills, up to 14 % of kills could lose");
        let emulated = Tried { outages: Outages::Emulated(enough.kills.clone()), ..tried("a", 999) };
        assert_eq!(verdict(&emulated), "power (tested by emulation)");
        assert_eq!(
            dated(&emulated, "today"),
            "tested by emulation today: 20 losses of power, up to 14 % of them could lose"
        );
        assert_eq!(verdict(&tried("a", 999)), "power (syncs counted)");
        assert_eq!(verdict(&tried("a", 3)), "crash (claimed power)");
    }

    #[test]
    fn several_standings_are_named_each_with_its_number() {
        let mut all = ["a", "b"].map(|label| Record { durability: Durability::Crash, ..record(label, "1") });
        note(&mut all, &[killed(20)]);
        assert_eq!(in_words(&all), "crash (claimed: b; tested (20 kills, up to 14 % of kills could lose): a)");
    }

    fn headline(tried: &[Tried]) -> (String, Vec<Option<String>>) {
        let mut records = [record("a", "1"), record("b", "1")];
        note(&mut records, tried);
        assert_eq!(is_claimed(&records), in_words(&records).contains("claimed"), "{}", in_words(&records));
        (in_words(&records), records.iter().map(demoted).collect())
    }

    #[test]
    fn what_was_tried_of_the_same_replaces_the_claim() {
        assert_eq!(headline(&[]).0, "power (claimed)");
        assert_eq!(headline(&[tried("a", 999), tried("b", 999)]).0, "power (syncs counted)");
        assert_eq!(headline(&[tried("a", 999)]).0, "power (claimed: b; syncs counted: a)");
        let (words, demoted) = headline(&[tried("a", 999), tried("b", 3)]);
        assert_eq!(words, "power (claimed, tested crash: b; syncs counted: a)");
        assert_eq!(demoted, [None, Some("crash (claimed power)".to_string())]);
    }

    #[test]
    fn what_was_tried_of_another_says_nothing() {
        let others = [
            Tried { version: "2".to_string(), ..tried("a", 999) },
            Tried { level: Durability::Crash, ..tried("a", 999) },
            Tried { settings: [("type".to_string(), "tree".to_string())].into(), ..tried("a", 999) },
            Tried { ground: DiskFacts::default(), ..tried("a", 999) },
            Tried { preloaded: vec!["/lib/nosync.so sha256 9f86".to_string()], ..tried("a", 999) },
            tried("c", 999),
        ];
        assert_eq!(headline(&others).0, "power (claimed)");
        let mut guest = record("a", "1");
        guest.target.managed = false;
        let mut all = [guest];
        note(&mut all, &[tried("a", 999)]);
        assert_eq!(all[0].tried, None, "a server by URL was never tried");
    }
}

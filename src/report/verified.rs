//! Which durability levels were put to the test, and what that makes of a run's headline and groups.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::crash::{ClaimStanding, Tried};
use crate::model::record::Record;
use crate::model::trial::{Configuration, Durability};

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
}

/// "crash (tested)", "crash (tested: lmdb; claimed: redis)", "power (claimed; tested: crash: redis)".
pub fn in_words(records: &[Record]) -> String {
    let level = records.first().map_or(Durability::None, |record| record.durability);
    let mut by_standing: BTreeMap<Cow<'static, str>, BTreeSet<&str>> = BTreeMap::new();
    for record in records.iter().filter(|record| !record.target.baseline) {
        by_standing.entry(standing(record)).or_default().insert(&record.target.label);
    }
    match by_standing.len() {
        0 => format!("{level} (claimed)"),
        1 => format!("{level} ({})", by_standing.keys().next().expect("there is one")),
        _ => {
            let parts = by_standing
                .into_iter()
                .map(|(standing, labels)| format!("{standing}: {}", labels.into_iter().collect::<Vec<_>>().join(", ")));
            format!("{level} ({})", parts.collect::<Vec<_>>().join("; "))
        }
    }
}

fn standing(record: &Record) -> Cow<'static, str> {
    match record.tried {
        Some(ClaimStanding::Holds) if record.durability == Durability::Power => "syncs counted".into(),
        Some(ClaimStanding::Holds) => "tested".into(),
        Some(ClaimStanding::Demoted(less)) => format!("claimed, tested {less}").into(),
        Some(ClaimStanding::Unknown(_)) | None => "claimed".into(),
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
    use crate::model::crash::{Audit, DiskFacts, Kill, Outages};
    use crate::model::record::Machine;

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
            kills: vec![Kill { acknowledged: 10, ..Kill::default() }],
            audit: Audit::Counted { writes: 999, by: [("fsync".to_string(), syncs)].into() },
            outages: Outages::default(),
        }
    }

    fn headline(tried: &[Tried]) -> (String, Vec<Option<String>>) {
        let mut records = [record("a", "1"), record("b", "1")];
        note(&mut records, tried);
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

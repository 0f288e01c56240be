//! Counting by additions: a cache in front of a store against the store alone, and a message's additions at once
//! against one after the other.

use kvfair::harness::serve;
use kvfair::model::record::Record;
use kvfair::model::trial::Transport;
use kvfair::stores::{self, Adapter};

use super::{Bench, Outcome, best};

const MESSAGES: &str = "10000";
/// Of the cache's speed to that of the store alone: over a socket it is always faster.
const OWED_EMBEDDED: f64 = 0.9;
/// In Java, or through a second server: they take minutes. Tokyo Tyrant is packaged nowhere, and its stand-in is no store.
const LEFT_OUT: &[&str] = &["cassandra", "mongodb", "ferretdb", "tokyotyrant"];

pub fn measure(bench: &Bench) -> Outcome {
    let chosen = stores::ALL.iter().filter(|store| !store.role.is_baseline() && store.role.is_offered());
    let chosen = chosen.filter(|store| !LEFT_OUT.contains(&store.name) && is_here(store));
    let found: Vec<Found> = chosen.map(|store| Found::of(bench, store)).collect();
    let missed = found.iter().filter(|found| !found.holds()).map(|found| found.name.as_str());
    let missed: Vec<&str> = missed.collect();
    let mut line = found.iter().map(Found::line).collect::<Vec<_>>().join("; ");
    line += &format!(
        " (owed of cached: over 1 for servers, {OWED_EMBEDDED} for embedded stores; of batch: over 1 for servers)"
    );
    if !missed.is_empty() {
        line += &format!("; missed by {}", missed.join(", "));
    }
    let has_servers = found.iter().any(|found| found.is_served);
    if !has_servers {
        line += "; no server is here";
    }
    Outcome { line, holds: missed.is_empty() && has_servers }
}

/// A server is its program; what is reached by URL alone has none.
fn is_here(store: &Adapter) -> bool {
    match store.server {
        Some(server) => serve::program(server).is_some(),
        None => (store.version)().is_ok(),
    }
}

struct Found {
    name: String,
    is_served: bool,
    /// Times as fast as the store alone.
    cached: f64,
    /// Times as fast as one addition after the other.
    batch: f64,
}

impl Found {
    fn of(bench: &Bench, store: &Adapter) -> Found {
        let is_served = store.server.is_some();
        let has_socket = store.transports.contains(&Transport::Unix);
        let name = if has_socket { format!("{}+unix", store.name) } else { store.name.to_string() };
        let cached = format!("cached:{name}");
        let records = bench.records(&[
            "ngrams",
            &name,
            &cached,
            "--via",
            "batch,native",
            "--messages",
            MESSAGES,
            "--blocks",
            "3",
            "--no-aa",
            "--verify",
            "sample",
        ]);
        let took_s = |label: &str| {
            let of = records.iter().filter(|record| record.target.label == label && record.block != 0);
            best(&of.filter_map(Record::took_s).collect::<Vec<_>>())
        };
        let native_s = took_s(&format!("{name} native"));
        Found {
            cached: native_s / took_s(&format!("{cached} native")),
            batch: native_s / took_s(&format!("{name} batch")),
            name,
            is_served,
        }
    }

    fn holds(&self) -> bool {
        if self.is_served { self.cached > 1.0 && self.batch > 1.0 } else { self.cached >= OWED_EMBEDDED }
    }

    fn line(&self) -> String {
        format!("{} cached {:.2}x, batch {:.2}x", self.name, self.cached, self.batch)
    }
}

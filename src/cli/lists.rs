//! What there is: stores and jobs, and a job's data.

use anyhow::{Result, anyhow};
use serde::Serialize;

use super::args::{DataOf, Stores};
use super::terminal::print_data;
use super::{Exit, Usage, find_job, planned, print, target, terminal, typed, verified};
use crate::harness::serve;
use crate::jobs;
use crate::model::crash::Tried;
use crate::model::trial::Durability;
use crate::model::units;
use crate::report::render::json;
use crate::report::table::wrap;
use crate::stores::features::{self, Featured};
use crate::stores::{self, Adapter, Role};

/// One store in `kvfair stores`.
#[derive(Serialize)]
struct Listed {
    store: &'static str,
    about: &'static str,
    /// Other words for it.
    also: Vec<&'static str>,
    targets: Vec<String>,
    /// What is here; `None` where it is missing.
    version: Option<String>,
    /// Why it cannot be used, and the command that gets it.
    missing: Option<String>,
    get_it: &'static str,
    /// The durability levels that it claims to keep, and how.
    keeps: Vec<(Durability, &'static str)>,
    /// What of them was put to the test on this machine: "claimed", "tested 20261122T0200".
    verified: Vec<(Durability, String)>,
    settings: Vec<String>,
}

/// A line for each store, or all that is known of those that are named.
pub fn stores(args: &Stores) -> Result<Exit> {
    let tried = verified::read();
    let listed = named(args)?.into_iter().map(|of| match of {
        Known::Store(adapter) => look_up(adapter, &tried),
        Known::NotBuilt(featured) => not_built(featured),
    });
    let listed: Vec<Listed> = listed.collect();
    let text = match args {
        Stores { json: true, .. } => json::object(&typed(), Exit::Ok, json::JsonTable { rows: &listed })?,
        Stores { names, .. } if names.is_empty() => overview(&listed),
        _ => listed.iter().map(in_full).collect(),
    };
    print(&text)?;
    Ok(Exit::Ok)
}

enum Known {
    Store(&'static Adapter),
    NotBuilt(&'static Featured),
}

/// The stores that are named, or all of them.
fn named(args: &Stores) -> Result<Vec<Known>> {
    if args.names.is_empty() {
        let offered = stores::ALL.iter().filter(|adapter| adapter.role.is_offered());
        return Ok(offered
            .map(|adapter| Known::Store(adapter))
            .chain(features::not_built().map(Known::NotBuilt))
            .collect());
    }
    let one = |name: &String| match features::not_built().find(|featured| featured.name == name) {
        Some(featured) => Ok(Known::NotBuilt(featured)),
        None => target::parse(name).map(|chosen| Known::Store(chosen.adapter)),
    };
    args.names.iter().map(|name| one(name).map_err(|error| anyhow!(Usage(format!("{error:#}"))))).collect()
}

/// A line for each store, and for each batch engine.
fn overview(listed: &[Listed]) -> String {
    let (here, missing): (Vec<_>, Vec<_>) = listed.iter().partition(|store| store.missing.is_none());
    let mut text = String::from("here:\n");
    here.iter().for_each(|store| text.push_str(&line(store.store, store.version.as_deref(), store.about)));
    if !missing.is_empty() {
        text.push_str("missing:\n");
        missing.iter().for_each(|store| text.push_str(&line(store.store, None, store.about)));
    }
    text.push_str("batch engines, which stand beside stores in `kvfair run ngrams`:\n");
    for engine in stores::ALL.iter().filter(|adapter| adapter.role == Role::Batch) {
        text.push_str(&line(engine.name, None, engine.about));
    }
    text + "`kvfair stores NAME` tells how to get a store, its durability levels and its settings.\n"
}

/// As much as one line of the terminal holds.
fn line(name: &str, version: Option<&str>, about: &str) -> String {
    let line = format!("  {name:<13} {:<9} {about}", version.unwrap_or("-"));
    let cut = line
        .char_indices()
        .nth(terminal::width())
        .map(|_| format!("{}…", line.chars().take(terminal::width() - 1).collect::<String>()));
    cut.unwrap_or(line) + "\n"
}

fn look_up(adapter: &'static Adapter, tried: &[Tried]) -> Listed {
    let found = match adapter.server {
        None => (adapter.version)(),
        Some(server) => serve::version(server),
    };
    let (version, missing) = match found {
        Ok(version) => (Some(version), None),
        Err(why) => (None, Some(why)),
    };
    let keeps: Vec<_> =
        Durability::ALL.into_iter().filter_map(|level| Some((level, (adapter.keeps)(level).ok()?))).collect();
    let promising = keeps.iter().filter(|(level, _)| *level != Durability::None);
    let of = |level| verified::of(tried, adapter, version.as_deref().unwrap_or_default(), level);
    let verified = promising.map(|(level, _)| (*level, of(*level))).collect();
    let settings =
        adapter.settings.iter().map(|setting| format!("{}={}: {}", setting.name, setting.default, setting.about));
    Listed {
        store: adapter.name,
        about: adapter.about,
        // A scheme of its socket is no other name of the store.
        also: adapter.schemes.iter().copied().filter(|name| *name != stores::SOCKET).collect(),
        targets: adapter.transports.iter().map(|transport| target::managed_name(adapter, *transport)).collect(),
        version,
        missing,
        get_it: adapter.get_it,
        keeps,
        verified,
        settings: settings.collect(),
    }
}

fn not_built(featured: &Featured) -> Listed {
    Listed {
        store: featured.name,
        about: featured.about,
        also: Vec::new(),
        targets: Vec::new(),
        version: None,
        missing: Some("not in this build".to_string()),
        get_it: features::GET_THEM,
        keeps: Vec::new(),
        verified: Vec::new(),
        settings: Vec::new(),
    }
}

fn in_full(store: &Listed) -> String {
    let version = store.version.as_deref().unwrap_or("-");
    let mut text = format!("  {:<13} {version:<9} {}\n", store.store, store.about);
    let mut more = |words: String| {
        for line in wrap(&words, 74) {
            text.push_str(&format!("  {:<23} {line}\n", ""));
        }
    };
    if !store.also.is_empty() {
        more(format!("also called {}", store.also.join(", ")));
    }
    match &store.missing {
        Some(why) => more(format!("{why}; get it: {}", store.get_it)),
        None => {
            let verified = |level| store.verified.iter().find(|(tried, _)| *tried == level);
            let keeps = store.keeps.iter().map(|(level, how)| match verified(*level) {
                Some((_, words)) => format!("{level}: {how} ({words})"),
                None => format!("{level}: {how}"),
            });
            let keeps: Vec<String> = keeps.collect();
            more(format!("targets {}; keeps {}", store.targets.join(", "), keeps.join("; ")));
        }
    }
    store.settings.iter().for_each(|setting| more(format!("?{setting}")));
    text
}

pub fn jobs() -> Result<Exit> {
    let mut text = String::new();
    for job in jobs::ALL {
        text.push_str(&format!("{}\n", job.name));
        wrap(job.about, 96).iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        text.push_str(&match job.recipe {
            "" => format!("  data     a recording, all of it or its first {}s (--{})\n", job.unit, job.scale),
            recipe => format!(
                "  data     recipe {recipe}, seed {} (--seed), {} {}s (--{})\n",
                job.default_seed,
                units::thousands(job.default_units),
                job.unit,
                job.scale
            ),
        });
        text.push_str(&match &job.requests {
            Some(asked) => format!("  clients  --clients {}; also {}\n", asked.clients, asked.options.join(", ")),
            None => format!("  files    --input FILE: {}, each also .gz or .zst\n", job.formats.join(", ")),
        });
    }
    print(&text)?;
    Ok(Exit::Ok)
}

pub fn data(args: &DataOf) -> Result<Exit> {
    let job = find_job(&args.job)?;
    if job.recipe.is_empty() {
        let what = format!("the job {} has no data of its own: it replays a file that was recorded", job.name);
        return Err(anyhow!(Usage(what)));
    }
    let units = planned::units_of(&args.size, job)?.unwrap_or(job.default_units);
    let seed = args.size.seed.unwrap_or(job.default_seed);
    print_data(|out| (job.data)(seed, units, out))?;
    Ok(Exit::Ok)
}

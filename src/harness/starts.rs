//! Whether a server starts at all and what it says that it is, before anything is measured.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::plan::{Chosen, Plan};
use super::serve::{self, Served, Site, Unserved};
use super::signals::Interrupt;
use crate::model::logins;
use crate::stores::Launch;

/// A server that takes longer is tried in its trials alone.
const START: Duration = Duration::from_secs(60);

/// Starts the server of a target in an empty directory below `scratch` and stops it again. What it said of its version;
/// nothing of a store that kvfair does not start.
pub fn version(plan: &Plan, chosen: &Chosen, scratch: &Path, interrupt: &Interrupt) -> Result<Option<String>, String> {
    if chosen.adapter.server.is_none() || chosen.place.is_some() {
        return Ok(None);
    }
    let directory = scratch.join("start");
    let data = directory.join("data");
    let made = fs::create_dir_all(&data).and_then(|()| data.canonicalize());
    let data = made.map_err(|error| format!("cannot make {}: {error}", data.display()))?;
    let launch = Launch {
        durability: plan.durability,
        configuration: plan.configuration,
        clients: plan.clients_of(chosen),
        ..chosen.launch(&data, plan.timeout)
    };
    let site = Site { data: &data, scratch: &directory, prepared: None, is_guarded: true };
    let transport = chosen.target.transport;
    let served = serve::start(&[], chosen.adapter, transport, &launch, site, START.min(plan.timeout), interrupt);
    let told = served.map(|served| (served.facts.version.clone(), served)).map(|(version, served)| {
        let stopped = Served::stop(served);
        stopped.map(|()| version)
    });
    let _ = fs::remove_dir_all(&directory);
    let secrets: Vec<String> = chosen.login.password.iter().flat_map(|password| logins::forms(password)).collect();
    let why = match told {
        Ok(stopped) => return stopped.map(Some),
        Err(Unserved::Missing(why) | Unserved::Failed(why)) => why,
        Err(Unserved::Interrupted) => super::signals::INTERRUPTED.to_string(),
    };
    Err(logins::without(why, &secrets))
}

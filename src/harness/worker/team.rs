//! A trial whose clients are driven by agents: this process fills the store and reads it back, and adds up what they
//! saw in between.

use std::cell::RefCell;
use std::path::Path;
use std::time::Instant;

use super::{BEAT, Early, Stage, boundary, reach};
use crate::harness::agents::{Team, Trouble};
use crate::harness::child::tell;
use crate::harness::task::{Event, PartSeen, TrialTask};
use crate::jobs::Part;
use crate::model::load::At;
use crate::stores::Store;

impl From<Trouble> for Early {
    fn from(trouble: Trouble) -> Early {
        match trouble {
            Trouble::Refused(reason) | Trouble::Apart(_, reason) => Early::Refused(reason),
            Trouble::Failed(reason) => Early::Failed(reason),
            Trouble::Wrong(wrong) => Early::Wrong(wrong),
        }
    }
}

/// The agents of a trial, at work and waiting for their first part; none where it has none.
pub(super) fn started(trial: &TrialTask) -> Result<Option<RefCell<Team>>, Early> {
    if trial.agents.is_empty() {
        return Ok(None);
    }
    let directory = trial.expected.parent().unwrap_or(Path::new("."));
    // Whoever wants a trial to stop kills this process.
    let mut team = Team::greet(&trial.agents, directory, trial.launch.patience, &|| false)?;
    team.work(trial);
    tell(&Event::Agents(team.agents().to_vec(), team.processes_here()));
    Ok(Some(RefCell::new(team)))
}

/// A part of a point by all of them. Where that fails, all have ended and none writes any more.
pub(super) fn drive(
    stage: &Stage<'_>,
    store: &dyn Store,
    team: &mut Team,
    part: Part,
    at: At,
) -> Result<PartSeen, Early> {
    let driven = made_ready(stage, store).and_then(|()| driven(stage, team, part, at));
    if driven.is_err() {
        team.end();
    }
    driven
}

/// The first session makes the tables. Agents that made them at the same time would get errors from some servers.
fn made_ready(stage: &Stage<'_>, store: &dyn Store) -> Result<(), Early> {
    store.session().map(drop).map_err(|fault| reach(&stage.trial.launch.place, &fault))
}

fn driven(stage: &Stage<'_>, team: &mut Team, part: Part, at: At) -> Result<PartSeen, Early> {
    team.connect(part, at)?;
    boundary(&Event::Begins(part));
    let (finished, mut told) = (stage.finished.get(), Instant::now());
    let mut heard = |units| {
        if told.elapsed() >= BEAT {
            told = Instant::now();
            tell(&Event::Progress(finished + units));
        }
    };
    let driven = team.drive(&mut heard);
    if let Err(Trouble::Apart(apart_ms, _)) = driven {
        tell(&Event::AgentsApart(apart_ms));
    }
    Ok(driven?)
}

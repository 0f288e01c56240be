//! Replicas of a server of ours: each is started after its primary, follows it over a link of its own, and is waited
//! for until both are in sync. It does not know what is measured.
//!
//! `start` gives back replicas that are in sync. `wait_for` waits again, at the end of a trial for example: it needs
//! two open stores, not the processes. `Servers` is a primary with its replicas,
//! as a trial holds them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::network::Proxy;
use super::remote_place;
use super::serve::{self, Served, Site, Unserved};
use super::signals::{INTERRUPTED, Interrupt};
use crate::model::trial::Transport;
use crate::stores::replication::{self, LogPosition};
use crate::stores::{Adapter, Launch, Place, Store};

/// How often a replica that is not in sync is asked.
const PAUSE: Duration = Duration::from_millis(5);

/// A replica that runs.
pub struct Replica {
    /// As messages call it: "replica 1".
    pub name: String,
    pub served: Served,
    /// Its files.
    pub data: PathBuf,
    /// What stands for the way from its primary, where a delay is asked for.
    link: Option<Proxy>,
}

/// How replicas are started.
#[derive(Clone, Copy)]
pub struct Start<'a> {
    /// The command that starts each of them; empty where none does.
    pub under: &'a [String],
    pub adapter: &'static Adapter,
    pub transport: Transport,
    /// Each replica has a directory of its own in here.
    pub directory: &'a Path,
    /// For each replica to answer, and for all of them together to be in sync.
    pub limit: Duration,
    pub interrupt: &'a Interrupt,
}

/// A server of ours with its replicas; most have none.
pub struct Servers {
    pub primary: Served,
    pub replicas: Vec<Replica>,
}

impl Servers {
    /// The server, followed by as many replicas as the settings of its `launch` ask for, all in sync.
    pub fn follow(primary: Served, launch: &Launch, how: &Start<'_>) -> Result<Servers, Unserved> {
        let replicas = start(&primary, launch, how)?;
        Ok(Servers { primary, replicas })
    }

    /// How clients reach the primary, and with the same login its replicas.
    pub fn reached(&self, launch: &Launch) -> Launch {
        let replicas = self.replicas.iter().map(|replica| replica.served.place.clone()).collect();
        Launch { replicas, ..self.primary.reached(launch) }
    }

    /// How the first of them that is no longer there has ended.
    pub fn ending_within(&mut self, limit: Duration) -> Option<String> {
        let of_replica = |replica: &mut Replica| {
            let ending = replica.served.ending_within(Duration::ZERO)?;
            Some(format!("{}: {ending}", replica.name))
        };
        self.primary.ending_within(limit).or_else(|| self.replicas.iter_mut().find_map(of_replica))
    }

    /// Stops all of them. Replicas are stopped first: a primary may wait for those that lag behind.
    pub fn stop(self) -> Result<(), String> {
        let stopped: Vec<_> = self.replicas.into_iter().map(Replica::stop).collect();
        self.primary.stop().and(stopped.into_iter().collect())
    }
}

/// Starts as many replicas of `primary` as the settings of `launch` ask for and waits until all are in sync. Where one
/// is not, all that were started are ended, and the error names it. `launch` is the one that the primary was started
/// with.
pub fn start(primary: &Served, launch: &Launch, how: &Start<'_>) -> Result<Vec<Replica>, Unserved> {
    let launch = primary.reached(launch);
    // A replica that is dropped is killed.
    let mut replicas = Vec::new();
    for number in 1..=replication::count(&launch.settings) {
        let name = name(number);
        let started = start_one(&name, &launch, how);
        replicas.push(started.map_err(|unserved| of_replica(&name, unserved))?);
    }
    let end = Instant::now() + how.limit;
    for replica in &mut replicas {
        replica.wait_until_in_sync(&launch, how, end)?;
    }
    Ok(replicas)
}

/// What messages call the replica of that number, counted from 1.
pub fn name(number: u32) -> String {
    format!("replica {number}")
}

fn start_one(name: &str, launch: &Launch, how: &Start<'_>) -> Result<Replica, Unserved> {
    let failed = Unserved::Failed;
    let directory = how.directory.join(name.replace(' ', "-"));
    let data = directory.join("data");
    // Some servers take no directory that others may enter.
    let private = || fs::set_permissions(&data, fs::Permissions::from_mode(0o700));
    let made = fs::create_dir_all(&data).and_then(|()| private()).and_then(|()| data.canonicalize());
    let data = made.map_err(|error| failed(format!("cannot make {}: {error}", data.display())))?;
    let link = link(how.adapter, launch, &launch.place, &directory).map_err(failed)?;
    let follows = link.as_ref().map_or(&launch.place, |link| &link.place).clone();
    let place = Place::Path(data.clone());
    let launch = Launch { place, follows: Some(follows), ..launch.clone() };
    let site = Site { data: &data, scratch: &directory, prepared: None, is_guarded: false };
    let served = serve::start(how.under, how.adapter, how.transport, &launch, site, how.limit, how.interrupt)?;
    Ok(Replica { name: name.to_string(), served, data, link })
}

/// What stands for the way to `server`, where the settings of `launch` ask for a delay. Its files are in `directory`.
pub fn link(adapter: &Adapter, launch: &Launch, server: &Place, directory: &Path) -> Result<Option<Proxy>, String> {
    let Some(delay) = replication::link_delay(&launch.settings) else { return Ok(None) };
    let runs_as = remote_place::who(adapter.server.and_then(|server| server.instead_of_root))?;
    let link = Proxy::link(server, delay, runs_as.map(|user| user.id()), directory);
    link.map(Some).map_err(|error| format!("{error:#}"))
}

impl Replica {
    /// How clients reach it; `launch` is the primary's.
    pub fn reached(&self, launch: &Launch) -> Launch {
        Launch { follows: Some(launch.place.clone()), replicas: Vec::new(), ..self.served.reached(launch) }
    }

    fn wait_until_in_sync(&mut self, primary: &Launch, how: &Start<'_>, end: Instant) -> Result<(), Unserved> {
        let reached = self.reached(primary);
        let opened = |launch: &Launch| (how.adapter.open)(launch).map_err(|fault| Unserved::Failed(fault.to_string()));
        let (primary, replica) = (opened(primary)?, opened(&reached)?);
        let limit = end.saturating_duration_since(Instant::now());
        let waited = wait_for(&self.name, primary.as_ref(), replica.as_ref(), limit, &|| how.interrupt.is_set());
        let Err(why) = waited else { return Ok(()) };
        if how.interrupt.is_set() {
            return Err(Unserved::Interrupted);
        }
        // A replica that has ended has told why itself.
        let ending = self.served.ending_within(Duration::ZERO);
        Err(Unserved::Failed(ending.map_or(why, |ending| format!("{} ended: {ending}", self.name))))
    }

    /// Ends the replica and its link.
    pub fn stop(self) -> Result<(), String> {
        let stopped = self.served.stop();
        if let Some(link) = self.link {
            link.stop();
        }
        stopped.map_err(|why| format!("{}: {why}", self.name))
    }
}

/// Waits until a replica has applied all that its primary has written by now. How long that took, or what was
/// missing at the limit. The replica itself is asked: what it has only received does not count.
pub fn wait_for(
    name: &str,
    primary: &dyn Store,
    replica: &dyn Store,
    limit: Duration,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Duration, String> {
    let began = Instant::now();
    let told = primary.log_position().map_err(|fault| format!("{name}: its primary does not tell its log: {fault}"))?;
    let aim = told.ok_or_else(|| format!("{name}: its primary tells no position in a log"))?.bytes;
    loop {
        let lacks = match replica.log_position() {
            Ok(Some(LogPosition { bytes, is_linked: true })) if bytes >= aim => return Ok(began.elapsed()),
            Ok(Some(LogPosition { is_linked: false, .. })) => "it has no working link to its primary".to_string(),
            Ok(Some(LogPosition { bytes, .. })) => {
                format!("it has applied {bytes} of {aim} bytes of its primary's log")
            }
            Ok(None) => "it tells no position in a log".to_string(),
            Err(fault) => fault.to_string(),
        };
        if is_stopped() {
            return Err(INTERRUPTED.to_string());
        }
        if began.elapsed() >= limit {
            return Err(format!("{name} was not in sync within {:.1} s: {lacks}", limit.as_secs_f64()));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Names the replica that does not start.
fn of_replica(name: &str, unserved: Unserved) -> Unserved {
    match unserved {
        Unserved::Failed(why) => Unserved::Failed(format!("{name}: {why}")),
        Unserved::Missing(why) => Unserved::Missing(format!("{name}: {why}")),
        Unserved::Interrupted => Unserved::Interrupted,
    }
}

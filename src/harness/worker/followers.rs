//! A store with replicas in a trial's child: every phase begins with all servers in sync, and the end state must hold
//! on each of them.

use std::thread;
use std::time::Duration;

use super::{Early, reach};
use crate::harness::oracle::Compared;
use crate::harness::replicas;
use crate::loadgen::replicated::Replicas;
use crate::model::op::Wrong;
use crate::model::record::Verdict;
use crate::stores::{Adapter, Launch, Store, replication};

/// The longest that replicas may take to apply what a phase has left them.
const CATCH_UP: Duration = Duration::from_secs(60);

/// The replicas that a launch names, each as a store of its own; nothing where it names none.
pub(super) fn open(adapter: &Adapter, launch: &Launch) -> Result<Option<Replicas>, Early> {
    if launch.replicas.is_empty() {
        return Ok(None);
    }
    let opened = launch.replicas.iter().map(|place| {
        let follows = Some(launch.place.clone());
        let own = Launch { place: place.clone(), follows, replicas: Vec::new(), ..launch.clone() };
        (adapter.open)(&own).map_err(|fault| reach(place, &fault))
    });
    Ok(Some(Replicas::new(opened.collect::<Result<_, _>>()?, replication::read_from(&launch.settings))))
}

/// Before a phase: waits until all servers hold the same.
pub(super) fn begin(replicas: Option<&Replicas>, primary: &dyn Store, launch: &Launch) -> Result<(), Early> {
    let Some(replicas) = replicas else { return Ok(()) };
    catch_up(replicas, primary, launch)?;
    replicas.observer.begin();
    Ok(())
}

/// Waits until each replica has all that the primary has now. How many seconds each took.
pub(super) fn catch_up(replicas: &Replicas, primary: &dyn Store, launch: &Launch) -> Result<Vec<f64>, Early> {
    let limit = launch.patience.min(CATCH_UP);
    let waited: Result<Vec<f64>, String> = thread::scope(|scope| {
        let one = |(store, number): (&'_ dyn Store, u32)| {
            replicas::wait_for(&replicas::name(number), primary, store, limit, &|| false)
        };
        let stores = replicas.stores.iter().map(|store| store.as_ref()).zip(1..);
        let waits: Vec<_> = stores.map(|store| scope.spawn(move || one(store))).collect();
        let ended = waits.into_iter().map(|wait| wait.join().expect("a wait does not panic"));
        ended.map(|waited| waited.map(|time| time.as_secs_f64())).collect()
    });
    waited.map_err(Early::Failed)
}

/// The verdict about the primary and each replica, which hold the same by now. The first that is wrong decides,
/// and is named.
pub(super) fn judge(
    replicas: Option<&Replicas>,
    primary: &dyn Store,
    judge: impl Fn(&dyn Store) -> Result<Compared, Early>,
) -> Result<Compared, Early> {
    let of_primary = judge(primary)?;
    for (store, number) in replicas.iter().flat_map(|replicas| &replicas.stores).zip(1..) {
        if !matches!(of_primary.verdict, Verdict::Right(_)) {
            break;
        }
        let name = replicas::name(number);
        let compared = judge(store.as_ref()).map_err(|early| early.and(&format!("on {name}")))?;
        if let Verdict::Wrong { first, wrong_keys, checked } = compared.verdict {
            let first = Wrong { found: format!("{} on {name}", first.found), ..first };
            return Ok(Compared { verdict: Verdict::Wrong { first, wrong_keys, checked }, ..compared });
        }
    }
    Ok(of_primary)
}

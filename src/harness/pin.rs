//! Servers on processors of their own and clients on the others, or one target's server on some of the processors.

use std::collections::BTreeMap;

use super::process;
use crate::model::trial::Pinned;

/// The program that starts another one on certain processors, of util-linux.
const TASKSET: &str = "taskset";

/// The setting of a target that gives its server some of the processors: `half`, `all` or so many.
pub const PROCESSORS: &str = "processors";

/// Its values that are worth trying, the usual one last: what a server leaves is there for its clients.
pub const SHARES: [&str; 2] = ["half", "all"];

/// The processors that we may run on, in halves; why there are none where that cannot be done.
pub fn halves() -> Result<Pinned, String> {
    may_give().and_then(halves_of).map_err(|why| format!("--pin {why}"))
}

/// The command that starts a server on so many of the processors that we may run on; nothing where that is all.
pub fn of_a_target(share: &str) -> Result<Vec<String>, String> {
    if share == "all" {
        return Ok(Vec::new());
    }
    let all = may_give()?;
    let count = all.len();
    if share == "half" {
        return Ok(under(&halves_of(all)?.server));
    }
    let first = |number: &usize| under(&cores(all)[..].concat()[..*number]);
    let number = share.parse::<usize>().ok().filter(|number| (1..=count).contains(number));
    number.as_ref().map(first).ok_or_else(|| format!("takes half, all or a number from 1 to {count}"))
}

fn halves_of(all: Vec<u32>) -> Result<Pinned, String> {
    let count = all.len();
    split(&cores(all)).ok_or_else(|| format!("needs two processors or more, and there is {count}"))
}

/// The processors that we may run on, and can give away.
fn may_give() -> Result<Vec<u32>, String> {
    let all = allowed()?;
    match process::on_path(TASKSET) {
        Some(_) => Ok(all),
        None => Err(format!("needs the program {TASKSET} (util-linux)")),
    }
}

/// The command that starts a server on its processors; nothing where it may have all.
pub fn server(pinned: &Option<Pinned>) -> Vec<String> {
    pinned.as_ref().map_or_else(Vec::new, |pinned| under(&pinned.server))
}

/// The same for clients.
pub fn clients(pinned: &Option<Pinned>) -> Vec<String> {
    pinned.as_ref().map_or_else(Vec::new, |pinned| under(&pinned.clients))
}

fn under(processors: &[u32]) -> Vec<String> {
    let list: Vec<String> = processors.iter().map(u32::to_string).collect();
    [TASKSET, "--cpu-list", &list.join(",")].map(str::to_string).to_vec()
}

#[cfg(target_os = "linux")]
fn allowed() -> Result<Vec<u32>, String> {
    use nix::sched::{CpuSet, sched_getaffinity};
    use nix::unistd::Pid;

    let set = sched_getaffinity(Pid::from_raw(0)).map_err(|error| format!("cannot see our processors: {error}"))?;
    Ok((0..CpuSet::count()).filter(|&number| set.is_set(number).unwrap_or(false)).map(|number| number as u32).collect())
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Result<Vec<u32>, String> {
    Err("works on Linux only".to_string())
}

/// Processors that are one core share what they are made of, so that they belong to one side.
/// <https://docs.kernel.org/admin-guide/cputopology.html>
fn cores(processors: Vec<u32>) -> Vec<Vec<u32>> {
    let mut cores: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for number in processors {
        let told =
            std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list"));
        // Where that is not told each is taken for a core.
        cores.entry(told.unwrap_or_else(|_| number.to_string())).or_default().push(number);
    }
    let mut cores: Vec<_> = cores.into_values().collect();
    cores.sort();
    cores
}

/// Half of the cores for servers, and the other half, or one more, for clients. Where there is but one core its
/// processors are split.
fn split(cores: &[Vec<u32>]) -> Option<Pinned> {
    if let [one] = cores {
        let single: Vec<_> = one.iter().map(|&number| vec![number]).collect();
        return if single.len() < 2 { None } else { split(&single) };
    }
    let (server, clients) = cores.split_at(cores.len() / 2);
    let sorted = |cores: &[Vec<u32>]| {
        let mut all = cores.concat();
        all.sort();
        all
    };
    (!server.is_empty()).then(|| Pinned { server: sorted(server), clients: sorted(clients) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_never_shared_unless_there_is_but_one() {
        let halves = |cores: &[&[u32]]| {
            let cores: Vec<Vec<u32>> = cores.iter().map(|core| core.to_vec()).collect();
            split(&cores).map(|Pinned { server, clients }| (server, clients))
        };
        assert_eq!(halves(&[&[0], &[1]]), Some((vec![0], vec![1])));
        assert_eq!(halves(&[&[0, 4], &[1, 5], &[2, 6], &[3, 7]]), Some((vec![0, 1, 4, 5], vec![2, 3, 6, 7])));
        assert_eq!(halves(&[&[2], &[5], &[9]]), Some((vec![2], vec![5, 9])));
        assert_eq!(halves(&[&[0, 1]]), Some((vec![0], vec![1])));
        assert_eq!(halves(&[&[3]]), None);
        assert_eq!(halves(&[]), None);
    }

    #[test]
    fn a_program_is_started_on_its_processors() {
        let pinned = Some(Pinned { server: vec![0, 2], clients: vec![1] });
        assert_eq!(server(&pinned), ["taskset", "--cpu-list", "0,2"]);
        assert_eq!(clients(&pinned), ["taskset", "--cpu-list", "1"]);
        assert_eq!((server(&None), clients(&None)), (Vec::new(), Vec::new()));
    }
}

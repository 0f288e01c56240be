//! Which processes descend from which.

use procfs::process::Process;

/// A process and all that descend from it and still live.
pub fn family(root: u32) -> Vec<u32> {
    let mut members = vec![root];
    let mut next = 0;
    while next < members.len() {
        members.extend(children(members[next]));
        next += 1;
    }
    members
}

/// The most lists of children that are read.
const LISTS: usize = 8;

/// The children of a process, zombies included. The kernel's list may lack a live child if another one ends meanwhile
/// (proc_pid_task(5), `children`). So lists are read until one has nothing new.
pub fn children(parent: u32) -> Vec<u32> {
    let mut known = listed(parent);
    for _ in 1..LISTS {
        let new: Vec<u32> = listed(parent).into_iter().filter(|child| !known.contains(child)).collect();
        if new.is_empty() {
            break;
        }
        known.extend(new);
    }
    known
}

fn listed(parent: u32) -> Vec<u32> {
    let children = Process::new(parent as i32).and_then(|process| {
        let tasks = process.tasks()?.flatten();
        Ok(tasks.filter_map(|task| task.children().ok()).flatten().collect::<Vec<_>>())
    });
    children.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use super::*;

    /// Two hundred older children end while the list is read.
    #[test]
    fn a_child_that_lives_is_listed_while_others_end() {
        let script = "for i in $(seq 100 300); do sleep 0.$i & done; exec 3>&1; sleep 20 >/dev/null & echo $! >&3; exec >&- 3>&-; wait";
        let mut shell = Command::new("bash").args(["-c", script]).stdout(Stdio::piped()).spawn().expect("bash");
        let mut line = String::new();
        let mut told = BufReader::new(shell.stdout.take().expect("a pipe"));
        told.read_line(&mut line).expect("a line");
        let lives: u32 = line.trim().parse().expect("a number");
        let (began, mut lacking, mut lists) = (Instant::now(), 0, 0);
        while began.elapsed().as_secs_f64() < 0.5 {
            lists += 1;
            lacking += u32::from(!children(shell.id()).contains(&lives));
        }
        for pid in [lives, shell.id()] {
            let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
        }
        let _ = shell.wait();
        assert_eq!(lacking, 0, "of {lists} lists");
    }
}

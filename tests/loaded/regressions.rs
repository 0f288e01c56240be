//! A limit for regressions, and what is far beyond the noise, on a machine with others at work.

use crate::common::desk::Desk;
use crate::common::load::{alone, so_many_spinners, spinners};
use crate::common::slower::slower_redis;

/// On a noisy machine a regression may be unclear, but it is never called good; and only the time ends the run.
#[cfg(target_os = "linux")]
#[test]
fn a_server_that_burns_15_us_a_write_is_never_called_good() {
    let _alone = alone();
    let desk = Desk::with_only(&["redis-server"]);
    let slower = slower_redis(&desk, 15);
    let load = so_many_spinners(&desk, 2);
    let compare = ["compare", "getset", "--base", "redis+unix", "--head", &slower, "--fail-if", "slower:5%"];
    let job = ["--only", "set", "--clients", "1", "--requests", "5000", "--records", "1000", "--budget", "15s"];
    let said = desk.run(&[&compare[..], &job[..]].concat());
    drop(load);
    let is_exceeded = said.err.contains("slower:5% is exceeded");
    assert!(!said.err.contains("slower:5% is kept"), "{}", said.err);
    said.exits(if is_exceeded { 5 } else { 6 });
    // A slow machine has time for fewer blocks than any claim needs, and says so before.
    let few = said.err.contains("blocks are run, from which nothing is claimed");
    assert!(few || said.err.contains("stopped: no further block fitted into the time"), "{}", said.err);
}

/// With others on every processor no block is quiet. A store that takes many times as long is claimed to do so all the
/// same, by the near end of its interval.
#[cfg(target_os = "linux")]
#[test]
fn on_a_machine_that_is_never_quiet_what_is_evident_is_claimed() {
    let _alone = alone();
    let desk = Desk::with_only(&["redis-server"]);
    let slower = slower_redis(&desk, 500);
    let load = spinners(&desk);
    let run = ["run", "getset", "--only", "set", "--clients", "1", "--requests", "200", "--records", "100"];
    let said = desk.run(&[&run[..], &["--blocks", "6", "--wide", "lmdb", &slower]].concat());
    drop(load);
    said.exits(0).shows("noisy: ").shows("warning (discarded): ").complains("blocks, so all blocks count");
    said.shows("lmdb took least time; slower at least ");
}

//! A server that got slower, and a limit for regressions, on a machine with others at work.

use crate::common::desk::{Desk, real};
use crate::common::load::so_many_spinners;

/// A Redis that burns so many microseconds of CPU more for each write, as a target.
pub fn slower_redis(desk: &Desk, burn_us: u32) -> String {
    use std::os::unix::fs::PermissionsExt;
    let (library, program) = (desk.home().join("burn.so"), desk.home().join("slower-redis"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/burn.c");
    let mut build = std::process::Command::new("cc");
    build.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).arg("-ldl");
    assert!(build.status().expect("a C compiler").success());
    let script = format!(
        "#!/bin/sh\nLD_PRELOAD='{}' KVFAIR_TEST_BURN_US={burn_us} exec '{}' \"$@\"\n",
        library.display(),
        real("redis-server").display()
    );
    std::fs::write(&program, script).expect("a script");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    "redis+unix?program=./slower-redis&name=slower".to_string()
}

/// On a noisy machine a regression may be unclear, but it is never called good; and only the time ends the run.
#[cfg(target_os = "linux")]
#[test]
fn a_server_that_burns_15_us_a_write_is_never_called_good() {
    let desk = Desk::with_only(&["redis-server"]);
    let slower = slower_redis(&desk, 15);
    let load = so_many_spinners(&desk, 2);
    let compare = ["compare", "getset", "--base", "redis+unix", "--head", &slower, "--fail-if", "slower:5%"];
    let job = ["--only", "set", "--clients", "1", "--requests", "5000", "--records", "1000", "--budget", "20s"];
    let said = desk.run(&[&compare[..], &job[..]].concat());
    drop(load);
    assert!(matches!(said.code, 5 | 6), "{:?}: {}{}", said.code, said.out, said.err);
    // A slow machine has time for fewer blocks than any claim needs, and says so before.
    let few = said.err.contains("blocks are run, from which nothing is claimed");
    assert!(few || said.err.contains("stopped: no further block fitted into the time"), "{}", said.err);
}

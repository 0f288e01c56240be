//! A server that is slower than another of its kind.

use super::desk::{Desk, real};

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

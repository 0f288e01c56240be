//! A rate whose load generator has too little of a processor.

use nix::sys::signal::Signal;

use crate::common::desk::{Desk, Started};
use crate::common::load::alone;

/// The first processor that we may use, as taskset(1) wants it.
fn first_processor() -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("our own status");
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("what we may use");
    allowed.trim().split([',', '-']).next().expect("a number").to_string()
}

/// Who has to share its processor with three that never rest asks too late, and blames no store for it.
#[test]
fn a_generator_that_is_starved_is_limited_by_the_client() {
    let _alone = alone();
    let desk = Desk::new();
    let processor = first_processor();
    let spin = ["-c", &processor, "sh", "-c", "while :; do :; done"];
    let spinners = [(); 3].map(|()| Started::new(desk.command("taskset", &spin)));
    let asked = "run getset redis+unix --only get --rate 2k --requests 6000 --records 300 --blocks 1";
    let arguments: Vec<&str> =
        ["-c", &processor, env!("CARGO_BIN_EXE_kvfair")].into_iter().chain(asked.split(' ')).collect();
    let said = Started::new(desk.command("taskset", &arguments)).wait();
    spinners.iter().for_each(|spinner| spinner.interrupt(Signal::SIGKILL));
    said.exits(0)
        .shows("ms*")
        .shows("requests sent too late; not ranked")
        .shows("1 of 1 points are limited by the client and not ranked");
}

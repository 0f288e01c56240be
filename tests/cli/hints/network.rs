//! A network with nothing in it but the servers and the names of hosts that a script makes: ports that users' servers
//! have are free there.

use std::process::Command;

use nix::sys::signal::Signal;

use crate::common::desk::{Desk, Started, wait_for};
use crate::common::needs::Need;

pub struct Network {
    /// The script, which lives as long as the network does.
    holder: Started,
}

impl Network {
    pub fn need() -> Need {
        let made =
            Command::new("unshare").args(["--user", "--map-root-user", "--net", "--mount", "ip", "link"]).output();
        let is_met = made.is_ok_and(|output| output.status.success());
        Need::new("network namespaces", is_met, "run the tests where unshare is permitted, with iproute2")
    }

    /// The script ends with `ready`, a file of the desk, and stays.
    pub fn start(desk: &Desk, script: &str) -> Network {
        let kept = ["--user", "--map-root-user", "--net", "--mount", "sh", "-ec", script];
        let mut network = Network { holder: Started::new(desk.command("unshare", &kept)) };
        wait_for("the servers of a network", || {
            assert!(network.holder.is_running(), "the script of a network ended");
            desk.home().join("ready").exists().then_some(())
        });
        network
    }

    /// A shell's line in it.
    pub fn shell(&self, desk: &Desk, line: &str) -> Command {
        let there = self.holder.id().to_string();
        let here = format!("--wdns={}", desk.home().display());
        let enter = ["--target", &there, "--user", "--net", "--mount", "--preserve-credentials", &here];
        desk.command("nsenter", &[&enter[..], &["/bin/sh", "-c", line]].concat())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.holder.interrupt(Signal::SIGKILL);
    }
}

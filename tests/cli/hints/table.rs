//! The table of hints: a command as it is typed, the hint that it prints, and the command mended as the hint says.
//! Words that only `begun` are those of a command that takes minutes: it is interrupted once it has its first results.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kvfair::model::trial::Transport;
use nix::sys::signal::Signal;

use super::network::Network;
use super::{files, hosts, options, targets};
use crate::cli::forms::results;
use crate::cli::strangers::port_of;
use crate::common;
use crate::common::desk::{Desk, Said, Started, one_line, wait_for};
use crate::common::needs::needs;

/// A list whose end depends on what is installed ends so in the table.
const AND_SO_ON: &str = ", ...";

pub const TABLE: &[&str] = &[
    targets::NAMES,
    targets::REFUSALS,
    targets::REPLICAS,
    hosts::LOGINS,
    hosts::SERVERS,
    options::JOBS,
    options::COMMANDS,
    options::AGENTS,
    files::DATA,
    files::RESULTS,
    files::SITES,
    files::KEPT,
];

pub struct Row {
    refused: String,
    pub hint: String,
    mended: Vec<Mended>,
}

struct Mended {
    line: String,
    /// It runs to its end.
    is_short: bool,
}

impl Row {
    /// Lines that begin with "# " are remarks.
    fn read(text: &str) -> Row {
        let mut row = Row { refused: String::new(), hint: String::new(), mended: Vec::new() };
        for line in text.lines().filter(|line| !line.starts_with("# ")) {
            match line.split_once(": ").unwrap_or_else(|| panic!("no line of a row: {line}")) {
                ("refused", line) => row.refused = line.to_string(),
                ("hint", hint) => row.hint = hint.to_string(),
                ("mended", line) => row.mended.push(Mended { line: line.to_string(), is_short: true }),
                ("begun", line) => row.mended.push(Mended { line: line.to_string(), is_short: false }),
                (other, _) => panic!("{other} is no part of a row: {line}"),
            }
        }
        assert!(!row.refused.is_empty() && !row.hint.is_empty() && !row.mended.is_empty(), "not a whole row: {text}");
        row
    }

    /// The words of the hint that are known.
    pub fn known(&self) -> &str {
        self.hint.strip_suffix(AND_SO_ON).unwrap_or(&self.hint)
    }

    pub fn is_cut_off(&self) -> bool {
        self.hint.ends_with(AND_SO_ON)
    }
}

/// The rows of a part of the table. A line that begins with blanks goes on with the one before.
pub fn rows(part: &str) -> Vec<Row> {
    part.trim().replace("\n  ", " ").split("\n\n").map(Row::read).collect()
}

/// Where lines are typed: at a desk, perhaps in a network of its own.
struct Place<'a> {
    desk: &'a Desk,
    /// The URL of a server that is empty: `$SERVER`.
    server: &'a str,
    network: Option<&'a Network>,
}

impl Place<'_> {
    /// Starts a line as a shell does, where `kvfair` is the program.
    fn start(&self, line: &str) -> Started {
        let own = Path::new(env!("CARGO_BIN_EXE_kvfair")).parent().expect("a directory").display();
        let mut command = match self.network {
            Some(network) => network.shell(self.desk, line),
            None => self.desk.command("/bin/sh", &["-c", line]),
        };
        command.env("PATH", format!("{own}:{}", self.desk.path())).env("SERVER", self.server);
        Started::new(command)
    }

    fn typed(&self, line: &str) -> Said {
        self.start(line).wait()
    }

    /// Why the line, which takes minutes, has no results after its first trials.
    fn begun(&self, line: &str) -> Option<String> {
        let known = self.desk.results();
        let mut started = self.start(&format!("exec {line}"));
        let is_new = |file: &PathBuf| !known.contains(file) && file.metadata().is_ok_and(|file| file.len() > 0);
        let has_results = || self.desk.results().iter().any(is_new);
        wait_for("first results, or an end", || (has_results() || !started.is_running()).then_some(()));
        if started.is_running() {
            started.interrupt(Signal::SIGINT);
        }
        let said = started.wait();
        (!matches!(said.code, 0 | 130) || !has_results()).then_some(said.err)
    }

    /// What is wrong with a row. What was followed from the same hint is not followed again.
    fn faults(&self, row: &Row, followed: &mut BTreeSet<(String, String)>) -> Vec<String> {
        let mut faults = Vec::new();
        let said = self.typed(&row.refused);
        if said.code == 0 || !one_line(&said.err).contains(&format!("hint: {}", row.known())) {
            faults.push(format!("{}\n  no 'hint: {}', exit code {}:\n{}", row.refused, row.hint, said.code, said.err));
        }
        let known = followed.clone();
        for Mended { line, is_short } in &row.mended {
            let step = (row.hint.clone(), line.clone());
            if known.contains(&step) {
                continue;
            }
            followed.insert(step);
            let fault = match is_short {
                true => Some(self.typed(line)).filter(|said| said.code != 0).map(|said| said.err),
                false => self.begun(line),
            };
            faults.extend(fault.map(|why| format!("{}\n  mended as its hint says: {line}:\n{why}", row.refused)));
        }
        faults
    }

    #[track_caller]
    fn can_be_followed(&self, parts: &[&str]) {
        let rows = parts.iter().flat_map(|part| rows(part));
        let mut followed = BTreeSet::new();
        let faults: Vec<String> = rows.flat_map(|row| self.faults(&row, &mut followed)).collect();
        assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    }
}

fn at(desk: &Desk) -> Place<'_> {
    Place { desk, server: "", network: None }
}

/// A desk with files that these scripts make.
fn with_files(scripts: &[&str]) -> Desk {
    let desk = Desk::new();
    for script in scripts {
        at(&desk).typed(script).exits(0);
    }
    desk
}

#[test]
fn hints_about_targets_can_be_followed() {
    at(&Desk::new()).can_be_followed(&[targets::NAMES, targets::REFUSALS, targets::REPLICAS]);
}

#[test]
fn hints_about_hosts_and_logins_can_be_followed() {
    needs!(Network::need());
    let desk = with_files(&[files::RAN]);
    let network = Network::start(&desk, hosts::NETWORK);
    Place { network: Some(&network), ..at(&desk) }.can_be_followed(&[hosts::LOGINS, hosts::SERVERS]);
}

#[test]
fn hints_about_jobs_and_commands_can_be_followed() {
    at(&with_files(&[options::MADE])).can_be_followed(&[options::JOBS, options::COMMANDS]);
}

#[test]
fn hints_about_agents_can_be_followed() {
    let server = common::start("redis", Transport::Tcp);
    let url = format!("redis://127.0.0.1:{}", port_of(&server));
    let desk = with_files(&[files::INPUTS]);
    Place { server: &url, ..at(&desk) }.can_be_followed(&[options::AGENTS]);
}

#[test]
fn hints_about_data_can_be_followed() {
    at(&with_files(&[files::INPUTS])).can_be_followed(&[files::DATA]);
}

#[test]
fn hints_about_results_and_kept_data_can_be_followed() {
    let desk = with_files(&[files::RAN]);
    desk.file("growth.jsonl", results("growth"));
    at(&desk).can_be_followed(&[files::RESULTS, files::SITES, files::KEPT]);
}

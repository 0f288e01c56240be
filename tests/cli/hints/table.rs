//! The table of hints: a command as it is typed, the hint that it prints, and the command mended as the hint says.
//! Words that `understood` are those of a command that needs what a test has not, or takes too long.

use std::path::Path;

use kvfair::cli;
use kvfair::model::trial::Transport;

use super::{files, options, targets};
use crate::cli::strangers::port_of;
use crate::common;
use crate::common::desk::{Desk, Said, Started, one_line};

/// A list whose end depends on what is installed ends so in the table.
const AND_SO_ON: &str = ", ...";

pub const TABLE: &[&str] = &[
    targets::NAMES,
    targets::REFUSALS,
    targets::REPLICAS,
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
    is_run: bool,
}

impl Row {
    /// Lines that begin with "# " are remarks.
    fn read(text: &str) -> Row {
        let mut row = Row { refused: String::new(), hint: String::new(), mended: Vec::new() };
        for line in text.lines().filter(|line| !line.starts_with("# ")) {
            match line.split_once(": ").unwrap_or_else(|| panic!("no line of a row: {line}")) {
                ("refused", line) => row.refused = line.to_string(),
                ("hint", hint) => row.hint = hint.to_string(),
                ("mended", line) => row.mended.push(Mended { line: line.to_string(), is_run: true }),
                ("understood", line) => row.mended.push(Mended { line: line.to_string(), is_run: false }),
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

/// Runs a line as a shell does, where `kvfair` is the program and `$SERVER` the URL of a server that is empty.
fn typed(desk: &Desk, server: &str, line: &str) -> Said {
    let own = Path::new(env!("CARGO_BIN_EXE_kvfair")).parent().expect("a directory").display();
    let mut command = desk.command("/bin/sh", &["-c", line]);
    command.env("PATH", format!("{own}:{}", desk.path())).env("SERVER", server);
    Started::new(command).wait()
}

/// What is wrong with a row.
fn faults(desk: &Desk, server: &str, row: &Row) -> Vec<String> {
    let mut faults = Vec::new();
    let said = typed(desk, server, &row.refused);
    if said.code == 0 || !one_line(&said.err).contains(&format!("hint: {}", row.known())) {
        faults.push(format!("{}\n  no 'hint: {}', exit code {}:\n{}", row.refused, row.hint, said.code, said.err));
    }
    for Mended { line, is_run } in &row.mended {
        let fault = match is_run {
            true => Some(typed(desk, server, line)).filter(|said| said.code != 0).map(|said| said.err),
            false => cli::understood(&words(desk, line)).err(),
        };
        faults.extend(fault.map(|why| format!("{}\n  mended as its hint says: {line}:\n{why}", row.refused)));
    }
    faults
}

/// The words of a line, as a shell takes them.
fn words(desk: &Desk, line: &str) -> Vec<String> {
    let said = typed(desk, "", &format!("printf '%s\\n' {line}"));
    said.out.lines().map(str::to_string).collect()
}

#[track_caller]
fn can_be_followed(parts: &[&str], desk: &Desk, server: &str) {
    let rows = parts.iter().flat_map(|part| rows(part));
    let faults: Vec<String> = rows.flat_map(|row| faults(desk, server, &row)).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// A desk with files that these scripts make.
fn with_files(scripts: &[&str]) -> Desk {
    let desk = Desk::new();
    for script in scripts {
        typed(&desk, "", script).exits(0);
    }
    desk
}

#[test]
fn hints_about_targets_can_be_followed() {
    can_be_followed(&[targets::NAMES, targets::REFUSALS, targets::REPLICAS], &Desk::new(), "");
}

#[test]
fn hints_about_jobs_and_commands_can_be_followed() {
    can_be_followed(&[options::JOBS, options::COMMANDS], &Desk::new(), "");
}

#[test]
fn hints_about_agents_can_be_followed() {
    let server = common::start("redis", Transport::Tcp);
    let url = format!("redis://127.0.0.1:{}", port_of(&server));
    can_be_followed(&[options::AGENTS], &with_files(&[files::INPUTS]), &url);
}

#[test]
fn hints_about_data_can_be_followed() {
    can_be_followed(&[files::DATA], &with_files(&[files::INPUTS]), "");
}

#[test]
fn hints_about_results_and_kept_data_can_be_followed() {
    can_be_followed(&[files::RESULTS, files::SITES, files::KEPT], &with_files(&[files::RAN]), "");
}

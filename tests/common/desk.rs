//! A desk of its own for each test: a directory to work in, a TMPDIR and a PATH. When the test ends it must be clean:
//! no process and no scratch directory may be left.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::Value;

use super::output;

/// Longer than anything here takes on a machine that does ten other things: beyond it something hangs.
pub const LIMIT: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(5);

pub struct Desk {
    root: tempfile::TempDir,
    /// Directories before (or instead of) those of our own PATH.
    path: String,
    /// Processes that were there before: none of them works at this desk.
    before: HashSet<u32>,
}

/// What a finished kvfair left to be read.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Desk {
    pub fn new() -> Desk {
        let root = tempfile::Builder::new().prefix("desk-").tempdir().expect("a directory for the test");
        // Servers that refuse to be root must get through to what kvfair makes in it, as they get through /tmp.
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o711)).expect("a directory for the test");
        for part in ["home", "tmp", "bin"] {
            fs::create_dir(root.path().join(part)).expect("a directory for the test");
        }
        let path = format!("{}:{}", root.path().join("bin").display(), std::env::var("PATH").expect("a PATH"));
        Desk { root, path, before: all_processes().collect() }
    }

    /// A desk that knows these programs and no others.
    pub fn with_only(programs: &[&str]) -> Desk {
        let mut desk = Desk::new();
        desk.path = desk.root.path().join("bin").display().to_string();
        for program in programs {
            std::os::unix::fs::symlink(real(program), desk.root.path().join("bin").join(program)).expect("a link");
        }
        desk
    }

    /// The PATH of what is started here.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where kvfair works.
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub fn tmp(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    /// Puts a file where kvfair works, and gives its name.
    pub fn file<'a>(&self, name: &'a str, bytes: impl AsRef<[u8]>) -> &'a str {
        fs::write(self.home().join(name), bytes).expect("a file of the test");
        name
    }

    /// Puts a shell script before the program of that name. In it, $real is the program itself.
    pub fn wrap(&self, program: &str, script: &str) {
        let file = self.root.path().join("bin").join(program);
        let text = format!("#!/bin/sh\nreal='{}'\n{script}\n", real(program).display());
        fs::write(&file, text).expect("a script of the test");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a script of the test");
    }

    /// kvfair, not started yet.
    pub fn kvfair(&self, arguments: &[&str]) -> Command {
        self.command(env!("CARGO_BIN_EXE_kvfair"), arguments)
    }

    /// Any program with this desk's directories.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.home()).env("TMPDIR", self.tmp()).env("PATH", &self.path);
        command.env_remove("REDISCLI_AUTH").env_remove("KVFAIR_PASSWORD").stdin(Stdio::null());
        // Tests run beside each other: what the machine does must not decide what they see.
        command.env("KVFAIR_ACCEPT_NOISE", "1");
        command
    }

    /// Runs kvfair to its end.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Said {
        let said = Started::new(self.kvfair(arguments)).wait();
        if arguments.contains(&"--json") && (said.code == 0 || !said.out.is_empty()) {
            output::object(&said.out, said.code);
        }
        said
    }

    /// What `show --json` tells, of the newest results unless a file is named.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[&["show", "--json"], arguments].concat()).out).expect("JSON")
    }

    /// The rows that `show --json` tells of the newest results.
    #[track_caller]
    pub fn rows(&self) -> Vec<Value> {
        self.json(&[])["rows"].as_array().expect("rows").clone()
    }

    /// The results files with the names that kvfair gave them.
    pub fn results(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.home().join("kvfair-results")).into_iter().flatten();
        let paths = entries.map(|entry| entry.expect("an entry").path());
        // verified durability levels lie beside them.
        paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect()
    }

    /// All records of all results files, in the order in which they were written.
    pub fn records(&self) -> Vec<Value> {
        let mut files = self.results();
        files.sort_by_key(|file| file.metadata().and_then(|meta| meta.modified()).expect("a time"));
        files.iter().flat_map(|file| records_in(file)).collect()
    }

    /// The last record of that target.
    pub fn record(&self, target: &str) -> Value {
        let found = self.records().into_iter().rfind(|record| record["target"]["label"] == target);
        found.unwrap_or_else(|| panic!("no record of {target}"))
    }

    /// The only record of that file.
    pub fn record_in(&self, file: &str) -> Value {
        records_in(&self.home().join(file)).pop().expect("a record")
    }

    /// Why the target has no numbers.
    pub fn reason(&self, target: &str) -> String {
        let record = self.record(target);
        let outcome = &record["outcome"];
        let words = outcome["reason"].as_str().unwrap_or_else(|| panic!("{target} has no reason but {outcome}"));
        format!("{}: {words}", outcome["kind"].as_str().expect("a kind"))
    }

    /// Processes that work at this desk: their working directory lies in it, also when it is deleted by now.
    pub fn processes(&self) -> Vec<u32> {
        let root = self.root.path().canonicalize().expect("the desk is there");
        let pids = all_processes().filter(|pid| !self.before.contains(pid));
        let here = |pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&root));
        pids.filter(here).collect()
    }

    /// The processes of this desk with that name, as the kernel has it.
    pub fn processes_named(&self, name: &str) -> Vec<u32> {
        let is = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name);
        self.processes().into_iter().filter(is).collect()
    }

    /// The trial's own process, which is kvfair with the word `trial`.
    pub fn trials(&self) -> Vec<u32> {
        let is = |pid: &u32| command_line(*pid).ends_with("\0trial\0");
        self.processes().into_iter().filter(is).collect()
    }

    /// Waits until one of the processes that `look` finds has used up so much CPU: then it is in the middle of its
    /// work.
    pub fn wait_until_busy(&self, look: impl Fn(&Desk) -> Vec<u32>, cpu_s: f64) -> u32 {
        wait_for("a process at work", || look(self).into_iter().find(|pid| cpu_of(*pid) >= cpu_s))
    }

    pub fn scratch(&self) -> Vec<String> {
        let entries = fs::read_dir(self.tmp()).expect("TMPDIR").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// The next run removes what killed ones left, once the last of their processes has let go of its lock.
    pub fn is_swept(&self) {
        let results = self.home().join("swept.jsonl");
        wait_for("what killed runs left is gone", || {
            let run = ["run", "ngrams", "--messages", "5", "--blocks", "1", "--output", "swept.jsonl", "ram"];
            self.run(&run).exits(0);
            fs::remove_file(&results).expect("it was written");
            self.scratch().is_empty().then_some(())
        });
    }

    /// What was killed may take a moment to go.
    pub fn no_process_is_left(&self) {
        let began = Instant::now();
        while !self.processes().is_empty() && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(LOOK);
        }
        let left = self.processes();
        let told: Vec<String> =
            left.iter().map(|pid| format!("{pid} {}", command_line(*pid).replace('\0', " "))).collect();
        self.kill_all();
        assert!(left.is_empty(), "left: {told:?}");
    }

    /// A test that failed must not disturb the others.
    fn kill_all(&self) {
        self.processes().into_iter().for_each(|pid| signal(pid, Signal::SIGKILL));
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return self.kill_all();
        }
        self.no_process_is_left();
        assert_eq!(self.scratch(), Vec::<String>::new(), "left in TMPDIR");
    }
}

/// kvfair under way, its output going to files so that it is never held up by us.
pub struct Started {
    child: Child,
    out: File,
    err: File,
}

impl Started {
    pub fn new(mut command: Command) -> Started {
        let (out, err) = (tempfile::tempfile().expect("a file"), tempfile::tempfile().expect("a file"));
        command.stdout(out.try_clone().expect("a file")).stderr(err.try_clone().expect("a file"));
        // As a shell does: a group for what was typed, which Ctrl-C reaches as a whole.
        command.process_group(0);
        Started { child: command.spawn().expect("kvfair starts"), out, err }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// As Ctrl-C does: to the whole group.
    pub fn interrupt(&self, what: Signal) {
        killpg(Pid::from_raw(self.id() as i32), what).expect("kvfair is still there");
    }

    /// Interrupts kvfair as soon as it handles the signal, which would end it before. It may have ended by itself.
    pub fn interrupt_at_once(&self, what: Signal) {
        wait_for("a handler of the signal", || {
            let status = fs::read_to_string(format!("/proc/{}/status", self.id())).expect("kvfair is there");
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("it is told");
            let caught = u64::from_str_radix(caught.trim(), 16).expect("a mask");
            (caught >> (what as u32 - 1) & 1 == 1 || status.contains("State:\tZ")).then_some(())
        });
        self.interrupt(what);
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("our own child").is_none()
    }

    pub fn wait(self) -> Said {
        self.wait_within(LIMIT)
    }

    pub fn wait_within(mut self, limit: Duration) -> Said {
        let began = Instant::now();
        while self.is_running() {
            if began.elapsed() > limit {
                let there = beside(self.id());
                let _ = self.child.kill();
                panic!("kvfair hangs; it said: {}{}{there}", read(&mut self.out), read(&mut self.err));
            }
            std::thread::sleep(LOOK);
        }
        let status = self.child.wait().expect("our own child");
        let code = status.code().unwrap_or(-1);
        Said { code, out: read(&mut self.out), err: read(&mut self.err) }
    }
}

/// What waits for what: the processes that work at the same desk, each with its parent, its state and the call of the
/// kernel that it is in.
fn beside(id: u32) -> String {
    let Ok(home) = fs::read_link(format!("/proc/{id}/cwd")) else { return String::new() };
    let desk = home.parent().unwrap_or(&home);
    let here = |pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(desk));
    let text = |pid: u32, file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let line = |pid: u32| {
        let status = text(pid, "status");
        let told = |name: &&str| ["State:", "PPid:", "TracerPid:"].iter().any(|field| name.starts_with(field));
        let status: Vec<&str> = status.lines().filter(told).collect();
        format!("{pid} {} {} {}\n", command_line(pid).replace('\0', " "), status.join(" "), text(pid, "wchan"))
    };
    all_processes().filter(here).map(line).collect()
}

fn all_processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn read(file: &mut File) -> String {
    use std::io::Seek;
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("what kvfair said");
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Said {
    /// Fails, telling all that was said, unless kvfair ended with this exit code.
    #[track_caller]
    pub fn exits(&self, code: i32) -> &Said {
        assert_eq!(self.code, code, "\n{}{}", self.out, self.err);
        self
    }

    /// Standard error has these words.
    #[track_caller]
    pub fn complains(&self, words: &str) -> &Said {
        assert!(one_line(&self.err).contains(words), "no '{words}' in:\n{}", self.err);
        self
    }

    /// Standard output has these words, however they are broken into lines.
    #[track_caller]
    pub fn shows(&self, words: &str) -> &Said {
        assert!(one_line(&self.out).contains(words), "no '{words}' in:\n{}{}", self.out, self.err);
        self
    }
}

/// All blanks and line ends as one blank each.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub fn records_in(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("a results file");
    text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
}

/// Copies a program that is then started. Another process writes it: one that this process forks meanwhile would have
/// the file open for writing, and a file that is being written cannot be started.
pub fn copy_program(from: &str, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status().expect("every system has cp");
    assert!(copied.success(), "{from} is copied");
}

/// Asks again and again until there is an answer.
#[track_caller]
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(began.elapsed() < LIMIT, "waited in vain for {what}");
        std::thread::sleep(LOOK);
    }
}

/// The program that our own PATH knows. Tests here are about the real thing: without it they fail.
pub fn real(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").expect("a PATH");
    let found = std::env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("there is no {program} on PATH: ./test installs what the tests need"))
}

pub fn signal(pid: u32, what: Signal) {
    // It may be gone already.
    let _ = kill(Pid::from_raw(pid as i32), what);
}

/// With a NUL after each argument.
pub fn command_line(pid: u32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).into_owned()
}

/// User and system time of a process so far; proc(5): fields 14 and 15 of stat, in ticks of 10 ms.
fn cpu_of(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = after_name.split(' ').collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

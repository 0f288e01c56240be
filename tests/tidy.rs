//! The layering rules between modules, and the style of the code, as a test. A change that does not fit moves a rule in
//! ARCHITECTURE.md first, with its reason; it does not loosen this.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kvfair::model::trial::Transport;

/// What each module may import, of the project's own modules.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("draw", &[]),
    ("protocol", &["model"]),
    ("jobs", &["model", "draw"]),
    ("stores", &["model", "protocol"]),
    ("loadgen", &["model", "draw", "protocol", "stores", "jobs"]),
    ("stats", &[]),
    ("report", &["model", "stats"]),
    ("harness", &["model", "draw", "jobs", "stores", "loadgen"]),
    ("scheduler", &["model", "harness", "stats"]),
    ("cli", &["model", "jobs", "stores", "harness", "scheduler", "report", "stats"]),
];

/// What stands in lines of these modules only, and in tests of the others; and why.
const ONLY: &[(&str, &[&str], &str)] = &[
    ("Instant", CLOCKS, "clocks are for loadgen and harness"),
    ("SystemTime", CLOCKS, "clocks are for loadgen and harness"),
    ("quanta", CLOCKS, "clocks are for loadgen and harness"),
    ("clock_gettime", CLOCKS, "clocks are for loadgen and harness"),
    ("println!", &["cli"], "only cli prints"),
    ("print!(", &["cli"], "only cli prints"),
    ("std::fs", &["stores", "harness", "cli"], "no files in this module"),
    ("std::net", &["stores", "loadgen", "harness"], "no sockets in this module"),
    ("UnixStream", &["stores", "loadgen", "harness"], "no sockets in this module"),
    ("process::Command", &["loadgen", "harness", "cli"], "processes are for harness"),
    ("process::exit(0", &["cli"], "main decides the exit code"),
];
const CLOCKS: &[&str] = &["loadgen", "harness"];

/// The only clock outside of loadgen and harness: no number comes from it.
const DEADLINES: &str = "src/stores/deadline.rs";

/// Modules that must not know any store by its name.
const KNOW_NO_STORE: &[&str] = &["model", "draw", "jobs", "loadgen", "harness", "scheduler", "stats", "report", "cli"];

/// Files that may hold `unsafe`, each with the reason beside it.
const MAY_BE_UNSAFE: &[&str] = &[
    // Merging is most of what the job itself costs: on the instructions of the processor that is here.
    "crates/jobs/src/merge/structure.rs",
    "src/harness/process.rs",
    // Which pages of a file are cached: no crate that is here has a function for it.
    "src/harness/page_cache.rs",
    "src/stores/lmdb.rs",
    // C libraries that are opened at run time.
    "src/stores/berkeleydb.rs",
    "src/stores/berkeleydb/interface.rs",
    "src/stores/berkeleydb/store_stats.rs",
    "src/stores/kyotocabinet.rs",
    "src/stores/leveldb.rs",
    "src/stores/library.rs",
    // What SQLite counts by connection: its crate has no function for it.
    "src/stores/sqlite/store_stats.rs",
    "src/stores/tkrzw.rs",
    "src/stores/tokyocabinet.rs",
];

const LINES_OF_A_FILE: usize = 500;
const LINES_OF_A_FUNCTION: usize = 70;
const COLUMNS: usize = 120;

/// What was too long when it was written. A ratchet: these numbers may only go down.
const LONG_FILES: &[(&str, usize)] = &[];
const LONG_FUNCTIONS: &[(&str, usize)] = &[];

struct Source {
    /// From the root of the project: "src/harness/serve.rs".
    path: String,
    text: String,
}

impl Source {
    /// As the crate kvfair names it.
    fn module(&self) -> &str {
        match self.path.split('/').nth(1).unwrap_or_default() {
            "core" => "model",
            module => module,
        }
    }

    /// The lines before the file's own tests.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let end = self.text.find("\n#[cfg(test)]\nmod ").unwrap_or(self.text.len());
        let lines = self.text[..end].lines().enumerate().map(|(index, line)| (index + 1, line));
        lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

/// All below a folder, and below the same folder of each crate.
fn sources(directory: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    collect(&root.join(directory), &mut found);
    for of_a_crate in fs::read_dir(root.join("crates")).unwrap() {
        let of_a_crate = of_a_crate.unwrap().path().join(directory);
        if of_a_crate.is_dir() {
            collect(&of_a_crate, &mut found);
        }
    }
    assert!(!found.is_empty(), "no sources below {directory}");
    let read = |path: PathBuf| Source {
        path: path.strip_prefix(root).unwrap().to_str().unwrap().to_string(),
        text: fs::read_to_string(&path).unwrap(),
    };
    found.into_iter().map(read).collect()
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Fails with all that is wrong at once: nobody likes to be told one thing at a time.
fn none(faults: Vec<String>) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// The modules that a line of code names after `crate::`, in `use` and elsewhere, braces included.
fn modules_named(line: &str) -> Vec<String> {
    let mut named = Vec::new();
    for (start, _) in line.match_indices("crate::") {
        let rest = &line[start + "crate::".len()..];
        let list = rest.strip_prefix('{').map_or(rest, |inner| inner);
        let pieces: Vec<&str> = if rest.starts_with('{') { list.split(',').collect() } else { vec![list] };
        for piece in pieces {
            let name: String =
                piece.trim_start().chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
            named.push(name);
        }
    }
    named
}

#[test]
fn modules_import_only_what_they_may() {
    let modules: Vec<&str> = MAY_IMPORT.iter().map(|(module, _)| *module).collect();
    let mut faults = Vec::new();
    for source in sources("src").iter().filter(|source| source.path.matches('/').count() > 1) {
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(module, _)| *module == source.module()) else {
            faults.push(format!("{}: {} is no module of the project", source.path, source.module()));
            continue;
        };
        for (number, line) in source.code() {
            for named in modules_named(line).iter().filter(|named| modules.contains(&named.as_str())) {
                if named != source.module() && !allowed.contains(&named.as_str()) {
                    faults.push(format!(
                        "{}:{number}: {} may not import {named}: {}",
                        source.path,
                        source.module(),
                        line.trim()
                    ));
                }
            }
        }
    }
    none(faults);
}

#[test]
fn a_store_knows_no_other_store() {
    let all = sources("src/stores");
    // Who registers a store is one, with all files below; what stores share registers none.
    let stores: BTreeSet<&str> =
        all.iter().filter(|source| source.text.contains(": Adapter = ")).map(store_of).collect();
    assert!(stores.len() > 10, "{stores:?}");
    let mut faults = Vec::new();
    for source in &all {
        for (number, line) in source.code() {
            for name in stores.iter().filter(|name| **name != store_of(source)) {
                if line.contains(&format!("super::{name}")) || line.contains(&format!("stores::{name}")) {
                    faults.push(format!("{}:{number}: {} may not know {name}", source.path, store_of(source)));
                }
            }
        }
    }
    none(faults);
}

/// The module below `stores` that a source belongs to: `redis` of "src/stores/redis.rs" and "src/stores/redis/x.rs".
fn store_of(source: &Source) -> &str {
    source.path.split('/').nth(2).unwrap().trim_end_matches(".rs")
}

#[test]
fn what_a_module_must_never_do() {
    let mut faults = Vec::new();
    for source in sources("src").iter().filter(|source| source.path.matches('/').count() > 1) {
        for (number, line) in source.code() {
            for (word, modules, why) in ONLY {
                let is_deadline = source.path == DEADLINES && *word == "clock_gettime";
                if !modules.contains(&source.module()) && line.contains(word) && !is_deadline {
                    faults.push(format!("{}:{number}: {word} here: {why}", source.path));
                }
            }
        }
    }
    none(faults);
}

/// What is made elsewhere would inherit the passwords of kvfair's environment.
#[test]
fn only_one_file_makes_commands_of_programs() {
    let mut faults = Vec::new();
    let may_not = |source: &&Source| source.module() == "harness" && source.path != "src/harness/process.rs";
    for source in sources("src").iter().filter(may_not) {
        // Tests of one system alone are marked otherwise.
        let lines = source.code().take_while(|(_, line)| !line.starts_with("#[cfg(all(test"));
        let lines = lines.filter(|(_, line)| line.contains("Command::new("));
        faults.extend(lines.map(|(number, _)| format!("{}:{number}: a program: process::program", source.path)));
    }
    none(faults);
}

/// What writes to standard output, standard error or the terminal, or has another do so.
const WRITES: &[&str] = &[
    "println!",
    "print!(",
    "eprint",
    "dbg!(",
    "stdout()",
    "stderr()",
    "indicatif",
    "rpassword",
    "/dev/tty",
    "inherit()",
    "error.exit()",
    "Cli::parse()",
    "Args::parse()",
];

/// The only file that may, since it makes all text plain.
const TERMINAL: &str = "src/cli/terminal.rs";

/// These write to a pipe to the process that started them.
const TO_A_PARENT: &[(&str, &str)] =
    &[("src/harness/child.rs", "stdout()"), ("src/harness/crash/outage/tracer.rs", "stdout()")];

#[test]
fn only_one_file_writes_to_the_terminal() {
    let mut faults = Vec::new();
    for source in sources("src").iter().filter(|source| source.path != TERMINAL) {
        for (number, line) in source.code() {
            for word in WRITES.iter().filter(|word| line.contains(**word)) {
                if !TO_A_PARENT.contains(&(source.path.as_str(), word)) {
                    faults.push(format!("{}:{number}: {word}: only {TERMINAL} writes to the terminal", source.path));
                }
            }
        }
    }
    none(faults);
    let terminal = sources("src").into_iter().find(|source| source.path == TERMINAL).expect("it is there");
    let writes = |line: &str| line.contains("write_all(") || line.contains("write!(") || line.contains("writeln!(");
    // `shown` is made plain where it is made; a `Plain` writes what it has made plain.
    let is_plain = |line: &str| line.contains("plain::text(") || line.contains("write_all(shown.as_bytes())");
    none(
        terminal.code().filter(|(_, line)| writes(line) && !is_plain(line)).map(|(n, l)| format!("{n}: {l}")).collect(),
    );
}

#[test]
fn lower_modules_know_no_store_by_name() {
    let names: Vec<String> = kvfair::stores::ALL.iter().map(|adapter| format!("\"{}\"", adapter.name)).collect();
    let mut faults = Vec::new();
    for source in sources("src").iter().filter(|source| KNOW_NO_STORE.contains(&source.module())) {
        for (number, line) in source.code() {
            if let Some(name) = names.iter().find(|name| line.contains(name.as_str())) {
                faults.push(format!("{}:{number}: names the store {name}", source.path));
            }
        }
    }
    none(faults);
}

#[test]
fn unsafe_stands_only_where_it_must_with_its_reason() {
    let mut faults = Vec::new();
    for source in sources("src") {
        let lines: Vec<&str> = source.text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap();
            // With a hyphen it is a word of a page's policy.
            let is_between = |letter: char| !letter.is_alphanumeric() && !matches!(letter, '_' | '-');
            if !code.split(is_between).any(|word| word == "unsafe") {
                continue;
            }
            if !MAY_BE_UNSAFE.contains(&source.path.as_str()) {
                faults.push(format!("{}:{}: unsafe", source.path, index + 1));
            } else if !lines[index.saturating_sub(6)..index].iter().any(|above| has_reason(above)) {
                faults.push(format!("{}:{}: unsafe without a SAFETY comment", source.path, index + 1));
            }
        }
    }
    none(faults);
}

/// The reason of an unsafe block, or what an unsafe function asks of its callers, as Rust's own guides write them.
fn has_reason(line: &str) -> bool {
    line.contains("// SAFETY: ") || line.contains("/// # Safety")
}

#[test]
fn files_open_with_what_they_are_for_and_stay_readable() {
    let mut faults = Vec::new();
    for source in sources("src").into_iter().chain(sources("tests")) {
        if !source.text.starts_with("//!") {
            faults.push(format!("{}: does not open with //!", source.path));
        }
        let length = source.text.lines().count();
        let limit =
            LONG_FILES.iter().find(|(path, _)| *path == source.path).map_or(LINES_OF_A_FILE, |(_, limit)| *limit);
        if length > limit {
            faults.push(format!("{}: {length} lines, at most {limit}: is it two things?", source.path));
        }
        for (index, line) in source.text.lines().enumerate() {
            // A message is not cut in two for its length: rustfmt leaves it whole as well.
            let is_message = line.contains('"');
            if line.chars().count() > COLUMNS && !is_message {
                faults.push(format!("{}:{}: more than {COLUMNS} columns", source.path, index + 1));
            }
        }
    }
    none(faults);
}

#[test]
fn functions_read_in_one_view() {
    let mut faults = Vec::new();
    for source in sources("src").into_iter().chain(sources("tests")) {
        for (name, line, length) in functions(&source.text) {
            let key = format!("{} {name}", source.path);
            let limit =
                LONG_FUNCTIONS.iter().find(|(long, _)| *long == key).map_or(LINES_OF_A_FUNCTION, |(_, limit)| *limit);
            if length > limit {
                faults.push(format!("{}:{line}: {name} has {length} lines, at most {limit}", source.path));
            }
        }
    }
    none(faults);
}

/// Name, first line and length of each function, by the indentation that rustfmt gives them.
fn functions(text: &str) -> Vec<(String, usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let mut head = line.trim_start();
        for word in ["pub ", "pub(super) ", "pub(crate) ", "const ", "unsafe "] {
            head = head.trim_start_matches(word);
        }
        let Some(rest) = head.strip_prefix("fn ") else { continue };
        let name = rest.split(['(', '<']).next().unwrap().to_string();
        let closing = format!("{}}}", " ".repeat(indent));
        if let Some(length) = lines[start..].iter().position(|line| *line == closing) {
            found.push((name, start + 1, length + 1));
        }
    }
    found
}

/// SECURITY.md names each server that takes no password over TCP, each that does, and each variable of a password.
#[test]
fn what_security_promises_is_what_the_stores_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let (_, open) = text.split_once("These have no password:").expect("the list of those without");
    let (guarded, _) = text.split_once("take a fresh random password").expect("the list of those with one");
    let guarded = guarded.rsplit_once("Therefore").expect("the beginning of that list").1;
    let open = open.split_once("\n- ").expect("its end").0;
    let mut faults = Vec::new();
    for adapter in kvfair::stores::ALL {
        // kvfair starts no server of a store that it reaches by URL only.
        let started = adapter.server.filter(|server| server.own || !server.programs.is_empty());
        let Some(server) = started else { continue };
        let (name, has_tcp) = (format!("`{}`", adapter.name), adapter.transports.contains(&Transport::Tcp));
        let is_right =
            (guarded.contains(&name), open.contains(&name)) == (server.takes_password, !server.takes_password);
        if has_tcp && !is_right {
            faults.push(format!("SECURITY.md: {name} takes a password: {}", server.takes_password));
        }
    }
    let variables = kvfair::stores::password_variables();
    let variables: BTreeSet<&str> = variables.chain([kvfair::harness::process::PASSWORD_VARIABLE]).collect();
    let (_, read) = text.split_once("Of the environment kvfair reads ").expect("the list of variables");
    let named: BTreeSet<&str> =
        read.split_once(", for servers").expect("its end").0.split('`').skip(1).step_by(2).collect();
    if named != variables {
        faults.push(format!("SECURITY.md names {named:?}, and kvfair reads {variables:?}"));
    }
    none(faults);
}

/// What tests depend on may turn on features of what ships. serde_json without `float_roundtrip` reads numbers back a
/// little off, and only where no test looks.
#[test]
fn numbers_are_read_in_what_is_shipped_as_in_what_is_tested() {
    let features = |edges: &str| {
        let tree = ["tree", "--locked", "--offline", "-i", "serde_json", "--depth", "0", "-f", "{p} {f}", "-e", edges];
        let told = Command::new(env!("CARGO")).args(tree).output().expect("cargo runs");
        String::from_utf8(told.stdout).expect("names")
    };
    let shipped = features("normal");
    assert!(shipped.contains("serde_json"), "{shipped}");
    assert_eq!(shipped, features("normal,dev"));
}

/// The rules themselves are tried: a checker that finds nothing in bad code proves nothing in good code.
#[test]
fn the_checkers_see_what_they_look_for() {
    assert_eq!(modules_named("use crate::harness::serve;"), ["harness"]);
    assert_eq!(modules_named("use crate::{loadgen, report::cells};"), ["loadgen", "report"]);
    let long = format!("fn long() {{\n{}}}\n", "    one();\n".repeat(80));
    assert_eq!(functions(&long), [("long".to_string(), 1, 82)]);
}

//! Help and what is taken: each option that the help of a command names is tried, on a server that is not there. What
//! is wrong with an option is found before that, and is another exit code.

use std::collections::BTreeSet;

use crate::common::desk::Desk;

const NOBODY: &str = "redis://127.0.0.1:1";

/// A value of each option, the job that it is of, and what else must be typed then.
const TRIED: &[(&str, &str, &str, &[&str])] = &[
    ("accept-noise", "", "mixed", &[]),
    ("accept-unchecked", "", "mixed", &[]),
    ("agents", "2", "mixed", &[]),
    ("all", "", "mixed", &[]),
    ("answer", "none", "", &["--exec", "true", "--blocks", "1"]),
    ("answers-only", "", "mixed", &[]),
    ("arrivals", "constant", "mixed", &["--rate", "1k"]),
    ("batch", "2", "getset", &[]),
    ("blocks", "2", "mixed", &[]),
    ("budget", "60s", "mixed", &[]),
    ("clients", "2", "mixed", &[]),
    ("color", "never", "mixed", &[]),
    ("columns", "user,page", "fans", &["--input", "file"]),
    ("compressible", "20", "mixed", &[]),
    ("config", "shipped", "mixed", &[]),
    ("csv", "", "mixed", &[]),
    ("depth", "2", "mixed", &[]),
    ("durability", "crash", "mixed", &[]),
    ("effort", "normal", "mixed", &[]),
    ("encoding", "binary", "fans", &[]),
    ("exec", "true", "", &["--blocks", "1"]),
    ("fail-if", "slower:3%", "mixed", &[]),
    ("field", "liked", "fans", &["--input", "file"]),
    ("format", "jsonl", "fans", &["--input", "file"]),
    ("hosts", "file", "mixed", &["--agents", "1", "--launch", "true {host}"]),
    ("html", "page.html", "mixed", &[]),
    ("input", "file", "fans", &[]),
    ("json", "", "mixed", &[]),
    ("keep", "kept", "fans", &[]),
    ("keys", "latest", "mixed", &[]),
    ("launch", "true", "mixed", &["--agents", "2"]),
    ("list", "", "mixed", &[]),
    ("markdown", "", "mixed", &[]),
    ("messages", "9", "ngrams", &[]),
    ("no-aa", "", "mixed", &[]),
    ("no-warn", "short", "mixed", &[]),
    ("only", "get", "getset", &[]),
    ("order", "3", "lookup", &[]),
    ("output", "out.jsonl", "mixed", &[]),
    ("profiles", "9", "fans", &[]),
    ("queries", "9", "fans", &[]),
    ("rate", "1k", "mixed", &[]),
    ("read-only", "", "mixed", &[]),
    ("readers", "1", "lookup", &[]),
    ("reads", "3", "mixed", &[]),
    ("reconnect", "", "mixed", &[]),
    ("records", "9", "mixed", &[]),
    ("replay", "asap", "trace", &["--input", "file", "--format", "twitter"]),
    ("requests", "9", "mixed", &[]),
    ("rtt", "0.2ms", "mixed", &[]),
    ("seed", "9", "mixed", &[]),
    ("skip-missing", "", "mixed", &[]),
    ("skip-bad", "9", "mixed", &[]),
    ("slo", "p99:9ms", "mixed", &[]),
    ("split", "pages", "fans", &[]),
    ("stat", "best", "mixed", &[]),
    ("step", "9", "mixed", &[]),
    ("strict", "", "trace", &["--input", "file", "--format", "twitter"]),
    ("timeout", "90s", "mixed", &[]),
    ("unit", "char", "lookup", &[]),
    ("values", "9", "mixed", &[]),
    ("verify", "sample", "mixed", &[]),
    ("via", "batch", "fans", &[]),
    ("wide", "", "mixed", &[]),
    ("writes", "3", "mixed", &[]),
];

/// Of a comparison: its targets. `--pin` and `--cold` are for servers of our own.
const NOT_TRIED: [&str; 6] = ["base", "head", "pin", "cold", "help", "version"];

/// The options that stand at the beginnings of lines: `-o, --output <FILE>`.
fn options(help: &str) -> Vec<String> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let named = lines.filter_map(|line| line.split_whitespace().find_map(|word| word.strip_prefix("--")));
    named.map(str::to_string).collect()
}

#[test]
fn each_option_in_the_help_of_a_command_is_taken_by_it() {
    let desk = Desk::new();
    desk.file("file", "{}\n");
    for command in ["run", "find-max", "compare"] {
        let of_jobs = kvfair::jobs::ALL.iter().map(|job| desk.run(&["help", command, job.name]).exits(0).out.clone());
        let helps: Vec<String> = of_jobs.chain([desk.run(&[command, "--help"]).out]).collect();
        let all: BTreeSet<String> = helps.iter().flat_map(|help| options(help)).collect();
        assert!(all.len() > 15 && all.contains("budget"), "{command}: {all:?}");
        for option in all.iter().filter(|option| !NOT_TRIED.contains(&option.as_str())) {
            let tried = TRIED.iter().find(|(tried, ..)| tried == option);
            let (_, value, job, more) = tried.unwrap_or_else(|| panic!("{command}: --{option} is tried nowhere here"));
            let typed = format!("--{option}={value}");
            let mut words = vec![command, if value.is_empty() { typed.trim_end_matches('=') } else { &typed }];
            words.extend(Some(*job).filter(|job| !job.is_empty()));
            // A search chooses the rate by itself.
            words.extend(more.iter().filter(|_| command != "find-max" || more.contains(&"--agents")));
            match command {
                "compare" => words.extend(["--base", NOBODY, "--head", "redis://127.0.0.1:1/2"]),
                _ => words.push(NOBODY),
            }
            let said = desk.run(&words);
            // Nothing is asked of the server for a list, or by a program that asks nothing.
            let asks_nobody = option == "list" || words.iter().any(|word| word.starts_with("--exec"));
            assert_eq!(said.code, i32::from(option != "list"), "{words:?}\n{}{}", said.out, said.err);
            assert!(asks_nobody || said.err.contains("127.0.0.1:1"), "{words:?}\n{}", said.err);
        }
    }
}

/// `./package` ships them.
#[test]
fn man_pages_and_completions_name_what_is_offered_and_nothing_hidden() {
    let desk = Desk::new();
    desk.run(&["manual", "manual"]).exits(0);
    let read = |name: &str| std::fs::read_to_string(desk.home().join("manual").join(name)).expect(name);
    assert!(read("man/kvfair-run.1").contains("durability"));
    for name in ["man/kvfair.1", "completions/kvfair.bash", "completions/_kvfair", "completions/kvfair.fish"] {
        let text = read(name);
        assert!(text.contains("run") && text.contains("growth") && !text.contains("outage"), "{name}: {text}");
    }
    desk.file("taken", "");
    desk.run(&["manual", "taken"]).exits(1).complains("cannot write the manual into taken");
}

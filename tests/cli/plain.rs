//! What steers a terminal never reaches it: from results files of others, servers, pages and arguments. And what a file
//! claims to hold takes no memory.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpListener;

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::common::desk::{Desk, Said, Started};

/// Clears the screen, names the window, turns the order of letters round, begins a line of its own.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}31m\u{202e}\u{2066}evil\r\nevil";

#[track_caller]
fn is_plain(said: &Said) {
    for text in [&said.out, &said.err] {
        let bad: Vec<char> = text.chars().filter(|letter| is_bad(*letter)).collect();
        assert!(bad.is_empty(), "{bad:?} in:\n{text}");
    }
}

fn is_bad(letter: char) -> bool {
    let turns =
        matches!(letter, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || letter.is_control() && letter != '\n' && letter != '\t'
}

fn golden(name: &str) -> String {
    let path = format!("{}/tests/golden/shown/{name}.jsonl.gz", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    GzDecoder::new(File::open(path).expect("a golden file")).read_to_string(&mut text).expect("text");
    text
}

/// The same with something appended to every string that nothing else goes by.
fn poison(value: &mut Value, name: &str) {
    const MEANS: &[&str] = &[
        "began",
        "sha256",
        "kind",
        "how",
        "durability",
        "configuration",
        "transport",
        "format",
        "via",
        "split",
        "times_ns",
        "name",
        "recipe",
        "keys",
        "arrivals",
        "only",
        "store",
        "sign",
        "swept",
        "level",
        "spread",
        "reads",
    ];
    match value {
        Value::String(text) if !MEANS.contains(&name) && !name.ends_with("_ns") => text.push_str(HOSTILE),
        Value::Array(all) => all.iter_mut().for_each(|one| poison(one, name)),
        Value::Object(all) => {
            // A job's name is told; other names are those of kinds and phases.
            let is_job = all.contains_key("skip_bad");
            all.iter_mut().for_each(|(inner, one)| poison(one, if is_job && inner == "name" { "job" } else { inner }));
        }
        _ => {}
    }
}

/// CSV without what stands in quotes.
fn unquoted(csv: &str) -> String {
    csv.split('"').step_by(2).collect()
}

const FORMS: &[&[&str]] = &[
    &[],
    &["--wide"],
    &["--all"],
    &["--csv"],
    &["--json"],
    &["--markdown"],
    &["--all", "--json"],
    &["--all", "--csv"],
];

#[test]
fn a_results_file_of_others_cannot_steer_the_terminal() {
    let desk = Desk::new();
    for name in ["fans", "noisy", "getset", "rates"] {
        let mut poisoned = String::new();
        for (number, line) in golden(name).lines().enumerate() {
            let mut record: Value = serde_json::from_str(line).expect("a record");
            poison(&mut record, "");
            if number % 3 == 2 {
                record["outcome"] = serde_json::json!({"kind": "failed", "reason": format!("it said {HOSTILE}")});
            }
            poisoned.push_str(&format!("{record}\n"));
        }
        let file = format!("{name}.jsonl");
        desk.file(&file, &poisoned);
        for form in FORMS {
            let said = desk.run(&[&["show", file.as_str()][..], form].concat());
            is_plain(&said);
            assert!(said.out.contains("evil"), "nothing of the file is shown:\n{}{}", said.out, said.err);
            // In CSV a quoted cell may have several lines, and is one cell all the same.
            let text = if form.contains(&"--csv") { unquoted(&said.out) } else { said.out.clone() };
            assert!(!text.lines().any(|line| line.starts_with("evil")), "{}", said.out);
            if form.contains(&"--json") {
                let rows: Value = serde_json::from_str(&said.out).expect("JSON");
                assert!(rows.to_string().contains("evil"));
            }
        }
        is_plain(&desk.run(&["compare", &file, &file]));
    }
}

#[test]
fn arguments_and_pages_cannot_steer_the_terminal() {
    let desk = Desk::new();
    let option = format!("--{HOSTILE}");
    let arguments: &[(&[&str], i32)] = &[
        (&["show", HOSTILE], 1),
        (&["run", HOSTILE, "ram"], 2),
        (&["run", "fans", HOSTILE], 2),
        (&["run", "fans", "ram", &option], 2),
        (&["query", HOSTILE, "x"], 2),
    ];
    for (typed, code) in arguments {
        let said = desk.run(typed);
        is_plain(said.exits(*code));
        assert!(said.err.contains("evil"), "{typed:?}: {}", said.err);
    }
    let named = format!("ram?name={HOSTILE}");
    let said = desk.run(&["run", "ngrams", "--messages", "20", "--blocks", "1", &named]);
    is_plain(&said);
    assert!(said.out.contains("evil"), "{}{}", said.out, said.err);
    let likes = serde_json::json!({"user": "u", "likes": ["a", format!("p{HOSTILE}"), "b"]});
    desk.file("likes.jsonl", format!("{likes}\n"));
    let said = desk.run(&[
        "run",
        "fans",
        "--input",
        "likes.jsonl",
        "--blocks",
        "1",
        "--durability",
        "crash",
        "--keep",
        "kept",
        "sqlite",
    ]);
    said.exits(0);
    is_plain(&said);
    for json in [&[][..], &["--json"]] {
        let said = desk.run(&[&["query", "sqlite:kept/sqlite", "a"][..], json].concat());
        is_plain(&said);
        said.exits(0).shows("evil");
    }
}

#[test]
fn a_server_cannot_steer_the_terminal() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("redis://{}", listener.local_addr().expect("its address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = format!("-ERR {}\r\n", HOSTILE.trim_end());
            let mut received = [0; 4096];
            while stream.read(&mut received).is_ok_and(|count| count > 0) && stream.write_all(answer.as_bytes()).is_ok()
            {
            }
        }
    });
    let desk = Desk::new();
    for command in [&["run", "ngrams", "--messages", "20", "--blocks", "1"][..], &["check"], &["find-max", "mixed"]] {
        let said = desk.run(&[command, &[&url]].concat());
        is_plain(said.exits(1));
    }
}

/// With no more memory than this a file that claims to be large is read, or refused by its line.
#[cfg(target_os = "linux")]
fn show_in_a_gigabyte(desk: &Desk, file: &str) -> Said {
    let script = "ulimit -v 1000000; exec \"$0\" show \"$1\"";
    Started::new(desk.command("sh", &["-c", script, env!("CARGO_BIN_EXE_kvfair"), file])).wait()
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_claims_to_be_large_takes_no_memory() {
    let desk = Desk::new();
    let first = golden("fans").lines().next().expect("a record").to_string() + "\n";
    let long = "the line has more than 64 MiB: not a record of kvfair";
    let sparse = |name: &str, begins: &str| {
        let mut file = File::create(desk.home().join(name)).expect("a file");
        file.write_all(begins.as_bytes()).and_then(|()| file.set_len(88 << 30)).expect("a sparse file");
    };
    sparse("sparse.jsonl", &first);
    show_in_a_gigabyte(&desk, "sparse.jsonl").exits(1).complains(&format!("sparse.jsonl:2: {long}"));
    sparse("zeros.jsonl", "");
    show_in_a_gigabyte(&desk, "zeros.jsonl").exits(1).complains(&format!("zeros.jsonl:1: {long}"));
    show_in_a_gigabyte(&desk, "/dev/zero").exits(1).complains(&format!("/dev/zero:1: {long}"));
    // As long as a line may be, and a byte more.
    let padded = |bytes: usize| {
        let record = first.trim_end().strip_suffix('}').expect("an object");
        let text = format!("{record},\"padding\":\"");
        format!("{text}{}\"}}\n", "x".repeat(bytes - text.len() - 2))
    };
    fs::write(desk.home().join("longest.jsonl"), padded(64 << 20)).expect("a file");
    show_in_a_gigabyte(&desk, "longest.jsonl").exits(0).shows("redis");
    fs::write(desk.home().join("longer.jsonl"), format!("{first}{}", padded((64 << 20) + 1))).expect("a file");
    show_in_a_gigabyte(&desk, "longer.jsonl").exits(1).complains(&format!("longer.jsonl:2: {long}"));
}

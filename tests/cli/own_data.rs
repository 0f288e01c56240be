//! What people have: the same likes in every form that they may be in, messages, recordings; standard input and pipes;
//! and what is no such data, told with its first line and what was expected.

use std::io::Write;
use std::process::Stdio;

use flate2::Compression;
use flate2::write::GzEncoder;
use kvfair::jobs;
use kvfair::jobs::input::InputSample;
use nix::sys::signal::Signal;

use crate::common::desk::{Desk, Said, Started, signal, wait_for};

fn gz(text: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(text).and_then(|()| packer.finish()).expect("memory takes what is written")
}

fn zst(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 1).expect("memory takes what is written")
}

fn run(desk: &Desk, job: &str, file: &str, options: &[&str]) -> Said {
    desk.run(&[&["run", job, "--blocks", "1", "--input", file], options, &["ram", "lmdb"]].concat())
}

/// The digests of the answer of the record written last, which must be right.
fn digests(desk: &Desk) -> Vec<String> {
    let record = desk.records().pop().expect("a record");
    assert_eq!(record["verdict"]["kind"], "right", "{record}");
    let answer = record["verdict"]["answer"].as_object().expect("an answer");
    let told = answer.iter().filter(|(name, _)| name.starts_with("sha256"));
    told.map(|(_, digest)| digest.as_str().expect("a digest").to_string()).collect()
}

#[test]
fn pairs_with_a_header_come_from_standard_input() {
    let desk = Desk::new();
    let script = r#"printf 'user,page\na,x\na,y\nb,x\n' | "$0" run fans --input - ram lmdb --blocks 2"#;
    let command = desk.command("sh", &["-c", script, env!("CARGO_BIN_EXE_kvfair")]);
    let said = Started::new(command).wait();
    said.exits(0).complains("read as CSV pairs: user = column 1, page = column 2; 2 users, 2 pages, 3 pairs");
    said.shows("x: 2 fans, 1 of them also of y").shows("data: standard input read as csv-pairs");
    let records = desk.records();
    assert!(records.len() >= 4, "{} records", records.len());
    for record in records {
        assert_eq!((&record["stream"]["units"], &record["verdict"]["kind"]), (&2.into(), &"right".into()), "{record}");
    }
}

/// A table of two sizes would show the same data twice, as if time did not grow.
#[test]
fn a_size_that_a_file_does_not_have_is_refused() {
    let desk = Desk::new();
    desk.file("likes.csv", "user,page\na,x\na,y\nb,x\n");
    let run = ["run", "fans", "--input", "likes.csv", "lmdb", "--blocks", "1", "--profiles"];
    let sized = |sizes: &str| desk.run(&[&run[..], &[sizes]].concat());
    sized("1,2").exits(0);
    for sizes in ["1,20", "20"] {
        let said = sized(sizes);
        said.exits(2).complains("--profiles: likes.csv holds 2 profiles, and 20 are asked for");
        said.complains("leave --profiles out to measure all of it");
    }
}

/// The same likes: Ann has Tea, Rain and "a, b"; Bob Tea and Rain; 7 Tea and 42.
const LISTS: &str = "{\"user\": \"Ann\", \"likes\": [\"Tea\", \"Rain\", \"a, b\"]}\n\
    {\"user\": \"Bob\", \"likes\": [\"Rain\", \"Tea\", \"Rain\"]}\n{\"user\": \"7\", \"likes\": [\"Tea\", \"42\"]}\n";
const PAIRS: &str = "Bob,Tea\nAnn,Tea\n7,42\nAnn,\"a, b\"\nBob,Rain\nBob,Rain\nAnn,Rain\n7,Tea\n";
const PROFILES: &str = "Ann,Tea,Rain,\"a, b\"\nBob,Rain,Tea\n7,Tea,42\n";
const OBJECTS: &str = "{\"liked\": [{\"id\": 1, \"name\": \"Tea\"}, {\"name\": \"Rain\"}, {\"name\": \"a, b\"}], \"u\": 1}\n\
    {\"liked\": [{\"name\": \"Rain\"}, {\"name\": \"Tea\"}]}\n{\"liked\": [{\"name\": \"Tea\"}, {\"name\": 42}]}\n";

#[test]
fn the_same_likes_in_every_form_have_the_same_answer() {
    let tabs = |text: &str| text.replace("\"a, b\"", "a; b").replace(',', "\t").replace("a; b", "a, b");
    let wide = PAIRS.replace('\n', ",2026-11-24,1\n");
    let header = "when,Page Title,who,n\n";
    let moved = "x,Tea,Ann,1\nx,\"a, b\",Ann,1\nx,Rain,Ann,1\nx,Rain,Bob,1\nx,Tea,Bob,1\nx,42,7,1\nx,Tea,7,1\n";
    let liked = LISTS.replace("likes", "liked");
    let of = "user = column 1, page = column 2; 3 users, 4 pages, 7 pairs";
    let all = "user = column 1, pages = all others; 3 users, 4 pages, 7 pairs";
    let forms: Vec<(String, &[&str], String)> = vec![
        (PAIRS.to_string(), &[], format!("read as CSV pairs: {of}")),
        (
            format!("\u{feff}userID,artistID\r\n\r\n{}", PAIRS.replace('\n', "\r\n\r\n")),
            &[],
            format!("CSV pairs: {of}"),
        ),
        (
            format!("user\tpage\n{}", tabs(PAIRS)),
            &[],
            format!("TSV pairs: {of}, 1 duplicate pair dropped; the first line is a header"),
        ),
        (PAIRS.replace('\n', ",,\n"), &[], format!("CSV pairs: {of}")),
        (tabs(PAIRS), &["--format", "tsv-pairs"], format!("TSV pairs: {of}")),
        (
            PAIRS.replace("\"a, b\"", "^").replace(',', ";").replace('^', "a, b"),
            &[],
            format!("CSV (semicolons) pairs: {of}"),
        ),
        (PROFILES.to_string(), &[], format!("CSV profiles: {all}")),
        (format!("\u{feff}\n{}", tabs(PROFILES)), &[], format!("TSV profiles: {all}")),
        ("Ann,Tea,Rain,\"a, b\",\nBob,Rain,Tea,,\n7,Tea,42,,\n".to_string(), &[], format!("CSV profiles: {all}")),
        (wide.clone(), &["--columns", "1,2"], format!("CSV pairs: {of}")),
        (
            format!("user,page,date,n\n{wide}"),
            &[],
            format!("CSV pairs: {of}, 1 duplicate pair dropped; the first line is a header"),
        ),
        (
            format!("{header}{moved}"),
            &["--columns", "WHO,page title"],
            "user = column 3, page = column 2; 3 users, 4".into(),
        ),
        (moved.to_string(), &["--columns", "3,2"], "user = column 3, page = column 2; 3 users, 4".into()),
        (
            format!("\n\u{feff}\n{LISTS}\n \n").replacen("\n\u{feff}", "\u{feff}\n", 1),
            &[],
            "JSON Lines: pages = field likes; 3 users, 4".into(),
        ),
        (LISTS.replace("\"42\"", "42"), &["--format", "jsonl"], "pages = field likes; 3 users, 4 pages".into()),
        (liked, &["--field", "liked"], "pages = field liked; 3 users, 4 pages".into()),
        (OBJECTS.to_string(), &["--field", "liked.name"], "pages = field liked.name; 3 users, 4 pages, 7 pairs".into()),
    ];
    let desk = Desk::new();
    desk.file("lists", LISTS);
    run(&desk, "fans", "lists", &[]).exits(0).shows("Tea: 3 fans, 2 of them also of Rain");
    let expected = digests(&desk);
    for (number, (text, options, words)) in forms.iter().enumerate() {
        // Each plain or packed; the name tells nothing.
        let packed = match number % 3 {
            0 => text.as_bytes().to_vec(),
            1 => gz(text.as_bytes()),
            _ => zst(text.as_bytes()),
        };
        let said = run(&desk, "fans", desk.file("mine", packed), options);
        said.exits(0).complains(words);
        assert_eq!(digests(&desk), expected, "{text}");
        assert_eq!(desk.record("lmdb")["stream"]["units"], 3, "{text}");
    }
}

/// The answers are those of the same data in the recipe's form, whatever the order of the lines.
#[test]
fn many_pairs_in_any_order_are_grouped_by_user() {
    let desk = Desk::new();
    let data = desk.run(&["data", "fans", "--profiles", "300"]).out;
    let mut pairs: Vec<String> = Vec::new();
    for line in data.lines() {
        let profile: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let likes = profile["likes"].as_array().expect("a list").iter();
        pairs.extend(
            likes.map(|page| format!("{},\"{}\"\n", profile["user"].as_str().unwrap(), page.as_str().unwrap())),
        );
    }
    pairs.sort_by_key(|pair| xxhash_rust::xxh3::xxh3_64(pair.as_bytes()));
    desk.file("recipe.jsonl", &data);
    run(&desk, "fans", "recipe.jsonl", &[]).exits(0);
    let expected = (digests(&desk), desk.record("lmdb")["stream"]["sha256"].clone());
    assert_eq!(expected.1, sha256(&data), "what has the recipe's form is read as it is");
    run(&desk, "fans", desk.file("pairs.csv", pairs.concat()), &["--clients", "3"]).exits(0).complains("300 users");
    assert_eq!(digests(&desk), expected.0);
    // Of the first users in the order of their names, at two sizes of one run.
    let said = run(&desk, "fans", "pairs.csv", &["--profiles", "100,200"]);
    said.exits(0).complains("300 users");
    let units: Vec<_> = desk.records().iter().rev().take(4).map(|record| record["stream"]["units"].clone()).collect();
    assert!(units.contains(&100.into()) && units.contains(&200.into()), "{units:?}");
}

fn sha256(text: &str) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn what_is_no_such_data_is_told_with_its_first_line_and_what_was_expected() {
    let desk = Desk::new();
    let rows = |row: fn(u32) -> String| (0..40).map(row).collect::<String>();
    let cases: &[(String, &[&str], &str)] = &[
        ("Tea\nRain\nSnow\n".into(), &[], "a single column"),
        (PAIRS.into(), &["--format", "tsv"], "a single column"),
        (PAIRS.replace(',', "\t"), &["--format", "csv-pairs"], "a single column"),
        ("[{\"likes\": [\"a\"]}]\n".into(), &[], "a JSON array, not JSON Lines"),
        ("{\"liked\": [\"a\", \"b\"]}\n".into(), &[], "no \"likes\", at column"),
        ("{\"liked\": [\"a\", \"b\"]}\n".into(), &[], "hint: --field NAME, one of liked"),
        (OBJECTS.into(), &["--field", "liked"], "hint: --field NAME, one of liked.name"),
        // As each page alone: the file was meant to be read otherwise.
        (rows(|row| format!("user{row},page{}\n", row % 5)), &[], "each of its 40 users has one page"),
        (rows(|_| "{\"likes\": []}\n".to_string()), &[], "no user likes any page"),
        ("a,x\nb,\nc,\nd,\n".into(), &["--skip-bad", "9"], "3 of its first 4 lines have no user and page"),
        (
            format!("{}{}", rows(|row| format!("u,{row}\n")).repeat(6), "u,\n".repeat(300)),
            &["--skip-bad", "999"],
            "300 of its 540 lines cannot be used",
        ),
        (rows(|row| format!("{row},{},5,881250949\n", row * 7)), &[], "4 columns in each line"),
    ];
    for (text, options, words) in cases {
        let said = run(&desk, "fans", desk.file("mine.csv", text), options);
        let first = text.lines().next().expect("a line");
        said.exits(1).complains("mine.csv: ").complains(words).complains("its first line (1): ");
        let shown = kvfair::model::op::readable(&first.as_bytes()[..first.len().min(12)], 99);
        said.complains(&format!("(1): {shown}"));
        said.complains("expected one of these forms").complains("ann,Tea,Rain").complains("{\"user\": \"ann\"");
    }
    let usage: &[(&[&str], &str)] = &[
        (&["--columns", "1"], "--columns takes two columns here"),
        (&["--columns", "user,site"], "--columns user: its first line names no such column, but"),
        (&["--columns", "1,9"], "--columns 9: its lines have 2 columns at most"),
        (&["--columns", "2,2"], "column 2 cannot be both the user and the page"),
        (&["--field", "liked"], "--field liked: "),
    ];
    let utf16: Vec<u8> = format!("\u{feff}{PAIRS}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    for job in ["fans", "ngrams"] {
        run(&desk, job, desk.file("utf16.csv", &utf16), &[]).exits(1).complains("utf16.csv: UTF-16, not UTF-8");
    }
    desk.file("pairs.csv", PAIRS);
    for (options, words) in usage {
        run(&desk, "fans", "pairs.csv", options).exits(1).complains(words);
    }
    assert!(desk.records().is_empty(), "nothing was measured");
    desk.run(&["run", "fans", "ram", "--columns", "1,2"]).exits(2).complains("name a file");
    // One line in a few is passed over where that is allowed, by its number.
    let some = format!("{PAIRS}\nBob,x,y\n");
    run(&desk, "fans", desk.file("some.csv", &some), &[]).exits(1).complains("some.csv:10: 3 columns instead of 2");
    run(&desk, "fans", "some.csv", &["--skip-bad", "1"]).exits(0).shows("1 bad line skipped");
    assert_eq!(desk.record("lmdb")["stream"]["skipped_lines"], 1);
}

/// A quote that is never closed must not be read into memory as a whole.
#[test]
fn an_open_quote_is_refused() {
    let desk = Desk::new();
    desk.file("open.csv", format!("a,x\na,y\nb,\"{}", "z\n".repeat(12 << 20)));
    run(&desk, "fans", "open.csv", &[]).exits(1).complains("open.csv:3: cannot read on: a row of more than 16 MiB");
}

#[test]
fn messages_come_as_text_as_columns_and_as_fields() {
    let desk = Desk::new();
    let text = "Tea in the rain\nTea, \"in\" the rain\nno tea\n";
    run(&desk, "ngrams", desk.file("plain", text), &[]).exits(0).complains("read as text: a message is a line");
    let expected = digests(&desk);
    let csv = "7,\"Tea in\nthe rain\",0\n8,\"Tea, \"\"in\"\" the rain\",0\n9,no tea,0\n";
    let json = "{\"id\": 7, \"text\": \"Tea in\\nthe rain\"}\n{\"text\": \"Tea, \\\"in\\\" the rain\"}\n{\"text\": \"no tea\"}\n";
    let tsv = "7\tTea in the rain\n8\tTea, \"in\" the rain\n9\tno tea\n";
    let body = json.replace("text", "body");
    let deep = json.replace("\"text\": ", "\"data\": {\"text\": ").replace('}', "}}");
    let forms: &[(&str, &[&str], &str)] = &[
        (csv, &["--columns", "2"], "read as CSV: message = column 2; 3 messages"),
        (&format!("\u{feff}id,Text,n\n{csv}"), &[], "CSV: message = column 2; 3 messages; the first line is a header"),
        (&format!("id,said,n\n{csv}"), &["--columns", "said"], "CSV: message = column 2; 3 messages; the first line"),
        (tsv, &["--columns", "2", "--format", "tsv"], "TSV: message = column 2; 3 messages"),
        (json, &[], "JSON Lines: message = field text; 3 messages"),
        (&body, &["--field", "body"], "JSON Lines: message = field body; 3 messages"),
        (&deep, &["--field", "data.text"], "JSON Lines: message = field data.text; 3 messages"),
        (&format!("\u{feff}{text}"), &[], "read as text"),
    ];
    for (text, options, words) in forms {
        run(&desk, "ngrams", desk.file("mine", text), options).exits(0).complains(words);
        assert_eq!(digests(&desk), expected, "{text}");
    }
    let records = desk.records().len();
    let wrong: &[(&str, &[&str], &str)] = &[
        (&body, &[], "no \"text\", at column"),
        (&body, &[], "hint: --field NAME, one of body, id"),
        (csv, &["--format", "csv"], "several columns: which one is the message?"),
        (text, &["--columns", "1,2"], "--columns takes one column here"),
        (text, &["--format", "text", "--field", "text"], "--field text: text has no fields"),
        ("привет мир\n", &[], "nothing in it to ask a store"),
        ("one\n\u{e9}\n", &["--format", "jsonl"], "cannot be used: line 1 is not JSON"),
    ];
    for (text, options, words) in wrong {
        run(&desk, "ngrams", desk.file("mine", text), options).exits(1).complains(words);
    }
    assert_eq!(desk.records().len(), records, "nothing was measured");
}

#[test]
fn recordings_are_told_by_their_first_rows() {
    let desk = Desk::new();
    let oracle =
        [&7_u32.to_le_bytes()[..], &5_u64.to_le_bytes(), &9_u32.to_le_bytes(), &(-1_i64).to_le_bytes()].concat();
    let forms: &[(&[u8], &str)] = &[
        (b"0,key7,4,512,1,get,0\n1,key7,4,512,1,set,9\n", "twitter"),
        (b"# time, object, size, next_access_vtime\n0, 42, 4096, -1\n", "libcachesim"),
        (b"3 4 0 0\n9 2 0 1\n", "arc"),
        (&oracle, "oracle"),
    ];
    for (bytes, form) in forms {
        run(&desk, "trace", desk.file("mine", zst(bytes)), &[]).exits(0).complains(&format!("in the form {form}"));
        assert_eq!(desk.record("lmdb")["job"]["format"], *form);
    }
    let said = run(&desk, "trace", desk.file("mine", forms[2].0), &["--replay", "recorded"]);
    said.exits(2).complains("--replay: the form arc tells no times to keep");
}

/// A shell's pipe for each of these: what comes is kept once, since every trial and client reads it again.
#[test]
fn standard_input_and_pipes_are_kept_once_for_all_trials() {
    let desk = Desk::new();
    for (name, bytes) in [("plain", PAIRS.into()), ("gz", gz(PAIRS.as_bytes())), ("zst", zst(PAIRS.as_bytes()))] {
        desk.file(name, bytes);
    }
    let run = "run fans --blocks 2 --clients 2 redis+unix lmdb --input";
    for script in ["cat plain | \"$0\" RUN -", "\"$0\" RUN - <gz", "cat zst | \"$0\" RUN /dev/stdin"] {
        let script = script.replace("RUN", run);
        let said = Started::new(desk.command("sh", &["-c", &script, env!("CARGO_BIN_EXE_kvfair")])).wait();
        said.exits(0).complains("3 users, 4 pages, 7 pairs").shows("Tea: 3 fans");
    }
    assert_eq!(desk.records().len(), 3 * 4);
    let said = desk.run(&["run", "fans", "--input", "-", "ram"]);
    said.exits(1).complains("--input -: is empty");
    let messages = "printf 'a b\\nb\\n' | \"$0\" run ngrams --blocks 1 ram --input -";
    Started::new(desk.command("sh", &["-c", messages, env!("CARGO_BIN_EXE_kvfair")])).wait().exits(0).shows("terms 3");
}

#[test]
fn ctrl_c_while_nothing_comes_from_standard_input() {
    let desk = Desk::new();
    let mut command = desk.kvfair(&["run", "fans", "--input", "-", "ram"]);
    command.stdin(Stdio::piped());
    let started = Started::new(command);
    wait_for("what is kept", || {
        let scratch = desk.scratch().pop()?;
        desk.tmp().join(scratch).join("input").exists().then_some(())
    });
    started.interrupt(Signal::SIGINT);
    started.wait().exits(130);
    assert!(desk.records().is_empty());
}

/// One that never answers, as one would that has billions of things to count.
#[test]
#[cfg(target_os = "linux")]
fn the_expected_state_is_computed_within_a_time_and_a_memory() {
    let desk = Desk::new();
    let text: String = (0..300_000).map(|number| format!("word{number} ")).collect();
    desk.file("much.txt", format!("{text}\n").repeat(3));
    let started = Started::new(desk.kvfair(&["run", "ngrams", "--input", "much.txt", "--timeout", "3s", "ram"]));
    let is_oracle = |pid: &u32| crate::common::desk::command_line(*pid).ends_with("\0expected-state\0");
    let limit = || {
        let expected = desk.processes().into_iter().find(is_oracle)?;
        let limits = std::fs::read_to_string(format!("/proc/{expected}/limits")).ok()?;
        let bytes = limits.lines().find(|line| line.starts_with("Max data size"))?.split_whitespace().nth(3)?;
        Some((expected, bytes.parse::<u64>().ok()?))
    };
    let (expected, limit) = wait_for("an expected state with a limit", limit);
    signal(expected, Signal::SIGSTOP);
    let total = std::fs::read_to_string("/proc/meminfo").expect("Linux");
    let total_kb = total.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).expect("a number");
    assert!(limit < total_kb * 1024, "{limit} of {total_kb} kB");
    let said = started.wait();
    said.exits(1)
        .complains("within 30 s, the least that it gets whatever --timeout says hint: fewer of them (--messages");
    // Less than that is to be had at all here.
    let script = "ulimit -d 20000; exec \"$0\" run ngrams --input much.txt ram";
    let said = Started::new(desk.command("sh", &["-c", script, env!("CARGO_BIN_EXE_kvfair")])).wait();
    said.exits(1).complains("the expected state needs more memory than").complains("--verify sample");
    assert!(desk.records().is_empty(), "nothing was measured");
}

/// Examples that nobody can copy are none: each is read as what it stands for.
#[test]
fn help_and_documents_have_an_example_of_each_form_that_is_read() {
    let help = Desk::new().run(&["run", "--help"]).out;
    let document = include_str!("../../docs/workloads.md");
    let mut examples = 0;
    for kind in jobs::ALL.iter().filter(|kind| kind.recognise.is_some()) {
        for line in kind.expected.lines().skip(1) {
            assert!(help.contains(line.trim()), "--help lacks: {line}\n{help}");
            let (form, example) = line.trim().rsplit_once("  ").expect("a form and an example");
            if !form.starts_with("oracle") && !example.starts_with("binary") {
                assert!(document.contains(example), "docs/workloads.md lacks: {example}");
                let sample = InputSample { bytes: example.as_bytes(), whole: true, ending: "" };
                let read = kind.recognise.expect("it reads files")(&sample, &Default::default());
                read.unwrap_or_else(|what| panic!("{}: {example}: {what}", kind.name));
                examples += 1;
            }
        }
    }
    assert_eq!(examples, 12);
}

//! Tables, headers, blank rows and lines of JSON that were once misread: each is read as what it is, or refused with a
//! hint that helps.

use kvfair::model::trial::Transport;

use crate::cli::strangers::port_of;
use crate::common;
use crate::common::desk::{Desk, Said, Started};

fn run(desk: &Desk, job: &str, text: impl AsRef<[u8]>, options: &[&str]) -> Said {
    named(desk, job, "mine", text, options)
}

fn named(desk: &Desk, job: &str, file: &str, text: impl AsRef<[u8]>, options: &[&str]) -> Said {
    desk.file(file, text);
    desk.run(&[&["run", job, "--blocks", "1", "--input", file], options, &["ram"]].concat())
}

/// What a shell does in a desk.
fn shell(desk: &Desk, script: &str) -> Said {
    Started::new(desk.command("sh", &["-c", script, env!("CARGO_BIN_EXE_kvfair")])).wait()
}

#[test]
fn bad_lines_of_pairs_are_measured_by_lines_and_not_by_users() {
    let desk = Desk::new();
    let pairs: String = (0..1_000).map(|row| format!("user{},page{row}\n", row % 4)).collect();
    let text = format!("{pairs}{}", "u,\n".repeat(6));
    for (options, units) in [(&["--skip-bad", "9"][..], 4), (&["--skip-bad", "9", "--profiles", "3"], 3)] {
        run(&desk, "fans", &text, options).exits(0).complains("4 users, 1,000 pages, 1,000 pairs");
        let stream = &desk.record("ram")["stream"];
        assert_eq!((&stream["skipped_lines"], &stream["units"]), (&6.into(), &units.into()));
    }
}

#[test]
fn a_header_that_names_both_columns_makes_a_table_whatever_else_is_empty() {
    let desk = Desk::new();
    let words =
        "read as CSV pairs: user = column 1, page = column 2; 2 users, 2 pages, 3 pairs; the first line is a header";
    // Comments that are empty, left out, or with a comma in one of ten.
    let row = "ann,Tea,\n".to_string();
    for rows in ["ann,Tea,good\nann,Rain,\nbob,Tea,\n", "ann,Tea,good\nann,Rain\nbob,Tea\n"] {
        run(&desk, "fans", format!("user,page,comment\n{rows}"), &[]).exits(0).complains(words);
    }
    let rows = format!("{}ann,Rain,good, really\nbob,Tea,\n", row.repeat(12));
    let words = words.replace("3 pairs", "3 pairs, 11 duplicate pairs dropped");
    run(&desk, "fans", format!("user,page,comment\n{rows}"), &[]).exits(0).complains(&words);
    run(&desk, "fans", "page,user\nTea,ann\nRain,ann\nTea,bob\n", &[])
        .exits(0)
        .complains("user = column 2, page = column 1; 2 users, 2 pages, 3 pairs; the first line is a header");
    // Cells beyond those that a header names are pages.
    let all = "read as CSV profiles: user = column 1, pages = all others; 2 users, 4 pages, 5 pairs; the first line";
    for header in ["user,likes", "user,likes,,", "user,page,page,page"] {
        run(&desk, "fans", format!("{header}\nann,Tea,Rain,Snow\nbob,Tea,Ice,\n"), &[]).exits(0).complains(all);
    }
}

/// A row of data that is taken for a header is lost, and nobody sees it.
#[test]
fn a_first_row_is_a_header_only_where_it_can_be_nothing_else() {
    let desk = Desk::new();
    let is_data: &[(&str, &[&str], &str)] = &[
        ("bob,Books\nann,Tea\nann,Rain\n", &[], "2 users, 3 pages, 3 pairs"),
        ("ann,Games\nbob,Tea\ncid,Rain\ncid,Tea\n", &[], "3 users, 3 pages, 4 pairs"),
        ("fan,Books\nfan,Tea\nann,Books\n", &[], "2 users, 2 pages, 3 pairs"),
        ("bob,Books\nann,Books\nann,Tea\n", &[], "2 users, 2 pages, 3 pairs"),
        ("ann,Games\nann,Tea\nbob,Tea\n", &["--columns", "1,2"], "2 users, 2 pages, 3 pairs"),
        // Somebody is called so.
        ("user,Tea\nann,Tea\nann,Rain\n", &[], "2 users, 2 pages, 3 pairs"),
        ("fan,Tea\nann,Rain\nfan,Rain\n", &[], "2 users, 2 pages, 3 pairs"),
        ("fan,Snow\nann,Tea\nann,Rain\n", &["--columns", "1,2"], "2 users, 3 pages, 3 pairs"),
        ("fan,Tea,Rain\nann,Rain,Snow,Ice\n", &[], "2 users, 4 pages, 5 pairs"),
    ];
    for (text, options, words) in is_data {
        let said = run(&desk, "fans", text, options);
        said.exits(0).complains(words);
        assert!(!said.err.contains("header"), "{text}: {}", said.err);
    }
    let is_header: &[(&str, &[&str])] = &[
        ("user,page\nann,Tea\nann,Rain\nbob,Tea\n", &[]),
        ("user,page\nann,Tea\nann,Rain\nbob,Tea\n", &["--columns", "1,2"]),
        ("user,what\nann,Tea\nann,Rain\nbob,Tea\n", &[]),
        ("name,artist\nann,Tea\nann,Rain\nbob,Tea\n", &[]),
        ("who,artistID\nann,Tea\nann,Rain\nbob,Tea\n", &[]),
        ("who,what\nann,Tea\nann,Rain\nbob,Tea\n", &["--columns", "who,what"]),
        ("a,b\n1,10\n1,20\n2,10\n", &[]),
        ("user,likes\nann,Tea,Rain\nbob,Tea\n", &["--format", "csv-profiles"]),
    ];
    for (text, options) in is_header {
        let said = run(&desk, "fans", text, options);
        said.exits(0).complains("2 users, 2 pages, 3 pairs; the first line is a header");
    }
    let said = run(&desk, "ngrams", "7\ttext\n8\ttea\n9\ttext\n", &["--columns", "2"]);
    said.exits(0).complains("TSV: message = column 2; 3 messages");
    let said = run(&desk, "ngrams", "x,hello\n8,tea\n", &["--columns", "2"]);
    said.exits(0).complains("CSV: message = column 2; 2 messages");
}

#[test]
fn rows_without_a_cell_that_is_filled_are_blank_lines() {
    let desk = Desk::new();
    let pairs = "  \nann,Tea\n,\n \t \nann,Rain\n,,,\nbob,Tea\n\"\",\n , \n";
    run(&desk, "fans", pairs, &[]).exits(0).complains("CSV pairs: user = column 1, page = column 2; 2 users, 2 pages");
    assert_eq!(desk.record("ram")["stream"]["skipped_lines"], 0);
    let profiles = ",,,\nann,Tea,Rain,\n,,,\nbob,Tea,,\n,,,\n";
    run(&desk, "fans", profiles, &[]).exits(0).complains("CSV profiles: user = column 1, pages = all others; 2 users");
    let tabs = "ann\tTea\tRain\n\t\n \nbob\tTea\tSnow\tIce\n\t\t\t\n";
    run(&desk, "fans", tabs, &[]).exits(0).complains("TSV profiles: user = column 1, pages = all others; 2 users");
    run(&desk, "ngrams", "id,text\n,\n1,tea\n , \n2,rain\n", &[]).exits(0).complains("message = column 2; 2 messages");
    run(&desk, "fans", ",\n,,\n", &[]).exits(1).complains("a single column");
    run(&desk, "ngrams", ",\n,,\n", &["--format", "csv"]).exits(1).complains("no row in it");
    let said = run(&desk, "fans", format!("{pairs}cid,\n"), &[]);
    said.exits(1).complains("mine:10: an empty page in column 2");
}

#[test]
fn messages_in_json_are_never_counted_as_text() {
    let desk = Desk::new();
    let array = "[{\"id\": 1, \"text\": \"tea\"},\n {\"id\": 2, \"text\": \"rain\"}]\n";
    for (job, text) in [("ngrams", array), ("ngrams", "[\n  {\n  \"text\": \"tea\"\n  }\n]\n"), ("fans", array)] {
        let said = run(&desk, job, text, &[]);
        said.exits(1).complains("a JSON array, not JSON Lines");
        said.complains(&format!("hint: jq -c '.[]' FILE | kvfair run {job} --input - ..."));
    }
    run(&desk, "ngrams", "[12:01] hello\n[12:02] tea\n", &[]).exits(0).complains("read as text");
    let line = |number: u32| format!("{{\"id\": {number}, \"text\": \"tea {number}\"}}\n");
    let stray = format!("{}stray\n{}", line(1), line(2));
    for file in ["mine", "mine.json", "mine.jsonl", "mine.ndjson"] {
        let said = named(&desk, "ngrams", file, &stray, &[]);
        said.exits(1).complains(&format!("{file}:2: not JSON")).complains("--skip-bad N passes over");
        let said = named(&desk, "ngrams", file, format!("stray\n{}{}", line(1), line(2)), &["--skip-bad", "1"]);
        said.exits(0).complains("JSON Lines: message = field text; 2 messages");
    }
    let stray = "stray\n{\"likes\": [\"Tea\", \"Rain\"]}\n{\"likes\": [\"Tea\"]}\n";
    run(&desk, "fans", stray, &["--skip-bad", "1"]).exits(0).complains("JSON Lines: pages = field likes; 2 users");
    // What the name promises and the lines do not keep.
    let pretty = "{\n  \"id\": 1,\n  \"text\": \"tea\"\n}\n";
    let said = named(&desk, "ngrams", "pretty.json", pretty, &[]);
    said.exits(1).complains("cannot be used: line 1 is not JSON").complains("hint: jq -c . FILE |");
    named(&desk, "ngrams", "pretty.json", pretty, &["--format", "text"]).exits(0).complains("read as text");
}

#[test]
fn a_hint_proposes_only_what_works() {
    let desk = Desk::new();
    let pairs = "{\"user\":\"a\",\"page\":\"x\",\"when\":3}\n{\"user\":\"a\",\"page\":\"y\",\"when\":4}\n";
    let said = run(&desk, "fans", pairs, &[]);
    said.exits(1).complains("hint: jq -r '[.user,.page]|@csv' FILE | kvfair run fans --input - ...");
    assert!(!said.err.contains("--field"), "{}", said.err);
    let said = run(&desk, "fans", pairs.replace("user", "User Name").replace("page", "k"), &[]);
    said.exits(1).complains("hint: jq -r '[.USER,.PAGE]|@csv' FILE | kvfair run fans --input - ...");
    let said = run(&desk, "fans", pairs.replace("user", "User Name"), &[]);
    said.exits(1).complains("hint: jq -r '[.\"User Name\",.page]|@csv' FILE |");
    // As it comes out of jq.
    desk.file("pairs.csv", "\"a\",\"x\"\n\"a\",\"y\"\n");
    let said = shell(&desk, "cat pairs.csv | \"$0\" run fans --blocks 1 ram --input -");
    said.exits(0).complains("CSV pairs: user = column 1, page = column 2; 1 user, 2 pages, 2 pairs");
    let said = run(&desk, "fans", "{\"id\": 7, \"name\": \"a\", \"liked\": [\"x\"], \"tags\": [{\"id\": {}}]}\n", &[]);
    said.exits(1).complains("hint: --field NAME, one of liked");
    assert!(!said.err.contains("liked,") && !said.err.contains("id,"), "{}", said.err);
    let said = run(&desk, "ngrams", "{\"tags\": [\"a\"], \"data\": {\"said\": \"b\"}, \"no\": null}\n", &[]);
    said.exits(1).complains("hint: --field NAME, one of data.said");
    for (option, told) in [(["--columns", "1"], "columns"), (["--field", "x"], "fields")] {
        let said = run(&desk, "trace", "1,k,1,2,3,get,0\n", &option);
        said.exits(1).complains(&format!("recorded traffic has no {told} hint: trace takes neither --columns nor"));
    }
}

#[test]
fn recordings_begin_with_a_mark_or_are_refused_as_utf16() {
    let desk = Desk::new();
    let twitter = "0,key7,4,512,1,get,0\n1,key7,4,512,1,set,9\n";
    for text in [format!("\u{feff}{twitter}"), "\u{feff}0, 42, 4096, -1\n0, 42, 4096, -1\n".to_string()] {
        run(&desk, "trace", &text, &[]).exits(0);
        let stream = desk.record("ram")["stream"].clone();
        assert_eq!((&stream["units"], &stream["skipped_lines"]), (&2.into(), &0.into()), "{stream}");
    }
    let units = |mark: &str| format!("{mark}{twitter}").encode_utf16().collect::<Vec<_>>();
    let little: Vec<u8> = units("\u{feff}").into_iter().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = units("\u{feff}").into_iter().flat_map(u16::to_be_bytes).collect();
    let bare: Vec<u8> = units("").into_iter().flat_map(u16::to_le_bytes).collect();
    for (text, options) in [(&little, &[][..]), (&big, &[]), (&bare, &[]), (&little, &["--format", "twitter"])] {
        let said = run(&desk, "trace", text, options);
        said.exits(1)
            .complains("UTF-16, not UTF-8")
            .complains("0,key7,4,512,1,get,0")
            .complains("hint: iconv -f UTF-16");
    }
    for job in ["fans", "ngrams"] {
        run(&desk, job, &bare, &[]).exits(1).complains("UTF-16, not UTF-8");
    }
    // A record of the second 0xfeff begins as UTF-16 does.
    let record = [&0xfeff_u32.to_le_bytes()[..], &5_u64.to_le_bytes(), &9_u32.to_le_bytes(), &(-1_i64).to_le_bytes()];
    run(&desk, "trace", record.concat(), &[]).exits(0).complains("in the form oracle");
}

#[test]
fn each_form_that_can_be_asked_for_is_read_so() {
    let desk = Desk::new();
    // As profiles each of these rows is another user, as pairs some are the same.
    let rows = "ann,Tea,Rain\nann,Snow,Tea\nbob,Tea,Snow\ncid,Tea,Rain\nann,Ice,Fog\ncid,Fog,Ice\n";
    let cases: &[(String, &str, &str)] = &[
        (rows.into(), "csv-profiles", "CSV profiles: user = column 1, pages = all others; 6 users, 5 pages, 12 pairs"),
        (rows.replace(',', ";"), "csv-profiles", "CSV (semicolons) profiles: user = column 1, pages = all others; 6"),
        (rows.replace(',', "\t"), "tsv-profiles", "TSV profiles: user = column 1, pages = all others; 6 users, 5"),
        (rows.into(), "csv-pairs", "CSV pairs: user = column 1, page = column 2; 3 users, 4 pages, 6 pairs"),
        (rows.replace(',', "\t"), "tsv-pairs", "TSV pairs: user = column 1, page = column 2; 3 users, 4 pages, 6"),
        // Some have no page at all, and most have one.
        ("ann,Tea\nbob,\ncid\ndan\neve,Tea,Rain\n".into(), "csv-profiles", "5 users, 2 pages, 3 pairs"),
        // A header that names them otherwise, and lines of any length.
        ("page,user\nTea,ann,x\nRain,ann,x,y\nTea,bob\n".into(), "csv-pairs", "user = column 2, page = column 1; 2"),
    ];
    for (text, form, words) in cases {
        let said = run(&desk, "fans", text, &["--format", form]);
        said.exits(0).complains(&format!("read as {words}").replace("read as 5", "5").replace("read as user", "user"));
        assert_eq!(desk.record("ram")["job"]["read_as"]["form"], *form);
    }
}

#[test]
fn a_page_that_a_user_has_twice_is_one_pair() {
    let desk = Desk::new();
    let words = "2 users, 2 pages, 3 pairs";
    for text in [
        "ann,Tea,Rain,Tea,Tea\nbob,Tea,Tea\n",
        "ann\tTea\tRain\tTea\nbob\tTea\tTea\tTea\n",
        "{\"likes\": [\"Tea\", \"Rain\", \"Tea\"]}\n{\"likes\": [\"Tea\", \"Tea\"]}\n",
        "ann,Tea\nann,Rain\nann,Tea\nbob,Tea\nbob,Tea\n",
    ] {
        run(&desk, "fans", text, &[]).exits(0).complains(words);
    }
    let liked = "{\"liked\": [\"Tea\", \"Rain\", \"Tea\"]}\n{\"liked\": [\"Tea\", \"Tea\"]}\n";
    run(&desk, "fans", liked, &["--field", "liked"]).exits(0).complains(words);
    // A line that is passed over has no pairs.
    let bad = "{\"likes\": [\"Tea\", \"Rain\"]}\n{\"likes\": [\"Tea\"]}\n{\"likes\": [\"Snow\", 1.5]}\n";
    run(&desk, "fans", bad, &["--skip-bad", "1"]).exits(0).complains(words);
    let same = "ann,Tea,Tea\nbob,Rain,Rain,Rain\n";
    run(&desk, "fans", same, &[]).exits(1).complains("each of its 2 users has one page");
}

#[test]
fn standard_input_is_called_so() {
    let desk = Desk::new();
    desk.file("pairs.csv", "user,page\na,x\na,y\nb,x\n");
    let said = shell(&desk, "\"$0\" run fans ram --blocks 1 --profiles 20 --input - <pairs.csv");
    said.exits(2).complains("--profiles: standard input holds 2 profiles, and 20 are asked for");
    for input in ["--input -", "-i -", "--input=-", "-i-"] {
        let said = shell(&desk, &format!("\"$0\" run fans ram lmdb --blocks 1 {input} <pairs.csv"));
        said.exits(0).shows("next: ... | kvfair run fans ram lmdb");
    }
    let said = shell(&desk, "\"$0\" run fans ram lmdb --blocks 1 --input pairs.csv");
    said.exits(0).shows("next: kvfair run fans ram lmdb");
}

/// What a run wrote follows from its data, which nobody has kept.
#[test]
fn what_came_from_standard_input_is_needed_once_more_to_clean() {
    let (server, desk) = (common::start("redis", Transport::Tcp), Desk::new());
    let url = format!("redis://127.0.0.1:{}/3", port_of(&server));
    desk.file("pairs.csv", "user,page\na,x\na,y\nb,x\n");
    shell(&desk, &format!("\"$0\" run fans {url} --blocks 1 --output out.jsonl --input - <pairs.csv")).exits(0);
    let words = "its run read its data from standard input, where `kvfair clean` needs the same data again: \
                 `... | kvfair clean URL --of RESULTS --yes`";
    let said = shell(&desk, &format!("\"$0\" clean {url} --of out.jsonl --yes </dev/null"));
    said.exits(1).complains(words).complains("--input -: is empty");
    let said = shell(&desk, &format!("tac pairs.csv | \"$0\" clean {url} --of out.jsonl --yes"));
    said.exits(1).complains(words).complains("is not what the run had");
    let said = shell(&desk, &format!("\"$0\" clean {url} --of out.jsonl --yes <pairs.csv"));
    said.exits(0).shows("no key holds what this run may have written");
}

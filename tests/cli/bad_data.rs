//! Data files that are missing, broken or hostile: told by file, line and what is wrong, before anything is measured.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::common::desk::{Desk, Started};

const GOOD: &str = "{\"user\": \"a\", \"likes\": [\"Tea\", \"Rain\"]}\n";

fn run(desk: &Desk, arguments: &[&str]) -> crate::common::desk::Said {
    desk.run(&[&["run", "fans", "ram", "--blocks", "1"], arguments].concat())
}

fn packed(text: &str) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(text.as_bytes()).and_then(|()| packer.finish()).expect("memory takes what is written")
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let desk = Desk::new();
    let input = |name: &str| run(&desk, &["--input", name]);
    input("none.jsonl").exits(1).complains("--input none.jsonl: No such file or directory");
    input(desk.file("empty.jsonl", "")).exits(1).complains("--input empty.jsonl: is empty");
    input("..").exits(1).complains("--input ..: is a directory");
    input(desk.file("hollow.jsonl.gz", packed(""))).exits(1).complains("hollow.jsonl.gz: no line in it");
    input(desk.file("blank.jsonl", "\n \n")).exits(1).complains("blank.jsonl: no line in it");
    input(desk.file("no.jsonl.gz", GOOD)).exits(1).complains("no.jsonl.gz:1: cannot read on: ");
    desk.file("people.csv", GOOD);
    let said = run(&desk, &["--input", "people.csv", "--format", "xml"]);
    said.exits(2).complains("--format xml: fans reads jsonl, csv, tsv, csv-pairs");
    run(&desk, &["--input", "people.csv", "--format", "jsonl"]).exits(0);
}

/// Without rights in its user namespace even root may not read a file of mode 000.
#[test]
#[cfg(target_os = "linux")]
fn a_file_without_permission_is_named() {
    let desk = Desk::new();
    desk.file("secret.jsonl", GOOD);
    let file = desk.home().join("secret.jsonl");
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o000)).expect("our own file");
    let kvfair = env!("CARGO_BIN_EXE_kvfair");
    let command = desk.command("unshare", &["--user", kvfair, "run", "fans", "ram", "--input", "secret.jsonl"]);
    Started::new(command).wait().exits(1).complains("--input secret.jsonl: Permission denied");
}

#[test]
fn a_bad_line_is_named_by_its_number() {
    let desk = Desk::new();
    let lines: &[(&str, &[u8], &str)] = &[
        ("no json", b"Tea, Rain", "not JSON: expected value, at column 1"),
        ("no likes", b"{\"user\": \"b\"}", "no \"likes\""),
        ("cut", b"{\"user\": \"b\", \"likes\": [\"Te", "not JSON: EOF while parsing"),
        ("no list", b"{\"likes\": \"Tea\"}", "expected a list of page names"),
        ("not UTF-8", b"{\"likes\": [\"T\xff\"]}", "not UTF-8 at byte 14"),
        ("no name", b"{\"likes\": [\"\"]}", "an empty page name"),
        ("binary", b"\x7fELF\x02\x01\x00\x00\xde\xad\xbe\xef", "not UTF-8 at byte 11"),
    ];
    for (name, line, what) in lines {
        let text = [GOOD.as_bytes(), line, b"\n", GOOD.as_bytes()].concat();
        let said = run(&desk, &["--input", desk.file("bad.jsonl", text)]);
        said.exits(1).complains("bad.jsonl:2: ").complains(what).complains("--skip-bad");
        assert_eq!(said.out, "", "{name}");
    }
    assert!(desk.records().is_empty(), "nothing was measured");
    assert!(!desk.home().join("kvfair-results").read_dir().is_ok_and(|mut files| files.next().is_some()));
}

#[test]
fn bad_lines_may_be_passed_over_up_to_a_number_and_are_counted() {
    let desk = Desk::new();
    let text = format!("{GOOD}x\n{GOOD}y\n{GOOD}");
    desk.file("some.jsonl", &text);
    let said = run(&desk, &["--input", "some.jsonl", "--skip-bad", "2"]);
    said.exits(0).shows("2 bad lines skipped");
    let record = desk.record("ram");
    assert_eq!((&record["stream"]["units"], &record["stream"]["skipped_lines"]), (&3.into(), &2.into()));
    assert_eq!(record["verdict"]["kind"], "right");
    let said = run(&desk, &["--input", "some.jsonl", "--skip-bad", "1"]);
    said.exits(1).complains("some.jsonl:4: ").complains("1 bad lines before it were skipped");
}

#[test]
fn a_file_that_ends_too_early_says_so() {
    let desk = Desk::new();
    let text = GOOD.repeat(2000);
    let cut = &text[..text.len() - 12];
    let said = run(&desk, &["--input", desk.file("cut.jsonl", cut)]);
    said.exits(1).complains("cut.jsonl:2000: ").complains("the input may be cut short");
    // A last line that is whole but for its line end is none of that.
    run(&desk, &["--input", desk.file("whole.jsonl", text.trim_end())]).exits(0);

    let gz = packed(&format!("{text}{}", noise()));
    let said = run(&desk, &["--input", desk.file("cut.jsonl.gz", &gz[..gz.len() - 20])]);
    said.exits(1).complains("cut.jsonl.gz:").complains("cannot read on: ");
    let zst = zstd::encode_all(text.as_bytes(), 1).expect("memory takes what is written");
    let said = run(&desk, &["--input", desk.file("cut.jsonl.zst", &zst[..zst.len() - 5])]);
    said.exits(1).complains("cut.jsonl.zst:").complains("cannot read on: ");
    run(&desk, &["--input", desk.file("whole.jsonl.zst", zst)]).exits(0);
}

/// A profile that packs badly, so that its end is really at the end of the packed file.
fn noise() -> String {
    let names = (0..2000u64).map(|number| format!("\"{:x}\"", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    format!("{{\"likes\": [{}]}}\n", names.collect::<Vec<_>>().join(","))
}

/// A file of one endless line must not be read into memory as a whole.
#[test]
fn a_line_without_end_is_refused() {
    let desk = Desk::new();
    let file = desk.file("endless.txt", vec![b'x'; 200 << 20]);
    let said = desk.run(&["run", "ngrams", "ram", "--blocks", "1", "--input", file]);
    said.exits(1).complains("endless.txt:1: a line of more than 64 MiB");
}

#[test]
fn words_that_are_not_utf8_are_told_by_line() {
    let desk = Desk::new();
    desk.file("latin1.txt", b"one two\nna\xefve\n");
    let said = desk.run(&["run", "ngrams", "ram", "--blocks", "1", "--input", "latin1.txt"]);
    said.exits(1).complains("latin1.txt:2: not UTF-8 at byte 3");
}

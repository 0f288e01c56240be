//! The page of `--html` in a real browser: tests/browser/page.py looks at it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::desk::{Desk, Started};
use crate::forms::results;

const PAGES: &[&str] = &["fans", "noisy", "getset", "rates"];
const MANY: usize = 10_000;

fn of_the_project(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// What `./test` installs; in CI its absence is a failure.
fn is_here() -> bool {
    let files = ["target/test-tools/python/selenium", "target/test-tools/node_modules/axe-core/axe.min.js"];
    let files =
        files.map(of_the_project).into_iter().chain(["/usr/bin/chromium", "/usr/bin/chromedriver"].map(Into::into));
    let missing: Vec<PathBuf> = files.filter(|file| !file.exists()).collect();
    assert!(missing.is_empty() || env::var_os("CI").is_none(), "{missing:?} not here: no page was looked at");
    if !missing.is_empty() {
        eprintln!("!! {missing:?} not here (./test installs them): pages NOT tested in a browser");
    }
    missing.is_empty()
}

/// The golden run of `fans`, again and again, as one run of so many records.
fn many() -> String {
    let records: Vec<Value> =
        results("fans").lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    let block = |record: &Value| record["block"].as_u64().expect("a number");
    let blocks = records.iter().map(block).max().expect("records") + 1;
    let again = (0..).flat_map(|round| records.iter().map(move |record| (round, record)));
    let counted = again.filter(|(round, record)| *round == 0 || block(record) > 0);
    let mut text = String::new();
    for (round, record) in counted.take(MANY) {
        let mut record = record.clone();
        record["block"] = (block(&record) + round * blocks).into();
        text += &format!("{record}\n");
    }
    text
}

#[test]
fn a_browser_shows_the_page_as_it_is_meant() {
    if !is_here() {
        return;
    }
    let desk = Desk::new();
    let hostile = results("fans").replace("\"label\":\"redis\"", r#""label":"<script>alert(1)</script><img src=x>""#);
    assert_ne!(hostile, results("fans"));
    let files = PAGES.iter().map(|name| (*name, results(name)));
    for (name, text) in files.chain([("hostile", hostile), ("many", many())]) {
        let file = format!("{name}.jsonl");
        desk.file(&file, text);
        desk.run(&["show", &file, "--html", &format!("{name}.html")]);
        desk.file(&format!("{name}.json"), desk.run(&["show", &file, "--json"]).out);
    }
    let (page, axe) =
        (of_the_project("tests/browser/page.py"), of_the_project("target/test-tools/node_modules/axe-core/axe.min.js"));
    let home = desk.home();
    let words = [&page, &home, &axe].map(|path| path.display().to_string());
    let mut python = desk.command("python3", &words.each_ref().map(String::as_str));
    // A browser leaves what it likes in the directory of temporary files.
    python.env("PYTHONPATH", of_the_project("target/test-tools/python")).env("TMPDIR", &home);
    let said = Started::new(python).wait();
    println!("{}", said.out);
    // To be looked at by people: light, dark, narrow, and on paper.
    if let Some(folder) = env::var_os("KVFAIR_SCREENSHOTS") {
        for entry in fs::read_dir(&home).expect("our own folder").map(|entry| entry.expect("an entry").path()) {
            if entry.extension().is_some_and(|end| end == "png" || end == "pdf") {
                fs::copy(&entry, Path::new(&folder).join(entry.file_name().expect("a name"))).expect("copied");
            }
        }
    }
    assert_eq!(said.code, 0, "{}\n{}", said.out, said.err);
}

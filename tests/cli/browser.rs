//! The page of `--html` in a real browser: tests/browser/page.py looks at it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cli::forms::results;
use crate::common::desk::{Desk, Started};
use crate::common::needs::{Need, are_met};

const PAGES: &[&str] = &["fans", "noisy", "getset", "rates", "growth"];
const MANY: usize = 10_000;
/// What a browser must show as text, wherever it stands.
const HOSTILE: &str = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'";
/// What was seen: output of a test that passes is not printed, so `./test` prints this at its end.
const TIMES: &str = "target/page-times.txt";

pub fn of_the_project(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// A browser, and what drives it and judges its pages.
pub fn browser() -> [Need; 4] {
    let [selenium, axe] = ["python/selenium", "node_modules/axe-core/axe.min.js"].map(Need::tool);
    let [chromium, driver] = ["chromium", "chromedriver"].map(Need::program);
    [selenium, axe, chromium, driver]
}

/// The golden run of `fans`, each record changed.
fn fans(change: impl Fn(&mut Value)) -> Vec<Value> {
    let mut records: Vec<Value> =
        results("fans").lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    records.iter_mut().for_each(change);
    records
}

fn is_redis(record: &Value) -> bool {
    record["target"]["label"] == "redis"
}

fn relabelled(record: &mut Value) {
    if is_redis(record) {
        record["target"]["label"] = HOSTILE.into();
    }
}

/// Redis keeps files, by one way more than by the other.
fn with_bytes(record: &mut Value) {
    let bytes = if is_redis(record) { 1 << 20 } else { 3 << 20 };
    record["bytes_on_disk"] = bytes.into();
    let phases = record["phases"].as_array_mut().expect("phases");
    phases.iter_mut().for_each(|phase| phase["server"]["bytes_written"] = (2 * bytes).into());
}

fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// The same again and again, as one run of so many records of four targets, which are enough for a filter. Names of
/// targets stand where blocks were discarded.
fn many() -> String {
    let second = |record: &Value| {
        let mut record = record.clone();
        record["target"]["label"] = format!("{}?second", record["target"]["label"].as_str().expect("a label")).into();
        record
    };
    let records: Vec<Value> = fans(relabelled).into_iter().flat_map(|record| [second(&record), record]).collect();
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
    if !are_met(&browser()) {
        return;
    }
    let desk = Desk::new();
    let files = PAGES.iter().map(|name| (*name, results(name)));
    let warned = results("noisy").replace("\"debug_build\":false", "\"debug_build\":true");
    let made = [
        ("hostile", lines(&fans(relabelled))),
        ("bytes", lines(&fans(with_bytes))),
        ("warned", warned),
        ("many", many()),
    ];
    for (name, text) in files.chain(made) {
        let file = format!("{name}.jsonl");
        desk.file(&file, text);
        desk.run(&["show", &file, "--html", &format!("{name}.html")]);
        desk.file(&format!("{name}.json"), desk.run(&["show", &file, "--json"]).out);
    }
    let reproduced = fs::read(of_the_project("tests/golden/shown/reproduce.html")).expect("the page of posts");
    desk.file("reproduced.html", reproduced);
    // The same run, as if on another machine.
    let page = fs::read_to_string(desk.home().join("fans.html")).expect("a page");
    desk.file("other.html", page.replace("\"cpus\":", "\"cpus\":1"));
    desk.run(&["show", "fans.html", "other.html", "--html", "machines.html"]).exits(0);
    fs::create_dir(desk.home().join("published")).expect("a folder");
    for page in fs::read_dir(of_the_project("docs/results"))
        .expect("our own pages")
        .map(|entry| entry.expect("an entry").path())
    {
        if page.extension().is_some_and(|end| end == "html") {
            fs::copy(&page, desk.home().join("published").join(page.file_name().expect("a name"))).expect("copied");
        }
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
    fs::write(of_the_project(TIMES), &said.out).expect("a file beside the test's tools");
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

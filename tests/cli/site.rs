//! `kvfair site`: pages in a directory and their index; what is refused, and that nothing of others is touched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::cli::browser::{browser, of_the_project};
use crate::cli::forms::results;
use crate::cli::page::{heading, says};
use crate::common::desk::{Desk, Started};
use crate::common::golden::are_golden;
use crate::common::needs::are_met;

const MARKER: &str = ".kvfair-site";
const INDEX_BYTES_MAX: usize = 300_000;

/// Results of another day, and a page of one of them.
fn with_results(desk: &Desk) {
    for name in ["fans", "noisy", "getset"] {
        desk.file(&format!("{name}.jsonl"), results(name));
    }
    fs::create_dir(desk.home().join("pages")).expect("a directory");
    desk.run(&["show", "getset.jsonl", "--html", "pages/sets.html"]).exits(0);
}

fn read(desk: &Desk, name: &str) -> String {
    fs::read_to_string(desk.home().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Each file of a site and its bytes.
fn bytes(folder: &Path) -> Vec<(String, Vec<u8>)> {
    names(folder).into_iter().map(|name| (name.clone(), fs::read(folder.join(name)).expect("a file"))).collect()
}

#[test]
fn a_site_has_a_page_of_each_run_and_an_index_that_says_what_it_found() {
    let desk = Desk::with_only(&[]);
    with_results(&desk);
    let all = ["fans.jsonl", "noisy.jsonl", "pages/sets.html"];
    let said = desk.run(&[&["site", "new/site"], &all[..]].concat());
    said.exits(0).complains("site: new/site/index.html (3 pages)");
    assert_eq!(said.out, "");
    let site = desk.home().join("new/site");
    assert_eq!(names(&site), [MARKER, "fans.html", "index.html", "noisy.html", "sets.html"]);
    desk.run(&["show", "fans.jsonl", "--html", "fans.html"]).exits(0);
    assert_eq!(read(&desk, "fans.html"), read(&desk, "new/site/fans.html"), "the page that show writes");
    assert_eq!(read(&desk, "pages/sets.html"), read(&desk, "new/site/sets.html"), "a copy");
    let index = read(&desk, "new/site/index.html");
    for name in ["fans.html", "noisy.html", "sets.html"] {
        let page = read(&desk, &format!("new/site/{name}"));
        let begins: String = heading(&page).chars().take(60).collect();
        says(&index, &[&format!("<a href=\"{name}\">{begins}")]);
    }
    says(&index, &["<td class=\"left\">getset</td>", "2026-11-22 03:26 UTC", "2 processors", "default-src 'none'"]);
    for bad in ["http://", "https://", " src=", "url(", "@import", "<link", "<img"] {
        assert!(!index.contains(bad), "{bad}");
    }
    // The same input, the same bytes: again, in another order, and elsewhere.
    let before = bytes(&site);
    let turned: Vec<&str> = all.iter().rev().copied().collect();
    for folder in ["new/site", "other"] {
        desk.run(&[&["site", folder], &turned[..]].concat()).exits(0);
        assert_eq!(bytes(&desk.home().join(folder)), before, "{folder}");
    }
    // What is no longer among the results goes, and what others put there stays.
    fs::write(site.join("mine.txt"), "mine").expect("written");
    desk.run(&["site", "new/site", "fans.jsonl"]).exits(0).complains("(1 page)");
    assert_eq!(names(&site), [MARKER, "fans.html", "index.html", "mine.txt"]);
    let sums = Started::new({
        let mut command = desk.command("/usr/bin/sha256sum", &["--check", "--quiet", MARKER]);
        command.current_dir(&site);
        command
    });
    sums.wait().exits(0);
}

#[test]
fn results_that_make_no_page_are_named_and_nothing_is_written() {
    let desk = Desk::with_only(&[]);
    with_results(&desk);
    let page = read(&desk, "pages/sets.html");
    desk.file("plain.html", "<!DOCTYPE html><p>hello</p>");
    let manifest = "<script type=\"application/json\" id=\"manifest\">";
    desk.file("bare.html", page.replace(manifest, "<script type=\"application/json\" id=\"other\">"));
    desk.file("form.html", page.replace("{\"form\":2,", "{\"form\":77,"));
    desk.file("open.html", page.replace("default-src 'none'", "default-src *"));
    desk.file("large.html", page.clone() + &" ".repeat(9 << 20));
    desk.file("bytes.html", [0xff, 0xfe, 0x00]);
    desk.file("method.jsonl", results("fans").replacen("\"method\":", "\"method\":9", 1));
    desk.file("broken.jsonl", "{}\n");
    desk.file("index.jsonl", results("fans"));
    fs::create_dir(desk.home().join("again")).expect("a directory");
    fs::copy(desk.home().join("fans.jsonl"), desk.home().join("again/fans.jsonl")).expect("a copy");
    let of = |bad: &str| desk.run(&["site", "site", "fans.jsonl", bad]);
    of("plain.html").exits(1).complains("plain.html: no page of kvfair").complains("hint: `kvfair show");
    of("bare.html").exits(1).complains("bare.html: it has no manifest").complains("hint: ");
    of("form.html").exits(1).complains("form.html: its manifest has form 77");
    of("open.html").exits(1).complains("open.html: no page of kvfair");
    of("large.html").exits(1).complains("large.html has more than 8388608 bytes");
    of("bytes.html").exits(1).complains("bytes.html is no text");
    of("method.jsonl").exits(1).complains("method.jsonl:1").complains("numbers of different methods");
    of("broken.jsonl").exits(1).complains("broken.jsonl:1");
    of("none.jsonl").exits(1).complains("none.jsonl: No such file or directory");
    of("pages").exits(1).complains("pages: it is a directory or a pipe, not a results file");
    of("index.jsonl").exits(1).complains("index.html is the name of the index");
    of("again/fans.jsonl").exits(1).complains("again/fans.jsonl").complains("the page of each would be fans.html");
    of("fans.jsonl").exits(1).complains("the page of each would be fans.html");
    desk.run(&["site", "site"]).exits(2).complains("RESULTS");
    desk.run(&["site"]).exits(2).complains("DIR");
    assert!(!desk.home().join("site").exists(), "nothing is written where something is wrong");
    // A page of another kvfair has another script. It is copied, and named.
    desk.file("older.html", page.replacen("script-src 'sha256-", "script-src 'sha256-A", 1));
    of("older.html").exits(0).complains("older.html: its script is not that of this kvfair's pages");
}

#[test]
fn a_directory_of_others_is_left_alone() {
    let desk = Desk::with_only(&[]);
    with_results(&desk);
    let to = |folder: &str| desk.run(&["site", folder, "fans.jsonl"]);
    desk.file("file", "mine");
    to("file").exits(1).complains("file is no directory").complains("hint: ");
    to("pages").exits(1).complains("pages holds files that `kvfair site` did not write").complains("hint: ");
    assert_eq!(names(&desk.home().join("pages")), ["sets.html"]);
    fs::create_dir(desk.home().join("empty")).expect("a directory");
    to("empty").exits(0);
    // A page that somebody wrote over is not overwritten.
    let page = desk.home().join("empty/fans.html");
    fs::write(&page, "mine").expect("written");
    to("empty").exits(1).complains("fans.html is not as `kvfair site` wrote it");
    assert_eq!(read(&desk, "empty/fans.html"), "mine");
    fs::remove_file(&page).expect("ours");
    symlink(desk.home().join("file"), &page).expect("a link");
    to("empty").exits(1).complains("fans.html is not as");
    assert_eq!(read(&desk, "file"), "mine");
    fs::remove_file(&page).expect("ours");
    to("empty").exits(0);
    fs::write(desk.home().join("empty").join(MARKER), "../file\n").expect("written");
    to("empty").exits(1).complains("it is not as `kvfair site` wrote it");
}

#[test]
fn the_index_of_300_results_has_at_most_300_kilobytes() {
    let desk = Desk::with_only(&[]);
    let page = fs::read(of_the_project("tests/golden/shown/fans.html")).expect("the golden page");
    let pages: Vec<String> = (0..300).map(|number| format!("20261122T032606Z-fans-{number}.html")).collect();
    pages.iter().for_each(|name| {
        desk.file(name, &page);
    });
    let words: Vec<&str> = ["site", "site"].into_iter().chain(pages.iter().map(String::as_str)).collect();
    desk.run(&words).exits(0).complains("(300 pages)");
    let index = read(&desk, "site/index.html");
    assert!(index.len() <= INDEX_BYTES_MAX, "{} bytes", index.len());
    assert_eq!(index.matches("<tr class=\"row\">").count(), 300);
}

/// docs/results/make writes it too.
#[test]
fn golden_index_of_the_published_results_is_that_of_its_pages() {
    let desk = Desk::with_only(&[]);
    let folder = of_the_project("docs/results");
    // The page of the posts is of five runs, and what `crash` found of none.
    let others = ["index.html", "reproduce.html", "crash.html", "failover.html", "failover-postgres.html"];
    let pages = names(&folder).into_iter().filter(|name| name.ends_with(".html") && !others.contains(&name.as_str()));
    let pages: Vec<String> = pages.map(|name| folder.join(name).display().to_string()).collect();
    let words: Vec<&str> = ["site", "site"].into_iter().chain(pages.iter().map(String::as_str)).collect();
    desk.run(&words).exits(0);
    are_golden([("docs/results/index.html".to_string(), read(&desk, "site/index.html").as_str())]);
}

#[test]
fn a_browser_filters_the_index_and_asks_for_nothing() {
    if !are_met(&browser()) {
        return;
    }
    let desk = Desk::new();
    with_results(&desk);
    let other = results("fans").replace("2.50GHz", "4.20GHz <b>");
    desk.file("elsewhere.jsonl", other);
    desk.run(&["site", "site", "fans.jsonl", "noisy.jsonl", "elsewhere.jsonl", "pages/sets.html"]).exits(0);
    let (script, axe) =
        (of_the_project("tests/browser/site.py"), of_the_project("target/test-tools/node_modules/axe-core/axe.min.js"));
    let words = [&script, &desk.home().join("site"), &axe].map(|path| path.display().to_string());
    let mut python = desk.command("python3", &words.each_ref().map(String::as_str));
    // A browser leaves what it likes in the directory of temporary files.
    python.env("PYTHONPATH", of_the_project("target/test-tools/python")).env("TMPDIR", desk.home());
    python.env("PYTHONDONTWRITEBYTECODE", "1");
    let said = Started::new(python).wait();
    println!("{}", said.out);
    assert_eq!(said.code, 0, "{}\n{}", said.out, said.err);
}

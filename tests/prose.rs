//! Text that is made for people is not read by the program: what it says is an enum before it is a sentence.

use std::fs;
use std::path::{Path, PathBuf};

/// Names of variables that hold text for people.
const PROSE: &[&str] = &["line", "note", "reason", "said", "sentence", "text", "told", "why", "words"];
/// What looks into a text.
const LOOKS: &[&str] = &["contains", "ends_with", "starts_with"];
/// Lines that still look into text, by file. A ratchet: none is added, and what is gone leaves the list. They paint or
/// wrap what is shown, until a document says what each of its blocks is.
const KNOWN: &[(&str, &str)] = &[
    ("crates/report/src/chart/drawn_rows.rs", "row.reason.starts_with(\"FAILED\")"),
    ("crates/report/src/history/draw.rs", "rule.words.contains(&words)"),
    ("crates/report/src/page/levers.rs", "reason.starts_with(\"FAILED\")"),
    ("crates/report/src/page/tables.rs", "reason.starts_with(\"FAILED\")"),
];
/// Text of others, and numbers or words that are no sentences.
const NO_PROSE: &[(&str, &str)] = &[
    ("crates/report/src/render/csv.rs", "text.starts_with(OF_FORMULAS)"),
    ("crates/report/src/page/details.rs", "text.ends_with(\"port\")"),
    ("crates/report/src/page/manifest.rs", "words.starts_with('-')"),
    ("crates/report/src/page/mask.rs", "said.ends_with(is_part)"),
    ("crates/report/src/page/mask.rs", "text.starts_with(PACKED)"),
];

/// Every line of a folder's code with its file, without comments and tests.
fn code(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join(folder)];
    let mut all = Vec::new();
    while let Some(path) = files.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path());
            files.extend(entries.filter(|path: &PathBuf| !path.ends_with("tests.rs")));
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source");
        let end = text.find("\n#[cfg(test)]\n").unwrap_or(text.len());
        let name = path.strip_prefix(root).expect("it is below").display().to_string();
        let lines = text[..end].lines().filter(|line| !line.trim_start().starts_with("//"));
        all.extend(lines.map(|line| (name.clone(), line.to_string())));
    }
    assert!(all.len() > 1_000, "{folder} was not read");
    all
}

/// Where a line looks into a text for people.
fn looks(line: &str) -> Vec<String> {
    let looks = PROSE.iter().flat_map(|name| LOOKS.iter().map(move |look| format!("{name}.{look}(")));
    let is_whole = |look: &String| {
        line.match_indices(look.as_str())
            .any(|(place, _)| !line[..place].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    looks.filter(is_whole).collect()
}

#[test]
fn reports_read_no_text_that_is_made_for_people() {
    let all = code("crates/report/src");
    let is_of = |list: &[(&str, &str)], file: &str, line: &str| {
        list.iter().any(|(known, part)| *known == file && line.contains(part))
    };
    let new = all
        .iter()
        .filter(|(file, line)| !looks(line).is_empty() && !is_of(KNOWN, file, line) && !is_of(NO_PROSE, file, line));
    let new: Vec<String> = new.map(|(file, line)| format!("{file}: {}", line.trim())).collect();
    assert!(new.is_empty(), "an enum says this:\n{}", new.join("\n"));
    for (file, part) in KNOWN.iter().chain(NO_PROSE) {
        assert!(all.iter().any(|(path, line)| path == file && line.contains(part)), "{file}: {part} is gone");
    }
    assert_eq!(looks("if words.contains(\" over \") {"), ["words.contains("]);
    assert!(looks("swords.contains(x)").is_empty() && looks("words.push(x)").is_empty());
}

/// A part of a trial is a value of `model::part::Part`, and no string.
#[test]
fn parts_of_a_trial_are_no_strings() {
    let named: Vec<String> = [code("src"), code("crates")]
        .concat()
        .into_iter()
        .filter(|(file, line)| line.contains("\"final_flush\"") && file != "crates/core/src/part.rs")
        .map(|(file, line)| format!("{file}: {}", line.trim()))
        .collect();
    assert!(named.is_empty(), "{}", named.join("\n"));
}

//! One word for one thing: words that the project no longer uses, and names of public types that mean one thing only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Words that the field does not know, and the ones in their place (docs/decisions.md, Words).
const OLD: &[(&str, &str)] = &[
    ("mouth", "codec, client library or protocol"),
    ("mouths", "codecs, client libraries or protocols"),
    ("twin", "A/A control"),
    ("twins", "A/A controls"),
    ("void", "discarded"),
    ("voids", "discards"),
    ("voided", "discarded"),
    ("loud", "noisy"),
    ("loudly", "plainly"),
    ("canary", "processor probe"),
    ("keeper", "supervisor"),
    ("truth", "expected state"),
    ("settling", "final flush"),
    ("half-width", "±"),
    ("half_width", "plus_minus"),
    ("unsent", "backlog"),
];

/// The one table of old names of flags and targets, which are refused with the new name.
const TABLE: &str = "src/cli/renamed.rs";
/// It lists the words itself.
const THIS: &str = "tests/words.rs";
/// It tells what was.
const HISTORY: &str = "CHANGELOG.md";
/// Where each word is a word of people or of another language, with the reason.
const ELSEWHERE: &[(&str, &str)] = &[
    // Data: titles and words of made pages and messages.
    ("tests/golden/", ""),
    // C.
    ("tests/servers/", ".c"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files of the project by the ends of their names, as paths from its root, and their texts.
fn texts(folders: &[&str], ends: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in folders {
        collect(&root().join(folder), ends, &mut found);
    }
    let mut texts = Vec::new();
    for path in found {
        let name = path.strip_prefix(root()).expect("below the root").display().to_string();
        texts.push((name, fs::read_to_string(path).expect("a text")));
    }
    assert!(!texts.is_empty(), "no files in {folders:?}");
    texts
}

fn collect(place: &Path, ends: &[&str], found: &mut Vec<PathBuf>) {
    if place.is_file() {
        found.push(place.to_path_buf());
        return;
    }
    for entry in fs::read_dir(place).expect("a folder") {
        let path = entry.expect("an entry").path();
        let is_named = ends.iter().any(|end| path.display().to_string().ends_with(end));
        if path.is_dir() || is_named {
            collect(&path, ends, found);
        }
    }
}

/// Each old word in a text: line number, word and the word in its place.
fn old_words(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let lower = line.to_lowercase();
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        for (old, new) in OLD {
            let stands_alone = lower.match_indices(old).any(|(at, _)| {
                let (before, after) = (lower[..at].chars().next_back(), lower[at + old.len()..].chars().next());
                !before.is_some_and(is_part) && !after.is_some_and(is_part)
            });
            if stands_alone {
                found.push((number, *old, *new));
            }
        }
    }
    found
}

#[test]
fn old_words_do_not_come_back() {
    let documents = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "Cargo.toml", "test", "bench"];
    let code = ["src", "crates", "tests", "benches", "examples", "docs", "schema"];
    let mut faults = Vec::new();
    for (name, text) in texts(&[&documents[..], &code[..]].concat(), &[".rs", ".md", ".json", ".toml", ".py"]) {
        let is_elsewhere = ELSEWHERE.iter().any(|(begins, ends)| name.starts_with(begins) && name.ends_with(ends));
        if is_elsewhere || [TABLE, THIS, HISTORY].contains(&name.as_str()) {
            continue;
        }
        for (number, old, new) in old_words(&text) {
            faults.push(format!("{name}:{number}: '{old}' is called {new}"));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// The name of a public type, if the line begins its definition.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) "))?;
    let rest = ["struct ", "enum ", "trait ", "type "].iter().find_map(|kind| rest.strip_prefix(kind))?;
    rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}

#[test]
fn no_two_public_types_of_different_modules_have_one_name() {
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, text) in texts(&["src", "crates"], &[".rs"]) {
        if name.contains("/tests/") {
            continue;
        }
        let module = name.split('/').nth(1).expect("a module or crate").to_string();
        for of in text.lines().filter_map(public_type) {
            named.entry(of.to_string()).or_default().insert(module.clone());
        }
    }
    let several = named.into_iter().filter(|(_, modules)| modules.len() > 1);
    let faults: Vec<String> = several.map(|(name, modules)| format!("{name} is a type of {modules:?}")).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Checkers that find nothing in bad text prove nothing in good text.
#[test]
fn the_checkers_see_what_they_look_for() {
    let old = |text| old_words(text).iter().map(|(_, old, _)| *old).collect::<Vec<_>>();
    assert_eq!(old("The Twin of a\nc_void mouthful, voided"), ["twin", "voided"]);
    assert_eq!(public_type("pub struct Seen<'a> {"), Some("Seen"));
    assert_eq!(public_type("pub(super) struct Seen;"), None, "it is not known outside its own folder");
}

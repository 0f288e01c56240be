//! The documents: their tables are those of the program, their commands can be parsed, their links lead somewhere, and
//! they are as short as they promise.

use std::fs;
use std::path::{Path, PathBuf};

use kvfair::model::trial::Durability;
use kvfair::report::{exit, warn};
use kvfair::stores::Role;
use kvfair::{cli, jobs, stores};

use crate::common::golden::are_golden;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// README.md and the like, and all of docs.
fn documents() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name)).to_vec();
    for folder in ["docs", "docs/results"] {
        let entries = fs::read_dir(root().join(folder)).expect("the folder of documents");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        found.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    found.sort();
    found
}

fn is_generated(name: &str, title: &str, table: &str) {
    let text = format!("# {title}\n\nGenerated from the program by `./test golden`.\n\n{table}");
    are_golden([(name.to_string(), text.as_str())]);
}

/// A cell of a table stays in its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[test]
fn golden_table_of_stores_is_that_of_the_program() {
    let mut table =
        "| store | what it is | transports | durability levels | settings |\n|---|---|---|---|---|\n".to_string();
    let mut get = String::new();
    for adapter in stores::ALL.iter().filter(|adapter| adapter.role.is_offered()) {
        let transports: Vec<String> = adapter.transports.iter().map(ToString::to_string).collect();
        let keeps = Durability::ALL.map(|level| match (adapter.keeps)(level) {
            Ok(how) => format!("`{level}`: {how}"),
            Err(_) => format!("`{level}`: refused"),
        });
        let settings = adapter.settings.iter().map(|setting| format!("`?{}=`: {}", setting.name, setting.about));
        let cells = [
            adapter.about.to_string(),
            transports.join(", "),
            keeps.join("; "),
            settings.collect::<Vec<_>>().join("; "),
        ];
        table += &format!("| `{}` | {} |\n", adapter.name, cells.map(|text| cell(&text)).join(" | "));
        get += &format!("- `{}`: {}\n", adapter.name, adapter.get_it.replace('\n', " "));
    }
    is_generated("docs/stores.md", "Stores", &format!("{table}\n## How to get them\n\n{get}"));
}

#[test]
fn golden_table_of_jobs_is_that_of_the_program() {
    let mut table = "| job | what it does | size | options and files |\n|---|---|---|---|\n".to_string();
    for kind in jobs::ALL {
        let usual = if kind.recipe.is_empty() { "all of the file".to_string() } else { kind.default_units.to_string() };
        let size = format!("`--{}` (default {usual})", kind.scale);
        let also = match &kind.requests {
            Some(asked) => asked.options.join(", "),
            None => kind.formats.join(", "),
        };
        table += &format!("| `{}` | {} | {size} | {} |\n", kind.name, cell(kind.about), cell(&also));
    }
    is_generated("docs/jobs.md", "Jobs", &format!("{table}{}", batch_engines()));
}

/// What stands beside the stores of one job.
fn batch_engines() -> String {
    let mut text = "\n## Batch engines\n\n\
        `kvfair run ngrams lmdb redis duckdb polars sort` has batch engines beside stores. Each is a program in\n\
        [examples/batch](../examples/batch), and in kvfair itself. It reads the same messages from a file and\n\
        counts all of them at once. Its time includes the start of the program, reading, counting and writing\n\
        the counts to a file. It uses as many processors as it likes. Its counts are compared with the expected\n\
        state: a wrong count fails the trial. Batch engines are never ranked with stores. One sentence tells\n\
        what counting incrementally in the fastest store costs over the fastest batch engine.\n\n\
        | engine | what it is | how to get it |\n|---|---|---|\n"
        .to_string();
    for engine in stores::ALL.iter().filter(|adapter| adapter.role == Role::Batch) {
        text += &format!("| `{}` | {} | {} |\n", engine.name, cell(engine.about), cell(engine.get_it));
    }
    text
}

#[test]
fn golden_table_of_warnings_is_that_of_the_program() {
    let lines = warn::kinds().map(|(id, when)| format!("| `{id}` | {} |\n", cell(when)));
    let table = format!("| name | shown if |\n|---|---|\n{}", lines.collect::<String>());
    let about = "A warning names what was seen and what to do about it. `--no-warn NAME` hides it. A terminal shows\n\
        the most important ones, a line each; `--wide` shows all.\n\n";
    is_generated("docs/warnings.md", "Warnings", &format!("{about}{table}"));
}

#[test]
fn golden_table_of_exit_codes_in_the_readme_is_that_of_the_program() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    let (before, rest) = readme.split_once("## Exit codes\n\n").expect("a section of exit codes");
    let (_, after) = rest.split_once("\n## ").expect("a section behind it");
    let now = format!("{before}## Exit codes\n\n{}\n## {after}", exit::markdown());
    are_golden([("README.md".to_string(), now.as_str())]);
}

/// The words of a shell's command, up to a comment, a pipe or a redirection.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), letter) => word.push(letter),
            (None, '\'' | '"') => (quote, begun) = (Some(letter), true),
            (None, '|' | '>' | '<' | ';' | '&') => break,
            (None, '#') if !begun => break,
            (None, letter) if letter.is_whitespace() => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (None, letter) => {
                word.push(letter);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// The commands in the blocks of a document, each with its line; one that ends with a backslash goes on in the next.
fn commands(text: &str) -> Vec<(usize, Vec<String>)> {
    let (mut found, mut is_block, mut open) = (Vec::new(), false, None::<(usize, String)>);
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
            continue;
        }
        let line = line.trim_start().trim_start_matches("$ ");
        let whole = match open.take() {
            Some((first, begun)) => Some((first, format!("{begun} {line}"))),
            None if is_block && line.starts_with("kvfair ") => Some((number, line.to_string())),
            None => None,
        };
        let Some((first, whole)) = whole else { continue };
        match whole.strip_suffix('\\') {
            Some(begun) => open = Some((first, begun.to_string())),
            None => found.push((first, words(&whole))),
        }
    }
    found
}

/// The files that documents name are their readers'; a plan only asks whether they are there.
fn with_files(words: &[String]) -> Vec<String> {
    let file = root().join("tests/golden/profiles.jsonl").display().to_string();
    let is_named = |at: usize| at > 0 && ["--input", "-i"].contains(&words[at - 1].as_str()) && words[at] != "-";
    (0..words.len()).map(|at| if is_named(at) { file.clone() } else { words[at].clone() }).collect()
}

#[test]
fn every_command_in_a_document_is_understood() {
    let (mut faults, mut count) = (Vec::new(), 0);
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document");
        for (line, words) in commands(&text) {
            count += 1;
            if let Err(what) = cli::understood(&with_files(&words)) {
                faults.push(format!("{}:{line}: {}: {what}", path.display(), words.join(" ")));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    assert!(count > 40, "only {count} commands were found");
}

#[test]
fn links_lead_to_files_of_the_project() {
    let mut faults = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document");
        for (_, rest) in text.match_indices("](").map(|(at, _)| text.split_at(at + 2)) {
            let target = rest.split(')').next().expect("the end of a link");
            let file = target.split('#').next().expect("a file");
            let is_outside = target.starts_with("http") || target.contains(' ');
            if !is_outside && !file.is_empty() && !path.parent().expect("a folder").join(file).exists() {
                faults.push(format!("{}: {target} is not there", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// A page that nobody reads to its end tells nothing.
const AT_MOST: &[(&str, usize)] = &[("README.md", 10_000), ("docs/method.md", 20_000), ("ARCHITECTURE.md", 12_000)];

#[test]
fn documents_are_as_short_as_they_promise() {
    for (name, most) in AT_MOST {
        let bytes = fs::read(root().join(name)).expect("a document").len();
        assert!(bytes <= *most, "{name} has {bytes} bytes, at most {most}");
    }
}

/// Comments cite what a reader can have.
/// Of kvfair-ray and of the kvfair that it needs.
#[test]
fn the_python_package_has_the_version_of_the_program() {
    let text = fs::read_to_string(root().join("python/pyproject.toml")).expect("the package beside the wheel");
    let version = env!("CARGO_PKG_VERSION");
    for line in [format!("version = \"{version}\""), format!("\"kvfair=={version}\"")] {
        assert!(text.contains(&line), "python/pyproject.toml has no {line}");
    }
}

#[test]
fn no_file_cites_rules_of_a_document_outside() {
    fn look(place: &Path, faults: &mut Vec<String>) {
        for entry in fs::read_dir(place).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                look(&path, faults);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("documents.rs") {
                let text = fs::read_to_string(&path).expect("a source");
                for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| line.contains("METHOD.md")) {
                    faults.push(format!("{}:{number}: {}", path.display(), line.trim()));
                }
                let rules = |line: &str| line.replace("docs/method.md", "").contains("method.md R");
                for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| rules(line)) {
                    faults.push(format!("{}:{number}: {}", path.display(), line.trim()));
                }
            }
        }
    }
    let mut faults = Vec::new();
    ["src", "crates", "tests", "benches"].iter().for_each(|folder| look(&root().join(folder), &mut faults));
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// The blocks of Rust in a document, in lists too.
fn blocks_of_rust(text: &str) -> Vec<String> {
    let (mut blocks, mut open) = (Vec::new(), None::<String>);
    for line in text.lines().map(str::trim) {
        open = match (open.take(), line) {
            (None, "```rust") => Some(String::new()),
            (Some(block), "```") => {
                blocks.push(unbroken(&block));
                None
            }
            (block, line) => block.map(|block| block + line + "\n"),
        };
    }
    blocks
}

/// All blanks and line ends as one blank each: where rustfmt breaks a line depends on how far it is indented.
fn unbroken(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// All Rust sources below, each unbroken.
fn sources(place: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(place).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(unbroken(&fs::read_to_string(&path).expect("a source")));
        }
    }
}

/// What CONTRIBUTING.md shows stands in a source that is compiled.
#[test]
fn the_code_that_contributing_shows_is_compiled() {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("the document");
    let mut compiled = Vec::new();
    ["src", "crates", "examples"].iter().for_each(|folder| sources(&root().join(folder), &mut compiled));
    let blocks = blocks_of_rust(&text);
    assert!(blocks.len() >= 9, "only {} blocks were found", blocks.len());
    for block in &blocks {
        assert!(
            compiled.iter().any(|source| source.contains(block)),
            "no source has what CONTRIBUTING.md shows: {block}"
        );
    }
    // A file by itself is compiled where a module names it.
    for entry in fs::read_dir(root().join("examples/contributing")).expect("the folder of examples") {
        let name = entry.expect("an entry").file_name().display().to_string();
        let named = format!("contributing/{name}\"] mod ");
        assert!(compiled.iter().any(|source| source.contains(&named)), "no module names examples/contributing/{name}");
    }
}

/// Checkers that find nothing in bad text prove nothing in good text.
#[test]
fn the_checkers_see_what_they_look_for() {
    let text = "kvfair no\n```\n$ kvfair run fans 'a b' \\\n    --list   # x\nkvfair show | less\n```\n";
    assert_eq!(blocks_of_rust("1. x\n\n   ```rust\n   a {\n       b\n   ```\n```\nc\n```\n"), ["a { b"]);
    let found: Vec<Vec<String>> = commands(text).into_iter().map(|(_, words)| words).collect();
    assert_eq!(found, [vec!["kvfair", "run", "fans", "a b", "--list"], vec!["kvfair", "show"]]);
    let understood = |words: &[&str]| cli::understood(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert!(understood(&["kvfair", "run", "fans", "lmdb", "--profiles", "9"]).is_ok());
    assert!(understood(&["kvfair", "run", "fans", "lmbd"]).is_err(), "there is no such store");
    assert!(understood(&["kvfair", "run", "fans", "lmdb", "--depth", "2"]).is_err(), "fans has no such option");
}

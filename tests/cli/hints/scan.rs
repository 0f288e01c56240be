//! No hint of the sources is passed over: it stands in the table, another test complains of it, or it is an exception
//! with a reason.

use std::fs;
use std::path::{Path, PathBuf};

use super::exceptions::EXCEPTIONS;
use super::literals::literals;
use super::table::{Row, TABLE, rows};
use crate::common::desk::one_line;

const LEAD: &str = "hint: ";
/// Where a file's own tests begin.
const OWN_TESTS: &str = "\n#[cfg(test)]\nmod ";
/// Fewer letters of a hint in another test tell it from no other, and fewer in a text are no hint.
const ENOUGH: usize = 12;
const LEAST: usize = 6;
/// Functions whose last argument is a hint, and where they are called.
const TAKE_HINTS: &[(&str, &str)] = &[("crates/jobs/src/input", "fault("), ("src/cli/refusals.rs", "refused(")];

/// A hint as it stands in the sources, with placeholders in braces.
struct Hint {
    place: String,
    form: String,
    /// Whether more may stand before or behind it.
    is_part: bool,
}

/// Sources of Rust below a folder, by their paths from the root of the project.
fn sources(folders: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut left: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    let mut found = Vec::new();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|end| end == "rs") {
            let name = path.strip_prefix(root).expect("below the root").display().to_string();
            found.push((name, fs::read_to_string(path).expect("a source")));
        }
    }
    found.sort();
    found
}

/// The code of a source, and its own tests.
fn parts<'a>(name: &str, text: &'a str) -> (&'a str, &'a str) {
    match text.find(OWN_TESTS) {
        _ if name.ends_with("/tests.rs") || name.contains("/tests/") => ("", text),
        Some(place) => text.split_at(place),
        None => (text, ""),
    }
}

/// All hints of a source: behind the lead, in what is called a hint, and among the arguments of what takes one.
fn hints(name: &str, code: &str) -> Vec<Hint> {
    let mut found: Vec<(usize, String, bool)> = Vec::new();
    for (at, value) in literals(code) {
        let lines = value.split(LEAD).skip(1).map(|rest| rest.lines().next().unwrap_or_default());
        found.extend(lines.map(|line| (at, line.to_string(), false)));
    }
    for (at, statement) in statements(code) {
        let others = literals(statement).into_iter().filter(|(_, value)| !value.contains(LEAD));
        found.extend(others.map(|(_, value)| (at, value, true)));
    }
    for (_, call) in TAKE_HINTS.iter().filter(|(place, _)| name.starts_with(place)) {
        let texts = code.match_indices(call).filter_map(|(at, _)| Some((at, last_text(&code[at + call.len()..])?)));
        found.extend(texts.map(|(at, text)| (at, text, true)));
    }
    let place = |at: usize| format!("{name}:{}", code[..at].matches('\n').count() + 1);
    let told = found.into_iter().filter(|(_, form, _)| form.len() >= LEAST || form.starts_with('{'));
    told.map(|(at, form, is_part)| Hint { place: place(at), form: one_line(&form), is_part }).collect()
}

/// Statements that name a hint: `let hint = ...;`.
fn statements(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.match_indices("let ").filter_map(|(at, _)| {
        let statement = code[at..].split(";\n").next()?;
        let (named, _) = statement.split_once(" = ")?;
        named.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == "hint").then_some((at, statement))
    })
}

/// The text that is the last of the arguments, if it is one.
fn last_text(arguments: &str) -> Option<String> {
    let mut open = 1;
    let end = arguments.find(|letter: char| {
        open += i32::from(letter == '(') - i32::from(letter == ')');
        open == 0
    })?;
    let (at, value) = literals(&arguments[..end]).pop()?;
    // A name behind it would be the last.
    let behind = &arguments[at..end];
    let behind = &behind[behind.rfind('"')? + 1..];
    behind.chars().all(|letter| letter == ')' || letter == ',' || letter.is_whitespace()).then_some(value)
}

/// The texts between the placeholders of a hint.
fn pieces(form: &str) -> Vec<String> {
    let form = form.replace("{{", "\u{1}").replace("}}", "\u{2}");
    let mut pieces = Vec::new();
    for (index, part) in form.split('{').enumerate() {
        let piece = if index == 0 { part } else { part.split_once('}').map_or(part, |(_, behind)| behind) };
        pieces.push(piece.replace('\u{1}', "{").replace('\u{2}', "}"));
    }
    pieces
}

fn letters(form: &str) -> usize {
    pieces(form).iter().map(String::len).sum()
}

/// Whether a hint of this form may print these words, or words that begin so. Each placeholder stands for anything.
fn prints(form: &str, words: &str, is_whole: bool) -> bool {
    let pieces = pieces(form);
    let (mut rest, mut shared) = (words, 0);
    for (index, piece) in pieces.iter().enumerate() {
        let is_last = index + 1 == pieces.len();
        if !is_whole && shared + ends_in(rest, piece, index) >= ENOUGH.min(letters(form)) {
            return true;
        }
        let found = match index {
            0 => rest.starts_with(piece.as_str()).then_some(0),
            _ if is_last && is_whole => rest.ends_with(piece.as_str()).then(|| rest.len() - piece.len()),
            _ => rest.find(piece.as_str()),
        };
        let Some(place) = found else { return false };
        rest = &rest[place + piece.len()..];
        shared += piece.len();
    }
    match is_whole {
        true => rest.is_empty(),
        false => shared >= ENOUGH.min(letters(form)),
    }
}

/// How many letters of a piece are the end of these words; of the first piece, all of them.
fn ends_in(words: &str, piece: &str, index: usize) -> usize {
    let is_end = |end: &usize| words.ends_with(&piece[..*end]) && (index > 0 || *end == words.len());
    let ends = piece.char_indices().map(|(end, _)| end).chain([piece.len()]);
    ends.filter(is_end).max().unwrap_or_default()
}

/// What tests tell of hints.
struct Told {
    rows: Vec<Row>,
    /// What stands behind the lead in other tests.
    hints: Vec<String>,
    /// All their literals.
    text: String,
}

impl Told {
    fn by(tests: &[String]) -> Told {
        let text: Vec<String> =
            tests.iter().flat_map(|test| literals(test)).map(|(_, value)| one_line(&value)).collect();
        let hints = text.iter().flat_map(|value| value.split(LEAD).skip(1));
        // What is filled in there is not known.
        let hints = hints.map(|hint| hint.split('{').next().unwrap_or_default().to_string()).collect();
        Told { rows: TABLE.iter().flat_map(|part| rows(part)).collect(), hints, text: text.join("\n") }
    }

    fn has(&self, form: &str, is_part: bool) -> bool {
        let whole = if is_part { format!("{{}}{form}{{}}") } else { form.to_string() };
        let in_row = |row: &Row| prints(&whole, row.known(), !row.is_cut_off());
        let longest = pieces(form).into_iter().max_by_key(String::len).unwrap_or_default();
        let is_anything = letters(form) < 2;
        !is_anything
            && (self.rows.iter().any(in_row)
                || self.hints.iter().any(|hint| prints(form, hint, false))
                || longest.len() >= ENOUGH && self.text.contains(longest.trim()))
    }
}

/// A hint with the values of the constants in it.
fn with_constants(form: &str, code: &[(String, String)]) -> String {
    let names = form.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
    let is_constant =
        |name: &&str| !name.is_empty() && name.chars().all(|letter| letter.is_uppercase() || letter == '_');
    names.filter(is_constant).fold(form.to_string(), |form, name| {
        let lead = format!("const {name}: &str = ");
        let value = code.iter().find_map(|(_, text)| Some(literals(text.split_once(&lead)?.1).remove(0).1));
        value.map_or(form.clone(), |value| form.replace(&format!("{{{name}}}"), &value))
    })
}

#[test]
fn each_hint_is_in_the_table_or_another_test_complains_of_it() {
    let all = sources(&["src", "crates"]);
    let others = sources(&["tests"]).into_iter().filter(|(name, _)| !name.starts_with("tests/cli/hints"));
    let own = all.iter().map(|(name, text)| parts(name, text).1.to_string());
    let told = Told::by(&others.map(|(_, text)| text).chain(own).collect::<Vec<_>>());
    let (mut faults, mut used) = (Vec::new(), vec![false; EXCEPTIONS.len()]);
    for hint in all.iter().flat_map(|(name, text)| hints(name, parts(name, text).0)) {
        let form = with_constants(&hint.form, &all);
        // The words of this one stand in a statement, or in a call.
        if form == "{hint}" || told.has(&form, hint.is_part) {
            continue;
        }
        let is_it = |(place, words, _): &(&str, &str, &str)| hint.place.starts_with(place) && form.starts_with(words);
        match EXCEPTIONS.iter().position(is_it) {
            Some(place) => used[place] = true,
            None => faults.push(format!("{}: hint: {form}: no row of tests/cli/hints has it", hint.place)),
        }
    }
    let stale = EXCEPTIONS.iter().zip(used).filter(|(_, used)| !used);
    faults.extend(stale.map(|((place, words, _), _)| format!("{place}: {words}: no exception is needed")));
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// A checker that finds nothing in bad code proves nothing in good code.
#[test]
fn a_hint_without_a_row_is_seen() {
    let code = r#"
        bail!("no\nhint: turn it off, {name}, and on again");
        let hint = if is_off { "turn it on for once" } else { "" };
        refused("it is off", "turn it on, please")
    "#;
    let found = hints("src/cli/refusals.rs", code);
    let forms: Vec<&str> = found.iter().map(|hint| hint.form.as_str()).collect();
    assert_eq!(forms, ["turn it off, {name}, and on again", "turn it on for once", "turn it on, please"]);
    let told = Told::by(&[r#"said.complains("hint: turn it off, redis, and")"#.to_string()]);
    assert_eq!(found.iter().map(|hint| told.has(&hint.form, hint.is_part)).collect::<Vec<_>>(), [true, false, false]);
    assert!(prints("?{new}={value}", "?protocol=binary", true) && !prints("it has {has}", "has", true));
}

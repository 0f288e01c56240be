//! What people have, told apart by its first lines: the form of a user's file, and which part of it a job means. It
//! must not know where bytes come from.

use super::lines::without_mark;
use kvfair_core::op::readable;
use kvfair_core::trial::ReadAs;

pub mod fields;
pub mod messages;
pub mod profiles;
pub mod table;

/// The beginning of an input.
pub struct InputSample<'a> {
    pub bytes: &'a [u8],
    /// Whether that is all of it.
    pub whole: bool,
    /// The end of the file's name without `.gz` and `.zst`, where it has one.
    pub ending: &'a str,
}

/// So many lines at the beginning tell what the others are.
const LINES: usize = 200;
/// So much of a line is shown.
const SHOWN_BYTES: usize = 80;

/// How an input is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Recognised {
    /// As `--format` takes it.
    pub form: &'static str,
    /// The form in which the job reads it.
    pub becomes: &'static str,
    pub shape: Shape,
    /// "CSV pairs: user = column 1, page = column 2".
    pub words: String,
}

/// Where in an input the job's data is. Columns are counted from 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// All of it, in the job's own form.
    AsItIs,
    /// A user and a page in each row, in any order.
    Pairs { table: TableForm, user: usize, page: usize },
    /// A user and all their pages in each row.
    Profiles { table: TableForm },
    /// The pages of one user in a field of each line.
    Lists { field: Vec<String> },
    /// A message in a column of each row.
    Column { table: TableForm, column: usize },
    /// A message in a field of each line.
    Texts { field: Vec<String> },
}

/// Rows of columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableForm {
    pub separator: u8,
    /// The first row is one of names.
    pub header: bool,
    /// Each row has so many columns, or cannot be used; any number where nothing is said.
    pub width: Option<usize>,
}

impl TableForm {
    /// As messages call it.
    pub fn name(&self) -> &'static str {
        match self.separator {
            b'\t' => "TSV",
            b';' => "CSV (semicolons)",
            _ => "CSV",
        }
    }
}

impl Shape {
    /// What the sentence about a reading ends with.
    pub fn header_in_words(&self) -> &'static str {
        let (Shape::Pairs { table, .. } | Shape::Profiles { table } | Shape::Column { table, .. }) = self else {
            return "";
        };
        if table.header { "; the first line is a header" } else { "" }
    }
}

impl<'a> InputSample<'a> {
    /// The lines that are not blank, each with its number from 1. One that is cut off is left out, unless it is the
    /// only one.
    pub fn lines(&self) -> Vec<(u64, &'a [u8])> {
        let text = without_mark(self.bytes);
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        let cut = usize::from(!self.whole && lines.len() > 1);
        let numbered = (1..).zip(&lines[..lines.len() - cut]);
        numbered
            .map(|(number, line)| (number, line.trim_ascii()))
            .filter(|(_, line)| !line.is_empty())
            .take(LINES)
            .collect()
    }

    /// Some programs export UTF-16, which mostly begins with a mark of its own.
    fn must_not_be_utf16(&self, expected: &str) -> Result<(), String> {
        match self.bytes {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Err(utf16(expected)),
            _ => self.must_not_be_ascii_in_utf16(expected),
        }
    }

    /// Text in UTF-8 has no byte 0. One in a later line is an error of that line, which may be passed over.
    pub fn must_be_text(&self, expected: &str) -> Result<(), String> {
        self.must_not_be_utf16(expected)?;
        let mut first_line = self.bytes.iter().take_while(|byte| **byte != b'\n');
        match first_line.position(|byte| *byte == 0) {
            Some(place) => Err(format!("this is not text: byte {} is 0\nexpected {expected}", place + 1)),
            None => Ok(()),
        }
    }

    /// The same of what may be binary, where two bytes are no mark: by its first letters.
    pub fn must_not_be_ascii_in_utf16(&self, expected: &str) -> Result<(), String> {
        /// So many letters are no accident: numbers of records have zeros side by side.
        const LETTERS: usize = 16;
        let (letters, _) = self.bytes.as_chunks::<2>();
        let letters = &letters[..letters.len().min(LETTERS)];
        let is_ascii = |read: fn([u8; 2]) -> u16| {
            let is_letter = |letter: u16| matches!(letter, 0xfeff | 9 | 10 | 13 | 32..=126);
            letters.len() > 1 && letters.iter().all(|letter| is_letter(read(*letter)))
        };
        match is_ascii(u16::from_le_bytes) || is_ascii(u16::from_be_bytes) {
            true => Err(utf16(expected)),
            false => Ok(()),
        }
    }

    /// Whether it is meant for JSON Lines: by most of its lines, or by its name.
    pub fn is_json_lines(&self) -> bool {
        let lines = self.lines();
        let objects = lines.iter().filter(|(_, line)| line.first() == Some(&b'{')).count();
        objects * 2 > lines.len() || matches!(self.ending, "json" | "jsonl" | "ndjson")
    }

    /// Whether it begins as a JSON array of objects or of texts does; a message may begin with a bracket.
    pub fn begins_an_array(&self) -> bool {
        let inner = without_mark(self.bytes).trim_ascii_start().strip_prefix(b"[");
        inner.is_some_and(|inner| matches!(inner.trim_ascii_start().first(), Some(b'{' | b'"')))
    }

    /// What is wrong then; of texts and of lists of them `jq` makes lines of the job otherwise than of objects.
    pub fn is_an_array(&self, expected: &str, job: &str, [of_texts, of_lists]: [&str; 2]) -> String {
        let inner = without_mark(self.bytes).trim_ascii_start().get(1..).unwrap_or_default();
        let of = match inner.trim_ascii_start().first() {
            Some(b'"') => of_texts,
            Some(b'[') => of_lists,
            _ => "-c '.[]'",
        };
        let hint = format!("jq {of} FILE | kvfair run {job} --input - ...");
        self.fault("a JSON array, not JSON Lines", expected, &hint)
    }

    /// What is wrong with this input as a whole, with its first line and what it should have been.
    pub fn fault(&self, what: &str, expected: &str, hint: &str) -> String {
        let first = self.lines().first().map_or_else(String::new, |(number, line)| {
            format!("\nits first line ({number}): {}", readable(line, SHOWN_BYTES))
        });
        let hint = if hint.is_empty() { String::new() } else { format!("\nhint: {hint}") };
        format!("{what}{first}\nexpected {expected}{hint}")
    }
}

fn utf16(expected: &str) -> String {
    let hint = "hint: iconv -f UTF-16 -t UTF-8 FILE | kvfair run ... --input -";
    format!("UTF-16, not UTF-8\nexpected {expected}\n{hint}")
}

/// What is typed for a form that has no such thing.
pub fn has_no_columns(read_as: &ReadAs, form: &str) -> Result<(), String> {
    match read_as.columns.is_empty() {
        true => Ok(()),
        false => {
            let hint = or_not(form, "--field NAME for JSON Lines");
            Err(format!("--columns: {form} has no columns\nhint: {hint}"))
        }
    }
}

pub fn has_no_field(read_as: &ReadAs, form: &str) -> Result<(), String> {
    match &read_as.field {
        None => Ok(()),
        Some(field) => {
            let hint = or_not(form, "--columns for CSV and TSV");
            Err(format!("--field {field}: {form} has no fields\nhint: {hint}"))
        }
    }
}

/// What is typed in its place; text has neither columns nor fields.
fn or_not<'a>(form: &str, other: &'a str) -> &'a str {
    if form == "text" { "leave it out, or name another --format" } else { other }
}

/// A field's path as it is typed: `liked.name`.
pub fn path_of(field: &str) -> Vec<String> {
    field.split('.').map(str::to_string).collect()
}

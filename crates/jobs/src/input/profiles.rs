//! Which users like which pages, in whatever form somebody has that: told by the first lines. It must not know what is
//! done with them.

use std::collections::HashSet;

use super::table::{columns_of, filled, is_key_of, is_named, is_one_of, names_numbers, recurs, rows_of, separator_of};
use super::{InputSample, Recognised, Shape, TableForm, fields, has_no_columns, has_no_field, path_of};
use crate::people::{self, LIKED};
use kvfair_core::trial::ReadAs;

/// The forms in which profiles come, as `--format` takes them; the first one is the recipe's.
pub const FORMATS: &[&str] = &["jsonl", "csv", "tsv", "csv-pairs", "csv-profiles", "tsv-pairs", "tsv-profiles"];

/// What a line must be.
pub const EXPECTED: &str = "one of these forms, with an example of a line:
  CSV or TSV, a user and a page a line     ann,Tea
  CSV or TSV, a user and all their pages   ann,Tea,Rain
  JSON Lines, a list of pages a line       {\"user\": \"ann\", \"likes\": [\"Tea\", \"Rain\"]}";

/// What headers call a user and a page.
const USERS: &[&str] = &[
    "user",
    "customer",
    "member",
    "person",
    "account",
    "visitor",
    "session",
    "client",
    "reader",
    "follower",
    "fan",
    "subscriber",
    "buyer",
    "basket",
    "order",
    "invoice",
    "transaction",
    "uid",
    "userid",
    "username",
];
const PAGES: &[&str] = &[
    "page",
    "item",
    "product",
    "artist",
    "movie",
    "film",
    "song",
    "track",
    "album",
    "book",
    "article",
    "title",
    "url",
    "link",
    "tag",
    "brand",
    "category",
    "like",
    "site",
    "game",
    "video",
    "channel",
    "show",
    "good",
    "topic",
    "isbn",
    "website",
    "repo",
    "repository",
    "followee",
];

/// A table of a user, a page and a few things besides has as many columns in each line; profiles hardly have.
const TABLE_WIDTH: std::ops::RangeInclusive<usize> = 3..=8;
const TABLE_ROWS: usize = 5;
/// Of lines with pairs a few may hold a comma that is not quoted; many, where users come again and again.
const PAIRS_SHARE: f64 = 0.9;

/// How profiles are read out of an input that begins like this.
pub fn recognise(sample: &InputSample<'_>, read_as: &ReadAs) -> Result<Recognised, String> {
    let fault = |what: &str, hint: &str| Err(sample.fault(what, EXPECTED, hint));
    sample.must_be_text(EXPECTED)?;
    let lines = sample.lines();
    let Some((_, first)) = lines.first() else { return fault("no line in it", "") };
    let asked = read_as.form.as_str();
    if asked.is_empty() && first.first() == Some(&b'[') {
        return Err(sample.is_an_array(EXPECTED, "fans", ["-c '{likes: .}'", "-c '.[]|{likes: .}'"]));
    }
    if asked == "jsonl" || (asked.is_empty() && (first.first() == Some(&b'{') || sample.is_json_lines())) {
        has_no_columns(read_as, "JSON Lines")?;
        return lists(sample, read_as);
    }
    has_no_field(read_as, if asked.is_empty() { "this input" } else { asked })?;
    let separators: &[u8] = match asked.get(..3) {
        Some("csv") => b",;",
        Some("tsv") => b"\t",
        _ => b"\t,;",
    };
    match separator_of(sample, separators) {
        Some(separator) => table(sample, read_as, separator, &rows_of(sample, separator)),
        None => {
            let other = separator_of(sample, b"\t,;").map_or("", |separator| match separator {
                b'\t' => "its lines have tabs: leave --format out, or --format tsv",
                _ => "its lines have commas: leave --format out, or --format csv",
            });
            fault("a single column: nothing tells users from pages", other)
        }
    }
}

/// Rows of CSV or TSV.
fn table(
    sample: &InputSample<'_>,
    read_as: &ReadAs,
    separator: u8,
    rows: &[Vec<String>],
) -> Result<Recognised, String> {
    let asked = read_as.form.as_str();
    let table = TableForm { separator, header: false, width: None };
    if !read_as.columns.is_empty() {
        if asked.ends_with("-profiles") {
            return Err(format!("--columns: {asked} has a user and all their pages a line\nhint: leave one out"));
        }
        let (columns, named) = columns_of(&read_as.columns, rows)?;
        let &[user, page] = columns.as_slice() else {
            return Err("--columns takes two columns here: that of the user and that of the page".to_string());
        };
        let header = named || is_header(rows, user, page, is_key_of);
        return pairs(sample, rows, TableForm { header, ..table }, user, page);
    }
    let named = |names: &[&str]| rows[0].iter().position(|cell| is_named(cell, names));
    let is_meant = |(user, page): &(usize, usize)| user != page && is_header(rows, *user, *page, is_one_of);
    let in_header = named(USERS).zip(named(PAGES)).filter(is_meant);
    let two = rows.iter().filter(|row| row.len() == 2 || filled(row) == 2).count();
    let repeats = rows.iter().map(|row| &row[0]).collect::<HashSet<_>>().len() < rows.len();
    let two = two as f64 >= PAIRS_SHARE * rows.len() as f64 || (repeats && two * 2 > rows.len());
    let of = |(user, page): (usize, usize), width: Option<usize>| {
        let header = is_header(rows, user, page, is_one_of);
        pairs(sample, rows, TableForm { header, width, ..table }, user, page)
    };
    match in_header {
        _ if asked.ends_with("-profiles") => Ok(profiles(rows, table)),
        Some(named) if names_its_columns(rows) => of(named, None),
        _ if two => of(in_header.filter(|(user, page)| user + page == 1).unwrap_or((0, 1)), Some(2)),
        _ if asked.ends_with("-pairs") => of(in_header.unwrap_or((0, 1)), None),
        _ if is_even(rows) && TABLE_WIDTH.contains(&filled(&rows[0])) && rows.len() >= TABLE_ROWS => {
            let (name, width) = (if separator == b'\t' { "tsv" } else { "csv" }, filled(&rows[0]));
            Err(sample.fault(
                &format!("{width} columns in each line: is it a table, or are all but the first pages?"),
                EXPECTED,
                &format!("--columns 1,2 where these are the user and the page, or --format {name}-profiles"),
            ))
        }
        _ => Ok(profiles(rows, table)),
    }
}

fn is_even(rows: &[Vec<String>]) -> bool {
    rows.iter().all(|row| filled(row) == filled(&rows[0]))
}

/// Whether the first row has a name for each column of most others, which may be empty, more than two, and none twice.
fn names_its_columns(rows: &[Vec<String>]) -> bool {
    let width = filled(&rows[0]);
    let is_once = rows[0][..width].iter().collect::<HashSet<_>>().len() == width;
    let within = rows.iter().filter(|row| filled(row) <= width).count();
    width > 2 && is_once && within * 2 > rows.len()
}

fn pairs(
    sample: &InputSample<'_>,
    rows: &[Vec<String>],
    table: TableForm,
    user: usize,
    page: usize,
) -> Result<Recognised, String> {
    if user == page {
        return Err(format!("--columns: column {} cannot be both the user and the page", user + 1));
    }
    let header = table.header || names_numbers(rows, [user, page].into_iter());
    let table = TableForm { header, ..table };
    let is_good = |row: &&Vec<String>| {
        let has = |column: usize| row.get(column).is_some_and(|cell| !cell.is_empty());
        has(user) && has(page) && table.width.is_none_or(|width| row.len() == width || filled(row) == width)
    };
    let rows = &rows[usize::from(header)..];
    let good = rows.iter().filter(is_good).count();
    if good * 2 < rows.len() {
        let what = format!("{} of its first {} lines have no user and page", rows.len() - good, rows.len());
        return Err(sample.fault(&what, EXPECTED, "--columns names the user's column and the page's"));
    }
    let words = format!("{} pairs: user = column {}, page = column {}", table.name(), user + 1, page + 1);
    let form = if table.separator == b'\t' { "tsv-pairs" } else { "csv-pairs" };
    Ok(Recognised { form, becomes: "jsonl", shape: Shape::Pairs { table, user, page }, words })
}

/// Whether the first row can be nothing but names. One that is taken for a header is lost: "Books" may be a page, and
/// "fan" a user. Where one cell alone tells it, by `is_one`, no column may have its first cell again.
fn is_header(rows: &[Vec<String>], user: usize, page: usize, is_one: fn(&str, &[&str]) -> bool) -> bool {
    let cell = |column: usize| rows[0].get(column).map_or("", String::as_str);
    let is_as_first = |row: &Vec<String>, column: usize| row.get(column).map(String::as_str) == Some(cell(column));
    if is_named(cell(user), USERS) && is_named(cell(page), PAGES) {
        // Files that were put one behind another repeat both.
        return !rows[1..].iter().any(|row| is_as_first(row, user) != is_as_first(row, page));
    }
    let is_told = is_one(cell(user), USERS) || is_one(cell(page), PAGES);
    is_told && !(0..rows[0].len()).any(|column| recurs(rows, column))
}

fn profiles(rows: &[Vec<String>], table: TableForm) -> Recognised {
    // What is a page elsewhere is no name of a column.
    let is_page = |cell: &String| rows[1..].iter().any(|row| row.iter().skip(1).any(|page| page == cell));
    let is_apart = || !recurs(rows, 0) && !rows[0].iter().skip(1).any(|cell| !cell.is_empty() && is_page(cell));
    let header = (is_named(&rows[0][0], USERS) && is_apart()) || names_numbers(rows, 0..1);
    let table = TableForm { header, ..table };
    let words = format!("{} profiles: user = column 1, pages = all others", table.name());
    let (form, becomes) = match table.separator {
        b'\t' => ("tsv-profiles", "tsv"),
        _ => ("csv-profiles", "jsonl"),
    };
    Recognised { form, becomes, shape: Shape::Profiles { table }, words }
}

/// JSON Lines.
fn lists(sample: &InputSample<'_>, read_as: &ReadAs) -> Result<Recognised, String> {
    let name = read_as.field.as_deref().unwrap_or(people::FIELD);
    let field = path_of(name);
    let words = format!("JSON Lines: pages = field {name}");
    fields::must_be_in(sample, &field, &LIKED, EXPECTED, pairs_by_jq)?;
    Ok(Recognised { form: "jsonl", becomes: "jsonl", shape: Shape::Lists { field }, words })
}

/// How a line with one user and one page becomes a pair; nothing where it has no two such fields.
fn pairs_by_jq(line: &serde_json::Map<String, serde_json::Value>) -> Option<String> {
    let single = || line.iter().filter(|(_, value)| value.is_string() || value.is_number()).map(|(name, _)| name);
    let named = |names: &[&str]| single().find(|name| is_named(name, names));
    let of = |name: &String| match name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_') {
        true => format!(".{name}"),
        false => format!(".{}", serde_json::Value::from(name.as_str())),
    };
    let (user, page) = match named(USERS).zip(named(PAGES)) {
        Some((user, page)) => (of(user), of(page)),
        None if single().count() > 1 => (".USER".to_string(), ".PAGE".to_string()),
        None => return None,
    };
    Some(format!("jq -r '[{user},{page}]|@csv' FILE | kvfair run fans --input - ..."))
}

//! Rows as aligned text, as wide as the terminal and 100 columns at most: eight or nine columns, and the rest behind
//! `wide`.

use std::borrow::Cow;

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};
use unicode_width::UnicodeWidthStr;

use super::cells::Row;
use super::columns::{Column, FieldLine, ROWS, rank, view};
use super::costs::BATCH_ENGINES;
use kvfair_core::plain;
use kvfair_core::units;

/// The widest line of text and of a table that is not wide: longer lines are hard to read.
pub const WIDTH: usize = 100;
/// What stands above baselines, and above batch engines: a low number there is no fast store.
pub const BASELINES: &str = "Baselines: no store, never ranked";
pub const BATCHES: &str = "Batch engines: no store, never ranked; each counts everything at once";
/// Nothing is made narrower than this.
const WIDTH_LEAST: usize = 60;

/// How wide text is on a terminal of so many columns.
pub fn on_columns(columns: u16) -> usize {
    usize::from(columns).clamp(WIDTH_LEAST, WIDTH)
}

/// The first column is the target's rank and name; these columns of [`ROWS`] follow.
const OF_JOBS: &[&str] =
    &["took_s", "vs_best_interval", "waiting_share", "cpu_us_per_op", "memory_bytes", "file_bytes", "disk_bytes"];

/// The same where questions followed.
const OF_QUERIES: &[&str] = &[
    "took_s",
    "vs_best_interval",
    "ask_s",
    "ask_us_p50",
    "ask_us_p99",
    "cpu_us_per_op",
    "memory_bytes",
    "file_bytes",
    "disk_bytes",
];

/// What a job of requests tells instead of its seconds.
const OF_REQUESTS: &[&str] = &[
    "requests_per_s",
    "vs_best_interval",
    "latency_us_p50",
    "latency_us_p99",
    "cpu_us_per_op",
    "memory_bytes",
    "file_bytes",
    "disk_bytes",
];

/// And a job that replays recorded traffic, whose misses stand below the table.
const OF_TRACE: &[&str] = &[
    "took_s",
    "vs_best_interval",
    "requests_per_s",
    "waiting_share",
    "cpu_us_per_op",
    "memory_bytes",
    "file_bytes",
    "disk_bytes",
];

/// And a job that reads what a store was filled with.
const OF_LOOKUPS: &[&str] = &[
    "lookups_per_s",
    "vs_best_interval",
    "lookup_us",
    "latency_us_p50",
    "latency_us_p99",
    "memory_bytes_per_entry",
    "file_bytes",
    "disk_bytes_per_entry",
];

/// The same where something came from a disk.
const OF_READING: &[&str] = &[
    "lookups_per_s",
    "vs_best_interval",
    "lookup_us",
    "latency_us_p99",
    "read_bytes_per_lookup",
    "memory_bytes_per_entry",
    "file_bytes",
    "disk_bytes_per_entry",
];

/// What can be told of it besides.
const WIDE_OF_LOOKUPS: &[&str] =
    &["took_s", "fill_s", "entries", "found_share", "read_bytes", "cpu_us_per_op", "memory_bytes", "disk_bytes"];

/// And a program of the user's, of which no op is known.
const OF_PROGRAMS: &[&str] = &["took_s", "vs_best_interval", "cpu_s", "both_memory_bytes", "file_bytes", "disk_bytes"];

/// What can be told of it besides.
const WIDE_OF_PROGRAMS: &[&str] = &[
    "took_s_spread",
    "cpu_vs_least_interval",
    "final_flush_s",
    "system_share",
    "written_bytes",
    "cores_used",
    "trials",
    "version",
];

const WIDE: &[&str] = &[
    "took_s_spread",
    "cpu_vs_least_interval",
    "final_flush_s",
    "units_per_s",
    "ops",
    "commands",
    "conflicts",
    "hit_share",
    "latency_us_p50",
    "latency_us_p99",
    "latency_us_p999",
    "latency_us_max",
    "timed_one_in",
    "system_share",
    "written_bytes",
    "written_per_user_byte",
    "allocated_per_user_byte",
    "cores_used",
    "trials",
    "version",
    "client",
];

/// Whether the table tells times of single ops, which must be filled in before.
pub fn tells_op_times(rows: &[Row], wide: bool) -> bool {
    wide || has_queries(rows) || rows.iter().any(|row| row.of_requests || row.of_lookup)
}

fn has_read(rows: &[Row]) -> bool {
    rows.iter().filter_map(|row| row.numbers.as_ref()?.lookups).any(|lookups| lookups.has_read())
}

fn has_queries(rows: &[Row]) -> bool {
    rows.iter().filter_map(|row| row.numbers.as_ref()).any(|numbers| numbers.queries.is_some())
}

/// Which columns a table of targets has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableColumns {
    /// The target and five more, for a page with a chart.
    Six,
    /// As a terminal has room for.
    Usual,
    All,
}

/// What the six columns of a page do without.
const BEYOND_SIX: [&str; 3] = ["waiting_share", "file_bytes", "latency_us_p50"];

/// Where the ranks of a table stand, if it has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranks {
    BeforeNames,
    InAColumn,
}

/// Whether what stands below these words are no stores.
pub fn is_no_store(words: &str) -> bool {
    [BASELINES, BATCHES].contains(&words)
}

/// "via batch (compared within this group only)"; where there is one group, its name alone.
pub fn of_group(name: &str, is_only: bool) -> String {
    if is_only { name.to_string() } else { format!("{name} (compared within this group only)") }
}

/// What stands in the table, the headings first.
pub fn lines(rows: &[Row], of: TableColumns, ranks: Ranks) -> Vec<TableLine> {
    let of_program = rows.iter().any(|row| row.of_program);
    let of_lookup = rows.iter().any(|row| row.of_lookup);
    let usual = match rows {
        rows if rows.iter().any(|row| row.of_requests) => OF_REQUESTS,
        rows if rows.iter().any(|row| row.of_trace) => OF_TRACE,
        _ if of_lookup && has_read(rows) => OF_READING,
        _ if of_lookup => OF_LOOKUPS,
        _ if of_program => OF_PROGRAMS,
        _ if has_queries(rows) => OF_QUERIES,
        _ => OF_JOBS,
    };
    let six: Vec<&str> = usual.iter().filter(|name| !BEYOND_SIX.contains(name)).take(5).copied().collect();
    let usual = if of == TableColumns::Six { six.as_slice() } else { usual };
    let besides = match (of == TableColumns::All, of_program) {
        (false, _) => Vec::new(),
        (true, true) => WIDE_OF_PROGRAMS.to_vec(),
        // What stands there already is not told again.
        (true, false) if of_lookup => {
            WIDE_OF_LOOKUPS.iter().chain(WIDE).filter(|name| !usual.contains(name)).copied().collect()
        }
        (true, false) => WIDE.to_vec(),
    };
    // Of six columns of a page none is that of ranks: the chart has them.
    let has_chart = of == TableColumns::Six && ranks == Ranks::InAColumn;
    let is_ranked = !has_chart && rows.iter().any(|row| row.rank.is_some());
    let rank_column = if is_ranked && ranks == Ranks::InAColumn { &["rank"][..] } else { &[] };
    let columns = view(ROWS, &[rank_column, usual, &besides].concat());
    let before = is_ranked && ranks == Ranks::BeforeNames;
    let named = |row: &Row| if before { format!("{:5} {}", rank(row), row.target) } else { row.target.clone() };
    let first = if before { "rank  target" } else { "target" };
    let headings = std::iter::once(first).chain(columns.iter().map(|column| column.heading));
    let mut lines = vec![TableLine::Cells(headings.map(str::to_string).collect())];
    let ranked = || rows.iter().filter(|row| !row.baseline && row.numbers.is_some());
    let is_only = ranked().all(|row| ranked().next().is_some_and(|first| first.group == row.group));
    let (mut baselines, mut group) = (false, "");
    for row in rows.iter() {
        if row.group == BATCH_ENGINES && row.numbers.is_some() {
            if group != BATCH_ENGINES {
                lines.push(TableLine::Words(BATCHES.to_string()));
            }
            group = BATCH_ENGINES;
        } else if row.baseline && !baselines && row.numbers.is_some() {
            lines.push(TableLine::Words(BASELINES.to_string()));
            baselines = true;
        }
        if !row.baseline && row.numbers.is_some() && row.group != group {
            lines.push(TableLine::Words(of_group(&row.group, is_only)));
            group = &row.group;
        }
        lines.push(match &row.numbers {
            Some(_) => {
                let line = FieldLine::of(row);
                let cells = columns.iter().map(|column| column.text(&line));
                TableLine::Cells(std::iter::once(named(row)).chain(cells).collect())
            }
            None => TableLine::Reason(named(row), row.status.in_words()),
        });
        let again = || if before { format!("{:5} {}", "", row.target) } else { row.target.clone() };
        lines.extend(ttls_left_out(row).map(|words| TableLine::Reason(again(), words)));
    }
    lines
}

/// The lines of a table, the headings first: these columns of each row, or why it has no numbers.
pub fn of_columns<T>(
    columns: &'static [Column<T>],
    names: &[&str],
    rows: &[T],
    why_not: impl Fn(&T) -> Option<(String, String)>,
) -> Vec<TableLine> {
    let columns = view(columns, names);
    let headings = columns.iter().map(|column| column.heading.to_string()).collect();
    let line = |row: &T| match why_not(row) {
        Some((target, reason)) => TableLine::Reason(target, reason),
        None => TableLine::Cells(columns.iter().map(|column| column.text(row)).collect()),
    };
    std::iter::once(TableLine::Cells(headings)).chain(rows.iter().map(line)).collect()
}

/// What a store that lets nothing expire was not asked of recorded traffic.
fn ttls_left_out(row: &Row) -> Option<String> {
    let count = (row.ttls_left_out > 0).then(|| units::thousands(row.ttls_left_out))?;
    Some(format!("lets nothing expire: {count} times to live were left out (--strict refuses it)"))
}

/// One line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableLine {
    Cells(Vec<String>),
    /// What is said over the whole line, of those below it.
    Words(String),
    /// What there is to know of the line above.
    Detail(String),
    /// A target, and why it has no numbers.
    Reason(String, String),
}

/// The least of the names' column.
const NAME_WIDTH: usize = 8;

/// Columns that a narrow terminal may do without, the first to go first.
const DISPENSABLE: [&str; 7] = ["op p50", "disk", "mapped", "memory", "waiting", "CPU us/op", "CPU s"];
/// So much of the longest name must have room before columns go.
const NAME_WANTED: usize = 14;

/// Names to the left, numbers to the right, two blanks between columns. A name that there is no room for stands whole
/// in a line of its own, so that its numbers stay in sight. Where there is no room for all columns, the dispensable
/// ones are left out, and the last line names them.
pub fn layout(lines: &[TableLine], width: usize) -> String {
    let (mut lines, mut left_out) = (lines.to_vec(), Vec::new());
    for heading in DISPENSABLE {
        let widths = widths(&lines);
        if numbers_width(&widths) + 1 + widths[0].clamp(NAME_WIDTH, NAME_WANTED) <= width {
            break;
        }
        left_out.extend(without(&mut lines, heading).then_some(heading));
    }
    let text = laid_out(&lines, width);
    if left_out.is_empty() {
        return text;
    }
    let words = format!("no room for: {} (--wide)", left_out.join(", "));
    format!("{text} {}\n", wrap(&words, width.saturating_sub(1)).join("\n "))
}

/// The widest cell of each column; of the first also the names of rows without numbers.
fn widths(lines: &[TableLine]) -> Vec<usize> {
    let count =
        lines.iter().map(|line| if let TableLine::Cells(cells) = line { cells.len() } else { 0 }).max().unwrap_or(0);
    let mut widths = vec![0; count.max(1)];
    for line in lines {
        match line {
            TableLine::Cells(cells) => {
                cells.iter().enumerate().for_each(|(index, cell)| widths[index] = widths[index].max(length(cell)))
            }
            TableLine::Reason(target, _) => widths[0] = widths[0].max(length(target)),
            TableLine::Words(_) | TableLine::Detail(_) => {}
        }
    }
    widths
}

/// Of all columns but the first.
fn numbers_width(widths: &[usize]) -> usize {
    widths[1..].iter().map(|width| width + 2).sum()
}

/// Removes the column of that heading, if there is one.
fn without(lines: &mut [TableLine], heading: &str) -> bool {
    let Some(TableLine::Cells(headings)) = lines.first() else { return false };
    let Some(place) = headings.iter().skip(1).position(|one| one == heading) else { return false };
    for line in lines {
        if let TableLine::Cells(cells) = line {
            cells.remove(place + 1);
        }
    }
    true
}

fn laid_out(lines: &[TableLine], width: usize) -> String {
    let mut widths = widths(lines);
    let numbers = numbers_width(&widths);
    let heading =
        lines.iter().find_map(|line| if let TableLine::Cells(cells) = line { Some(length(&cells[0])) } else { None });
    widths[0] = widths[0].min(width.saturating_sub(numbers + 1)).max(heading.unwrap_or(0)).max(NAME_WIDTH);
    let mut text = String::new();
    for line in lines {
        let line = match line {
            TableLine::Cells(cells) => {
                let rest = cells[1..].iter().zip(&widths[1..]);
                let rest = rest.map(|(cell, width)| format!("  {:1$}{cell}", "", width.saturating_sub(length(cell))));
                beside(&cells[0], widths[0], &rest.collect::<String>())
            }
            TableLine::Words(words) => format!(" {words}"),
            TableLine::Detail(words) => format!("     {}", wrap(words, width.saturating_sub(5)).join("\n     ")),
            TableLine::Reason(target, reason) => reasoned(target, reason, widths[0], width),
        };
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn beside(name: &str, width: usize, rest: &str) -> String {
    if length(name) <= width {
        format!(" {}{rest}", padded(name, width))
    } else {
        format!(" {name}\n {:width$}{rest}", "")
    }
}

/// A reason is wrapped, not cut: it says what to do.
fn reasoned(target: &str, reason: &str, indent: usize, width: usize) -> String {
    let room = width.saturating_sub(indent + 3);
    let indented = format!("\n {:indent$}  ", "");
    beside(target, indent, &format!("  {}", wrap(reason, room).join(&indented)))
}

/// Breaks text between words into lines of at most `width`; a word longer than that is broken where it must be, but no
/// address, which is copied. What steers a terminal is escaped, so that it counts as what is printed.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let options = Options::new(width.max(1))
        .wrap_algorithm(WrapAlgorithm::FirstFit)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(!plain::has_address(text));
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    textwrap::wrap(&plain::line(&words), options).into_iter().map(Cow::into_owned).collect()
}

/// With blanks behind it.
pub(super) fn padded(text: &str, width: usize) -> String {
    format!("{text}{:1$}", "", width.saturating_sub(length(text)))
}

/// Columns of a terminal: a letter of East Asia takes two, and what is escaped as many as that.
pub(super) fn length(text: &str) -> usize {
    plain::line(text).width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_have_columns_of_their_table() {
        let views = [
            OF_JOBS,
            OF_QUERIES,
            OF_REQUESTS,
            OF_TRACE,
            OF_LOOKUPS,
            OF_PROGRAMS,
            WIDE,
            WIDE_OF_LOOKUPS,
            WIDE_OF_PROGRAMS,
        ];
        views.iter().for_each(|names| assert!(view(ROWS, names).iter().all(|column| !column.heading.is_empty())));
    }

    /// A letter of East Asia takes two columns of a terminal.
    #[test]
    fn wide_letters_keep_columns_and_lines() {
        let line = |name: &str| TableLine::Cells(vec![name.to_string(), "7".to_string()]);
        let text = layout(&[line("target"), line("数据库一号机"), line("redis")], 60);
        let widths: Vec<usize> = text.lines().map(length).collect();
        assert_eq!(widths, [16, 16, 16], "{text}");
        assert_eq!(wrap("数据库 数据库 a", 7), ["数据库", "数据库", "a"].map(str::to_string).to_vec());
        assert_eq!(wrap("one  two\nthree", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 8), [""]);
    }

    #[test]
    fn a_long_name_is_whole_and_its_numbers_are_in_sight() {
        let long = "redis?program=./src/redis-server";
        let cells = |name: &str, number: &str| TableLine::Cells(vec![name.to_string(), number.to_string()]);
        let reason = TableLine::Reason(format!("{long}-2"), "it is not here".to_string());
        let lines = [cells("target", "seconds"), cells("ram", "1"), cells(long, "22"), reason];
        let text = [
            " target      seconds",
            " ram               1",
            " redis?program=./src/redis-server",
            "                  22",
            " redis?program=./src/redis-server-2",
            "             it is",
            "             not",
            "             here",
            "",
        ];
        assert_eq!(layout(&lines, 20), text.join("\n"));
    }

    #[test]
    fn a_narrow_terminal_does_without_some_columns_and_says_which() {
        let cells = |cells: &[&str]| TableLine::Cells(cells.iter().map(|cell| cell.to_string()).collect());
        let lines = [
            cells(&["target", "seconds", "waiting", "memory", "disk"]),
            TableLine::Words("a rule".to_string()),
            cells(&["redis+unix", "0.12", "97 %", "12 MB", "-"]),
        ];
        let whole =
            " target      seconds  waiting  memory  disk\n a rule\n redis+unix     0.12     97 %   12 MB     -\n";
        assert_eq!(layout(&lines, 45), whole);
        let narrow = " target      seconds  waiting\n a rule\n redis+unix     0.12     97 %\n \
            no room for: disk, memory\n (--wide)\n";
        assert_eq!(layout(&lines, 30), narrow);
        // The line that names them is no wider than the table.
        let many = [cells(&["target", "waiting", "memory", "mapped", "disk"]), cells(&["ram", "1", "2", "3", "4"])];
        assert_eq!(
            layout(&many, 20),
            " target    waiting\n ram             1\n no room for: disk,\n mapped, memory\n (--wide)\n"
        );
        // The column of names has a least width.
        let short = [cells(&["target", "seconds", "disk"]), cells(&["ram", "0.12", "-"])];
        assert_eq!(layout(&short, 23), " target    seconds\n ram          0.12\n no room for: disk\n (--wide)\n");
        assert_eq!(layout(&short, 24).lines().next(), Some(" target    seconds  disk"));
    }
}

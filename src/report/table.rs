//! Rows as aligned text, as wide as the terminal and 100 columns at most: eight or nine columns, and the rest behind
//! `wide`.

use std::sync::OnceLock;

use super::cells::{Numbers, Row};
use super::versus::versus;
use crate::model::units;

/// The widest line of text and of a table that is not wide: longer lines are hard to read.
pub const WIDTH: usize = 100;
/// Nothing is made narrower than this.
const WIDTH_LEAST: usize = 60;

/// Of the terminal that results go to.
static TERMINAL: OnceLock<usize> = OnceLock::new();

/// Results go to a terminal of so many columns. What was said first holds.
pub fn on_terminal(columns: u16) {
    let _ = TERMINAL.set(on_columns(columns));
}

/// How wide text is on a terminal of so many columns.
pub fn on_columns(columns: u16) -> usize {
    usize::from(columns).clamp(WIDTH_LEAST, WIDTH)
}

/// How wide text is printed, in columns.
pub fn width() -> usize {
    TERMINAL.get().copied().unwrap_or(WIDTH)
}

/// One column: its heading and how a row fills it.
#[derive(Clone, Copy)]
struct Column {
    heading: &'static str,
    cell: fn(&Row, &Numbers) -> String,
}

/// The first column is the target's rank and name; these follow.
const COLUMNS: &[Column] = &[
    Column { heading: "seconds", cell: |_, numbers| units::seconds(numbers.seconds) },
    Column { heading: "vs best", cell: |_, numbers| numbers.vs_best.map_or_else(String::new, versus) },
    Column { heading: "waiting", cell: |_, numbers| percent(numbers.waiting_share) },
    Column { heading: "CPU us/op", cell: |_, numbers| cpu(numbers) },
    Column { heading: "memory", cell: |_, numbers| disk(numbers.memory_bytes()) },
    Column { heading: "disk", cell: |_, numbers| disk(numbers.bytes_on_disk) },
];

const OP_P50: Column =
    Column { heading: "op p50", cell: |_, numbers| tail(numbers.op_times.map(|times| times.op_ns_p50)) };
const OP_P99: Column =
    Column { heading: "op p99", cell: |_, numbers| tail(numbers.op_times.and_then(|times| times.op_ns_p99)) };

/// What a job of requests tells instead of its seconds.
const OF_REQUESTS: &[Column] = &[
    Column { heading: "requests/s", cell: |_, numbers| units::count(numbers.units_per_s) },
    COLUMNS[1],
    OP_P50,
    OP_P99,
    COLUMNS[3],
    COLUMNS[4],
    COLUMNS[5],
];

/// And a job that replays recorded traffic, whose misses stand below the table.
const OF_TRACE: &[Column] = &[COLUMNS[0], COLUMNS[1], OF_REQUESTS[0], COLUMNS[2], COLUMNS[3], COLUMNS[4], COLUMNS[5]];

/// And a program of the user's, of which no op is known.
const OF_PROGRAMS: &[Column] = &[
    COLUMNS[0],
    COLUMNS[1],
    Column { heading: "CPU s", cell: |_, numbers| cpu_s(numbers) },
    Column { heading: "memory", cell: |_, numbers| memories(numbers.client_anonymous_bytes, numbers.memory_bytes()) },
    COLUMNS[5],
];

/// What can be told of it besides.
const WIDE_OF_PROGRAMS: [&str; 9] =
    ["lowest..highest", "CPU vs least", "final flush", "in kernel", "mapped", "written", "cores", "trials", "version"];

const WIDE: &[Column] = &[
    Column { heading: "lowest..highest", cell: |_, numbers| spread(numbers) },
    Column { heading: "CPU vs least", cell: |_, numbers| numbers.cpu_vs_least.map_or_else(String::new, versus) },
    Column { heading: "final flush", cell: |_, numbers| units::seconds(numbers.final_flush_s) },
    Column { heading: "units/s", cell: |_, numbers| units::count(numbers.units_per_s) },
    Column { heading: "ops", cell: |_, numbers| units::thousands(numbers.ops) },
    Column { heading: "commands", cell: |_, numbers| units::thousands(numbers.commands) },
    Column { heading: "conflicts", cell: |_, numbers| units::thousands(numbers.conflicts) },
    Column { heading: "hits", cell: |_, numbers| numbers.hit_share.map_or_else(|| "-".to_string(), percent) },
    OP_P50,
    OP_P99,
    Column { heading: "op p99.9", cell: |_, numbers| tail(numbers.op_times.and_then(|times| times.op_ns_p999)) },
    Column { heading: "op max", cell: |_, numbers| tail(numbers.op_times.map(|times| times.op_ns_max)) },
    Column { heading: "timed", cell: |_, numbers| timed(numbers.timed_one_in) },
    Column { heading: "in kernel", cell: |_, numbers| percent(numbers.system_share) },
    Column { heading: "mapped", cell: |_, numbers| disk(numbers.file_bytes) },
    Column { heading: "written", cell: |_, numbers| disk(numbers.bytes_written) },
    Column { heading: "a user byte", cell: |_, numbers| times(numbers.written_per_user_byte) },
    Column { heading: "disk/byte held", cell: |_, numbers| times(numbers.allocated_per_user_byte) },
    Column { heading: "cores", cell: |_, numbers| format!("{:.2}", numbers.cores_used) },
    Column { heading: "trials", cell: |row, _| row.trials.to_string() },
    Column { heading: "version", cell: |row, _| row.version.clone() },
    Column { heading: "client library", cell: |row, _| row.client_library.clone() },
];

// The column of CONTRIBUTING.md.
#[cfg(test)]
const _: Column = Column { heading: "CPU in all", cell: |_, numbers| units::digits(numbers.cpu_us_per_op()) };

/// Whether the table tells times of single ops, which must be filled in before.
pub fn tells_op_times(rows: &[Row], wide: bool) -> bool {
    wide || rows.iter().any(|row| row.of_requests)
}

/// The table, its lines ended. Controls stand below a rule; what has no number says why over the whole line.
pub fn table(rows: &[Row], wide: bool) -> String {
    layout(&lines(rows, wide, Ranks::BeforeNames), if wide { usize::MAX } else { width() })
}

/// Where the ranks of a table stand, if it has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranks {
    BeforeNames,
    InAColumn,
}

const RANK: Column = Column { heading: "rank", cell: |row, _| rank(row) };

/// What stands in the table, the headings first.
pub fn lines(rows: &[Row], wide: bool, ranks: Ranks) -> Vec<TableLine> {
    let of_program = rows.iter().any(|row| row.of_program);
    let usual = match rows {
        rows if rows.iter().any(|row| row.of_requests) => OF_REQUESTS,
        rows if rows.iter().any(|row| row.of_trace) => OF_TRACE,
        _ if of_program => OF_PROGRAMS,
        _ => COLUMNS,
    };
    let is_ranked = rows.iter().any(|row| row.rank.is_some());
    let column = (is_ranked && ranks == Ranks::InAColumn).then_some(&RANK);
    let besides = WIDE.iter().filter(|column| wide && (!of_program || WIDE_OF_PROGRAMS.contains(&column.heading)));
    let columns: Vec<&Column> = column.into_iter().chain(usual).chain(besides).collect();
    let before = is_ranked && ranks == Ranks::BeforeNames;
    let named = |row: &Row| if before { format!("{:5} {}", rank(row), row.target) } else { row.target.clone() };
    let first = if before { "rank  target" } else { "target" };
    let headings = std::iter::once(first).chain(columns.iter().map(|column| column.heading));
    let mut lines = vec![TableLine::Cells(headings.map(str::to_string).collect())];
    let (mut baselines, mut group) = (false, "");
    for row in rows.iter() {
        if row.baseline && !baselines && row.numbers.is_some() {
            lines.push(TableLine::Words("baselines: what the job costs without a store around it".to_string()));
            baselines = true;
        }
        if !row.baseline && row.numbers.is_some() && row.group != group {
            lines.push(TableLine::Words(format!("{} (ranked apart)", row.group)));
            group = &row.group;
        }
        lines.push(match &row.numbers {
            Some(numbers) => {
                let cells = columns.iter().map(|column| (column.cell)(row, numbers));
                TableLine::Cells(std::iter::once(named(row)).chain(cells).collect())
            }
            None => TableLine::Reason(named(row), row.status.in_words()),
        });
    }
    lines
}

/// One line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableLine {
    Cells(Vec<String>),
    /// What is said over the whole line, of those below it.
    Words(String),
    /// A target, and why it has no numbers.
    Reason(String, String),
}

/// The least of the names' column.
const NAME_WIDTH: usize = 8;

/// Columns that a narrow terminal may do without, the first to go first.
const DISPENSABLE: [&str; 6] = ["disk", "memory", "waiting", "op p50", "CPU us/op", "CPU s"];
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
    if left_out.is_empty() { text } else { format!("{text} no room for: {} (--wide)\n", left_out.join(", ")) }
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
            TableLine::Words(_) => {}
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
                let rest = cells[1..].iter().zip(&widths[1..]).map(|(cell, width)| format!("  {cell:>width$}"));
                beside(&cells[0], widths[0], &rest.collect::<String>())
            }
            TableLine::Words(words) => format!(" {words}"),
            TableLine::Reason(target, reason) => reasoned(target, reason, widths[0], width),
        };
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn beside(name: &str, width: usize, rest: &str) -> String {
    if length(name) <= width { format!(" {name:<width$}{rest}") } else { format!(" {name}\n {:width$}{rest}", "") }
}

/// A reason is wrapped, not cut: it says what to do.
fn reasoned(target: &str, reason: &str, indent: usize, width: usize) -> String {
    let room = width.saturating_sub(indent + 3);
    let indented = format!("\n {:indent$}  ", "");
    beside(target, indent, &format!("  {}", wrap(reason, room).join(&indented)))
}

/// Breaks text between words into lines of at most `width`; a word longer than that is broken where it must be.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        for piece in letters.chunks(width.max(1)) {
            let line = lines.last_mut().expect("there is always a line");
            let piece: String = piece.iter().collect();
            if line.is_empty() {
                line.push_str(&piece);
            } else if length(line) + 1 + length(&piece) <= width {
                line.push(' ');
                line.push_str(&piece);
            } else {
                lines.push(piece);
            }
        }
    }
    lines
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// "1", or "3-4" for who cannot be told apart.
fn rank(row: &Row) -> String {
    match row.rank {
        Some((best, worst)) if best == worst => best.to_string(),
        Some((best, worst)) => format!("{best}-{worst}"),
        None => String::new(),
    }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// "17 + 19": client and server; "2.3" where the store is in the client.
fn cpu(numbers: &Numbers) -> String {
    both(numbers.client_cpu_us_per_op, numbers.server_cpu_us_per_op)
}

/// The same in seconds, of the whole run.
fn cpu_s(numbers: &Numbers) -> String {
    both(numbers.client_cpu_us_per_op / 1e6, numbers.server_cpu_us_per_op.map(|server| server / 1e6))
}

/// "21 MB + 9.2 MB": program and server; "21 MB" where the store is in the program.
pub(super) fn memories(client: Option<u64>, store: Option<u64>) -> String {
    // A program that was gone before anybody looked held nothing that is known.
    let store = disk(store);
    client.map_or(store.clone(), |client| format!("{} + {store}", disk(Some(client))))
}

pub(super) fn both(client: f64, server: Option<f64>) -> String {
    let client = units::digits(client);
    server.map_or(client.clone(), |server| format!("{client} + {}", units::digits(server)))
}

pub(super) fn disk(bytes: Option<u64>) -> String {
    bytes.filter(|&bytes| bytes > 0).map_or_else(|| "-".to_string(), units::bytes)
}

pub(super) fn tail(time_ns: Option<u64>) -> String {
    time_ns.map_or_else(|| "-".to_string(), units::nanoseconds)
}

fn times(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_string(), units::digits)
}

fn timed(one_in: u32) -> String {
    if one_in == 1 { "all".to_string() } else { format!("1 in {one_in}") }
}

fn spread(numbers: &Numbers) -> String {
    format!("{}..{}", units::seconds(numbers.seconds_lowest), units::seconds(numbers.seconds_highest))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            no room for: disk, memory (--wide)\n";
        assert_eq!(layout(&lines, 30), narrow);
        // The column of names has a least width.
        let short = [cells(&["target", "seconds", "disk"]), cells(&["ram", "0.12", "-"])];
        assert_eq!(layout(&short, 23), " target    seconds\n ram          0.12\n no room for: disk (--wide)\n");
        assert_eq!(layout(&short, 24).lines().next(), Some(" target    seconds  disk"));
    }
}

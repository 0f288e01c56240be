//! Tables as HTML: the lines of the terminal's own, each cell with the number that it is sorted by.

use maud::{Markup, html};

use crate::table::{TableLine, is_no_store};
use kvfair_core::logins;

/// A table that can be sorted within its parts, which begin with a line of words.
pub fn table(caption: &str, lines: &[TableLine]) -> Markup {
    let (headings, lines) = match lines.split_first() {
        Some((TableLine::Cells(headings), lines)) => (headings.as_slice(), lines),
        _ => (&[][..], lines),
    };
    let columns = headings.len().max(2);
    let is_apart = |part: &[TableLine]| matches!(&part[0], TableLine::Words(words) if is_no_store(words));
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table.sorted {
                caption { (caption) }
                @if !headings.is_empty() {
                    thead { tr { @for heading in headings { th scope="col" { (named(heading)) } } } }
                }
                @for part in lines.chunk_by(belong_together) {
                    tbody class=[is_apart(part).then_some("apart")] { @for line in part { (row(line, columns)) } }
                }
            }
        }
    }
}

/// Headings are buttons, and those have names.
fn named(heading: &str) -> &str {
    if heading.is_empty() { "found" } else { heading }
}

/// Words begin a part, and reasons are one by themselves.
fn belong_together(line: &TableLine, next: &TableLine) -> bool {
    is_reason(line) == is_reason(next) && !matches!(next, TableLine::Words(_))
}

fn is_reason(line: &TableLine) -> bool {
    matches!(line, TableLine::Reason(..))
}

fn row(line: &TableLine, columns: usize) -> Markup {
    match line {
        TableLine::Cells(cells) => html! {
            tr.row {
                @for (place, cell) in cells.iter().enumerate() {
                    @if place == 0 {
                        th scope="row" data-v=[sort_key(cell)] { (cell) }
                    } @else {
                        td data-v=[sort_key(cell)] { (cell) }
                    }
                }
            }
        },
        TableLine::Words(words) => html! { tr { th.words scope="rowgroup" colspan=(columns) { (words) } } },
        TableLine::Detail(words) => html! { tr { td.reason colspan=(columns) { (words) } } },
        TableLine::Reason(target, reason) => html! {
            tr {
                th scope="row" { (target) }
                td.reason.bad[reason.starts_with("FAILED")] colspan=(columns - 1) { (logins::hidden(reason, &[])) }
            }
        },
    }
}

/// What units are worth, as `units` writes them.
const UNITS: &[(&str, f64)] = &[
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
];

/// The number of a cell: "12 MB", "about 1.18x [1.14-1.27]"; of "15.1 + 20.3" the sum. Nothing for other text.
fn sort_key(cell: &str) -> Option<f64> {
    cell.split(" + ").map(number).sum()
}

fn number(text: &str) -> Option<f64> {
    let text = text.trim_start_matches("about ").trim_start_matches(['>', ' ']);
    let end = text.find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '.' | ','));
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    let number: f64 = digits.replace(',', "").parse().ok()?;
    let unit = rest.split_whitespace().next().unwrap_or_default().trim_end_matches('*');
    let worth = UNITS.iter().find(|(name, _)| *name == unit).map_or(1.0, |(_, worth)| *worth);
    Some(number * worth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_sorted_by_their_numbers() {
        let keys =
            ["12 MB", "about 1.18x [1.14-1.27]", "15.5 + 20.25", "96 %", "10,145", "39 k*", "2-3", "> 300 s", "427 us"];
        let keys = keys.map(|cell| sort_key(cell).expect("a number"));
        assert_eq!(keys, [12e6, 1.18, 35.75, 96.0, 10_145.0, 39e3, 2.0, 300.0, 427.0 * 1e-6]);
        assert!(["-", "", "redis", "7.0.15", "0.1..0.2"].iter().all(|cell| sort_key(cell).is_none()));
    }

    #[test]
    fn parts_are_bodies_and_all_text_is_escaped() {
        let cells = |cells: &[&str]| TableLine::Cells(cells.iter().map(|cell| cell.to_string()).collect());
        let reason = || TableLine::Reason("<b>".to_string(), "FAILED: redis://me:S@h".to_string());
        let lines = [
            cells(&["target", "seconds", ""]),
            cells(&["<script>", "1.5"]),
            cells(&["b", "2"]),
            TableLine::Words("baselines".to_string()),
            cells(&["null", "1"]),
            reason(),
            reason(),
        ];
        let html = table("<i>", &lines).into_string();
        assert!(!html.contains("<th scope=\"col\"></th>"), "{html}");
        assert_eq!(html.matches("<tbody>").count(), 3, "{html}");
        assert!(html.contains("<th scope=\"row\">&lt;script&gt;</th><td data-v=\"1.5\">1.5</td>"), "{html}");
        assert!(
            html.contains("bad") && !["<script", "<b>", "<i>", "me:S"].iter().any(|bad| html.contains(bad)),
            "{html}"
        );
        assert!(table("only reasons", &[reason()]).into_string().contains("colspan=\"1\""));
    }
}

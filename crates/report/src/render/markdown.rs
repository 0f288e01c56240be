//! Blocks as GitHub's Markdown.

use super::{Block, OneLine};
use crate::grid::Grid;
use crate::table::TableLine;

pub fn written(blocks: &[Block]) -> String {
    let mut text = String::new();
    let mut before = None;
    for block in blocks {
        let part = block_written(block);
        let part = part.trim_end();
        if part.is_empty() {
            continue;
        }
        // Lists that follow each other are one.
        let is_list = matches!(block, Block::List(_) | Block::Lines(_) | Block::Remarks(_) | Block::Subject(..));
        text.push_str(match before {
            None => "",
            Some(true) if is_list => "\n",
            Some(_) => "\n\n",
        });
        text.push_str(part);
        before = Some(is_list);
    }
    text + "\n"
}

fn block_written(block: &Block) -> String {
    match block {
        Block::Headline(text) | Block::Paragraph(text) => escaped(text),
        Block::Table(grid) | Block::WideTable(grid) => table(grid),
        Block::List(items) | Block::Remarks(items) => listed(items),
        Block::Lines(lines) => listed(&lines.iter().map(OneLine::whole).collect::<Vec<_>>()),
        Block::Subject(subject, details) => {
            let details = details.iter().map(|detail| format!("  - {}\n", escaped(detail)));
            format!("- {}\n{}", escaped(subject), details.collect::<String>())
        }
        Block::Named(told, texts) => {
            let texts: Vec<String> = texts.iter().map(|(name, text)| format!("{name}: {text}")).collect();
            format!("{}\n\n{}", escaped(told), listed(&texts))
        }
        Block::Aside(_) | Block::Gap => String::new(),
    }
}

fn table(grid: &Grid) -> String {
    let title = if grid.title.is_empty() { String::new() } else { format!("{}\n\n", escaped(&grid.title)) };
    title + &lines(&grid.lines)
}

/// A table, the headings first, names to the left and numbers to the right; below it what has no numbers, with the
/// reasons: GitHub's tables have no lines across.
pub fn lines(lines: &[TableLine]) -> String {
    let mut text = String::new();
    let mut reasons = String::new();
    let columns =
        lines.iter().map(|line| if let TableLine::Cells(cells) = line { cells.len() } else { 0 }).max().unwrap_or(0);
    for (index, line) in lines.iter().enumerate() {
        match line {
            TableLine::Cells(cells) => text.push_str(&row(cells.iter().map(|cell| escaped(cell)))),
            TableLine::Words(words) | TableLine::Detail(words) => {
                let rest = std::iter::repeat_n(String::new(), columns.saturating_sub(1));
                text.push_str(&row(std::iter::once(format!("*{}*", escaped(words))).chain(rest)));
            }
            TableLine::Reason(target, reason) => {
                reasons.push_str(&format!("- **{}**: {}\n", escaped(target), escaped(reason)));
            }
        }
        if index == 0 && columns > 0 {
            text.push_str(&row((0..columns).map(|column| if column == 0 { ":--" } else { "--:" }.to_string())));
        }
    }
    match (text.is_empty(), reasons.is_empty()) {
        (false, false) => format!("{text}\n{reasons}"),
        _ => text + &reasons,
    }
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("|{}\n", cells.map(|cell| format!(" {cell} |")).collect::<String>())
}

/// Names are whatever users gave: nothing in them is a mark of Markdown or HTML, and all is one line.
pub fn escaped(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let marks = ['\\', '|', '*', '_', '`', '<', '~', '['];
    words.chars().flat_map(|letter| marks.contains(&letter).then_some('\\').into_iter().chain([letter])).collect()
}

/// Lines as a list of Markdown.
pub fn listed(lines: &[String]) -> String {
    lines.iter().map(|line| format!("- {}\n", escaped(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_a_table_and_reasons_below_it() {
        let cells = |cells: &[&str]| TableLine::Cells(cells.iter().map(|cell| cell.to_string()).collect());
        let lines = [
            cells(&["target", "seconds"]),
            cells(&["a|b_c", "~1.02x [0.98-1.06]"]),
            TableLine::Words("controls: all".to_string()),
            TableLine::Reason("<script>".to_string(), "two\nlines".to_string()),
            cells(&["null", "1"]),
        ];
        let expected = "| target | seconds |\n| :-- | --: |\n| a\\|b\\_c | \\~1.02x \\[0.98-1.06] |\n\
            | *controls: all* |  |\n| null | 1 |\n\n- **\\<script>**: two lines\n";
        assert_eq!(super::lines(&lines), expected);
        assert_eq!(super::lines(&lines[3..4]), "- **\\<script>**: two lines\n");
    }
}

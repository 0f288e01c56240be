//! Blocks as text for a terminal.

use super::{Block, OneLine};
use crate::grid::Grid;
use crate::table::{layout, length, padded, wrap};

/// One below the other; what is empty leaves no line.
pub fn written(blocks: &[Block], width: usize) -> String {
    let parts = blocks.iter().map(|block| (block, block_written(block, width).trim_end().to_string()));
    let parts = parts.filter(|(block, part)| !part.is_empty() || **block == Block::Gap).map(|(_, part)| part);
    format!("{}\n", parts.collect::<Vec<_>>().join("\n"))
}

fn block_written(block: &Block, width: usize) -> String {
    match block {
        Block::Aside(line) => line.clone(),
        Block::Gap => String::new(),
        Block::Table(grid) => table(grid, width),
        Block::WideTable(grid) => table(grid, usize::MAX),
        Block::Headline(text) | Block::Paragraph(text) => wrap(text, width).join("\n"),
        Block::List(items) => items.iter().flat_map(|item| wrap(item, width)).collect::<Vec<_>>().join("\n"),
        Block::Lines(lines) => lines.iter().map(|line| one_line(line, width)).collect::<Vec<_>>().join("\n"),
        Block::Remarks(remarks) => {
            let lines =
                remarks.iter().map(|remark| format!(" {}", wrap(remark, width.saturating_sub(3)).join("\n   ")));
            lines.collect::<Vec<_>>().join("\n")
        }
        Block::Subject(subject, details) => {
            let details = details.iter().map(|detail| hanging("  ", detail, width));
            std::iter::once(hanging("", subject, width)).chain(details).collect::<Vec<_>>().join("\n")
        }
        Block::Named(told, texts) => named(told, texts, width),
    }
}

/// All of it where it fits, else its text, of which as many words are left out as must be.
fn one_line(line: &OneLine, width: usize) -> String {
    let whole = line.whole();
    if length(&whole) <= width {
        return whole;
    }
    let lines = wrap(&line.text, width.saturating_sub(CUT.len()));
    match lines.as_slice() {
        [only] => only.clone(),
        lines => format!("{}{CUT}", lines.first().map_or("", |first| first.trim_end_matches([',', ';', ':', '.']))),
    }
}

/// What stands for words that were left out.
const CUT: &str = " ...";

fn table(grid: &Grid, width: usize) -> String {
    let title = if grid.title.is_empty() { String::new() } else { format!(" {}\n", grid.title) };
    title + &layout(&grid.lines, width)
}

fn named(told: &str, texts: &[(String, String)], width: usize) -> String {
    let names = texts.iter().map(|(name, _)| length(name)).max().unwrap_or(0);
    let indented = format!("\n {:names$}  ", "");
    let lines = texts.iter().map(|(name, text)| {
        format!(" {}  {}", padded(name, names), wrap(text, width.saturating_sub(names + 3)).join(&indented))
    });
    std::iter::once(wrap(told, width).join("\n")).chain(lines).collect::<Vec<_>>().join("\n")
}

/// Indented, all but the first line by two more.
fn hanging(indent: &str, text: &str, width: usize) -> String {
    let lines = wrap(text, width.saturating_sub(indent.len() + 2));
    format!("{indent}{}", lines.join(&format!("\n{indent}  ")))
}

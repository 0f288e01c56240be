//! Blocks as text for a terminal.

use super::Block;
use crate::report::grid::Grid;
use crate::report::table::{layout, wrap};

/// One below the other; what is empty leaves no line.
pub fn written(blocks: &[Block], width: usize) -> String {
    let parts = blocks.iter().map(|block| (block, block_written(block, width).trim_end().to_string()));
    let parts = parts.filter(|(block, part)| !part.is_empty() || **block == Block::Gap).map(|(_, part)| part);
    format!("{}\n", parts.collect::<Vec<_>>().join("\n"))
}

fn block_written(block: &Block, width: usize) -> String {
    match block {
        Block::Headline(text) | Block::Aside(text) => text.clone(),
        Block::Gap => String::new(),
        Block::Table(grid) => table(grid, width),
        Block::WideTable(grid) => table(grid, usize::MAX),
        Block::Paragraph(text) => wrap(text, width).join("\n"),
        Block::List(items) => items.iter().flat_map(|item| wrap(item, width)).collect::<Vec<_>>().join("\n"),
        Block::Remarks(remarks) => {
            let lines =
                remarks.iter().map(|remark| format!(" {}", wrap(remark, width.saturating_sub(3)).join("\n   ")));
            lines.collect::<Vec<_>>().join("\n")
        }
        Block::Subject(subject, details) => {
            let details = details.iter().map(|detail| hanging("  ", detail, width));
            std::iter::once(hanging("", subject, width)).chain(details).collect::<Vec<_>>().join("\n")
        }
    }
}

fn table(grid: &Grid, width: usize) -> String {
    let title = if grid.title.is_empty() { String::new() } else { format!(" {}\n", grid.title) };
    title + &layout(&grid.lines, width)
}

/// Indented, all but the first line by two more.
fn hanging(indent: &str, text: &str, width: usize) -> String {
    let lines = wrap(text, width.saturating_sub(indent.len() + 2));
    format!("{indent}{}", lines.join(&format!("\n{indent}  ")))
}

//! Blocks as a page: that of a command whose results are no run.

use anyhow::Result;
use maud::{Markup, html};

use super::Mask;
use super::style::document;
use super::tables::table;
use crate::grid::Grid;
use crate::render::{Block, Medium, Shown};
use crate::table::TableLine;
use kvfair_core::shell;

/// The page of what was typed behind `kvfair`. `about` says by which version, and when.
pub fn page_of_blocks(shown: &dyn Shown, command: &[String], about: &str) -> Result<String> {
    let blocks = shown.blocks(Medium::Page)?;
    let heading = blocks.iter().find_map(|block| match block {
        Block::Headline(text) => Some(text.clone()),
        _ => None,
    });
    let title = format!("kvfair {}", command.first().map_or("", String::as_str));
    let heading = heading.unwrap_or_else(|| shell::command(command));
    let body = html! {
        h1 { (heading) }
        p.grey { (about) ": " code { (shell::command(command)) } }
        @for block in &blocks { (written(block)) }
    };
    let mask = Mask::of_command(command);
    Ok(document(&mask.applied(&title), &mask.applied(&body.into_string())))
}

pub(super) fn written(block: &Block) -> Markup {
    match block {
        // It is the page's heading.
        Block::Headline(_) | Block::Aside(_) | Block::Gap => html! {},
        Block::Table(grid) | Block::WideTable(grid) if grid.lines.is_empty() => html! {},
        Block::Table(grid) | Block::WideTable(grid) => table(caption(grid), &grid.lines),
        Block::Paragraph(text) => html! { @if !text.is_empty() { p { (text) } } },
        Block::List(items) | Block::Remarks(items) => html! {
            @if !items.is_empty() { ul { @for item in items { li { (item) } } } }
        },
        Block::Lines(lines) => html! {
            @if !lines.is_empty() { ul { @for line in lines { li { (line.whole()) } } } }
        },
        Block::Subject(subject, details) => html! {
            h2 { (subject) }
            @if !details.is_empty() { ul { @for detail in details { li { (detail) } } } }
        },
        Block::Named(told, texts) => html! {
            p { (told) }
            dl { @for (name, text) in texts { dt { (name) } dd { (text) } } }
        },
    }
}

/// A table without a title is called by its first heading; that of targets has one of its own.
fn caption(grid: &Grid) -> &str {
    match (grid.title.as_str(), grid.lines.first()) {
        ("", Some(TableLine::Cells(headings))) if !IS_OF_TARGETS.contains(&headings[0].as_str()) => &headings[0],
        ("", _) => "Targets",
        (title, _) => title,
    }
}

/// What the first column of targets may be.
const IS_OF_TARGETS: [&str; 3] = ["rank", "target", "store"];

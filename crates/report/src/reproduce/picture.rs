//! A post's ratios beside those of today, as a picture.

use super::text::marked;
use super::{CellReport, PostReport, once};
use crate::chart::marks::{MarkKind, MarkShape};
use crate::chart::palette::{GREY, LINES};
use crate::chart::rows::{PictureRow, RowMark, RowPicture, RowSection};
use crate::versus::versus;

const THEN: MarkKind = MarkKind::new(MarkShape::HollowDot, GREY, "then: a single run");
const TODAY: MarkKind = MarkKind::new(MarkShape::Dot, LINES[0], "today: median");

/// None of a post that has no ratio.
pub fn picture(report: &PostReport) -> Option<RowPicture> {
    let sections: Vec<RowSection> =
        report.panels.iter().map(|panel| RowSection::new(&panel.title, panel.rows.iter().map(row).collect())).collect();
    let has_ratio = |row: &CellReport| row.then_ratio.is_some() || row.today_ratio.is_some();
    if !report.panels.iter().flat_map(|panel| &panel.rows).any(has_ratio) {
        return None;
    }
    let bases = report.panels.iter().find_map(|panel| panel.base.as_deref()).unwrap_or_default();
    let mut picture = RowPicture::new(format!("Post {}", report.number), format!("times as long as {bases}"), sections);
    picture.caption = "Logarithmic axis. The post's figures are of a single run each and have no interval. Ratios of \
                       today compare trials of the same block."
        .to_string();
    Some(picture)
}

/// Then stands above today.
fn row(row: &CellReport) -> PictureRow {
    let at_base = || (row.is_base && row.today.is_some()).then_some(1.0);
    let today = row.today_ratio.map(|seen| seen.ratio).or_else(at_base);
    let span = row.today_ratio.and_then(|seen| seen.low.zip(seen.high));
    let then = row.then_ratio.map(|at| RowMark { kind: THEN, at, span: None, each: Vec::new() });
    let now = today.map(|at| RowMark { kind: TODAY, at, span, each: Vec::new() });
    let in_words = match today {
        Some(_) => format!("{} today", row.today_ratio.map_or_else(|| "1.00x".to_string(), versus)),
        None => "no number of today".to_string(),
    };
    let numbers = row.then_ratio.map(|then| format!("{} then", once(then))).into_iter().chain([in_words]);
    PictureRow {
        name: marked(row),
        is_muted: today.is_none(),
        marks: then.into_iter().chain(now).collect(),
        numbers: numbers.collect(),
        ..PictureRow::default()
    }
}

//! Where the parts of a picture of rows stand: a line for each row, or narrow, with the marks of a row below its name.

use super::rows::{PictureRow, RowPicture, RowSection};
use super::svg::{LETTERS, MARGIN, SMALL, cut, letters_in};
use crate::table::wrap;

// Lengths in pixels.
/// Where names begin behind ranks, and where numbers begin that have no heads.
const NAMES_BEHIND_RANKS: f64 = 62.0;
pub const BRACKET: f64 = 54.0;
pub const NUMBERS: f64 = 660.0;
/// A row of one line, each line more, and what the blocks of a mark take that stands below its row's name.
pub const ROW: f64 = 22.0;
pub const LINE: f64 = 14.0;
const STACKED_MARKS: f64 = 12.0;
pub const SECTION: f64 = 26.0;
/// The heads of cells, above the rows.
pub const HEADS: f64 = 20.0;
/// Below the rows: the numbers and the title of the axis.
pub const AXIS: f64 = 44.0;
pub const LABEL_GAP: f64 = 6.0;
pub const ARROW: f64 = 28.0;
const NAME_LINES_MAX: usize = 2;
pub const SMALL_LINES_MAX: usize = 3;

/// Where the parts of a row stand.
pub struct Layout {
    pub width: f64,
    /// Where names end, and where the plot begins and ends.
    names_end: f64,
    pub plot: (f64, f64),
    /// The right edges of the cells.
    pub cells: &'static [f64],
    /// The marks of a row stand below its name.
    pub is_stacked: bool,
}

pub const PLAIN: Layout =
    Layout { width: 880.0, names_end: 284.0, plot: (284.0, 640.0), cells: &[], is_stacked: false };
const WITH_CELLS: Layout =
    Layout { names_end: 250.0, plot: (250.0, 566.0), cells: &[640.0, 738.0, 810.0, 872.0], ..PLAIN };
const NARROW: Layout =
    Layout { width: 360.0, names_end: 206.0, plot: (MARGIN, 352.0), cells: &[270.0, 352.0], is_stacked: true };

impl Layout {
    pub fn of(picture: &RowPicture) -> Layout {
        if picture.heads.is_empty() { PLAIN } else { WITH_CELLS }
    }

    /// For a telephone.
    pub fn narrow(picture: &RowPicture) -> Layout {
        if picture.heads.is_empty() { Layout { names_end: NARROW.width, cells: &[], ..NARROW } } else { NARROW }
    }

    pub fn x(&self, picture: &RowPicture, number: f64) -> f64 {
        self.plot.0 + picture.axis.share(number) * (self.plot.1 - self.plot.0)
    }
}

/// A section with its rows below each other.
pub struct PlacedSection<'a> {
    pub section: &'a RowSection,
    pub top: f64,
    pub rows: Vec<PlacedRow<'a>>,
}

pub struct PlacedRow<'a> {
    pub row: &'a PictureRow,
    pub name: Vec<String>,
    pub below: Vec<String>,
    /// The middle of its text, and that of its marks.
    pub text: f64,
    pub marks: f64,
    pub bottom: f64,
}

impl PlacedSection<'_> {
    pub fn bottom(&self) -> f64 {
        self.rows.last().map_or(self.top, |row| row.bottom)
    }
}

pub fn stacked<'a>(
    sections: &[&'a RowSection],
    top: f64,
    picture: &RowPicture,
    layout: &Layout,
) -> Vec<PlacedSection<'a>> {
    let room = layout.names_end - names_at(picture) - MARGIN;
    let mut bottom = top;
    let placed = sections.iter().map(|section| {
        let top = bottom;
        bottom += if section.title.is_empty() { 0.0 } else { SECTION };
        let rows = section.rows.iter().map(|row| {
            let placed = placed_row(row, bottom, room, layout);
            bottom = placed.bottom;
            placed
        });
        PlacedSection { section, top, rows: rows.collect() }
    });
    placed.collect()
}

fn placed_row<'a>(row: &'a PictureRow, top: f64, room: f64, layout: &Layout) -> PlacedRow<'a> {
    let name = lines_of(&row.name, letters_in(room, LETTERS), if layout.is_stacked { 1 } else { NAME_LINES_MAX });
    if layout.is_stacked {
        let told = if layout.cells.is_empty() { row.numbers.len() } else { 0 };
        let (first, high) = (top + ROW + told as f64 * LINE, row.marks.len().max(1) as f64 * LINE);
        let (text, marks, bottom) = (top + ROW / 2.0, first + high / 2.0, first + high + STACKED_MARKS);
        return PlacedRow { row, name, below: Vec::new(), text, marks, bottom };
    }
    let below = lines_of(&row.below, letters_in(room, SMALL), SMALL_LINES_MAX);
    let in_cells = row.numbers.iter().map(|cell| 1 + usize::from(bracketed(cell).1.is_some())).max();
    let numbers = if layout.cells.is_empty() { row.numbers.len() } else { in_cells.unwrap_or(1) };
    let lines = (name.len() + below.len()).max(numbers).max(row.marks.len()).max(1);
    let height = ROW + (lines - 1) as f64 * LINE;
    let middle = top + height / 2.0;
    PlacedRow { row, name, below, text: middle, marks: middle, bottom: top + height }
}

/// A number and the interval behind it in brackets, which stands below it.
pub fn bracketed(cell: &str) -> (&str, Option<&str>) {
    match cell.find(" [") {
        Some(end) => (&cell[..end], Some(&cell[end + 1..])),
        None => (cell, None),
    }
}

/// A text in so many lines at the most; the table has all of it.
fn lines_of(text: &str, letters: usize, most: usize) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut lines = wrap(text, letters);
    if lines.len() > most {
        lines.truncate(most);
        lines[most - 1].push_str(" …");
    }
    lines.iter().map(|line| cut(line, letters)).collect()
}

pub fn names_at(picture: &RowPicture) -> f64 {
    if picture.rows().any(|row| row.rank.is_some()) { NAMES_BEHIND_RANKS } else { MARGIN }
}

/// The height of one of so many lines around a middle.
pub fn in_line(middle: f64, place: usize, lines: usize) -> f64 {
    middle + (place as f64 - (lines.max(1) - 1) as f64 / 2.0) * LINE
}

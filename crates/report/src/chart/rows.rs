//! Marks on rows over one axis: a row has a name, its marks with their intervals, and its numbers. The legend has the
//! marks that occur. What a row is of is not known here.

use super::axis::Axis;
use super::marks::MarkKind;

/// Rows of marks on one axis.
pub struct RowPicture {
    pub title: String,
    /// What the axis counts.
    pub across: String,
    pub axis: Axis,
    pub sections: Vec<RowSection>,
    /// What lies between these numbers is noise, and how the legend calls that.
    pub band: Option<((f64, f64), &'static str)>,
    /// A dashed line at a number, and how the legend calls it.
    pub guide: Option<(f64, &'static str)>,
    /// Over the columns of cells. Without any a row's numbers stand below each other, at the end of the row.
    pub heads: Vec<&'static str>,
    /// What is not drawn.
    pub caption: String,
}

/// Rows that belong together.
pub struct RowSection {
    pub title: String,
    /// Neither the band nor the guide holds for it.
    pub is_apart: bool,
    pub rows: Vec<PictureRow>,
}

#[derive(Default)]
pub struct PictureRow {
    pub name: String,
    /// In small letters below the name.
    pub below: String,
    pub is_muted: bool,
    pub is_struck: bool,
    /// The first and the last rank that it may have.
    pub rank: Option<(usize, usize)>,
    /// Each has a line of its own.
    pub marks: Vec<RowMark>,
    /// Why there is no mark.
    pub reason: String,
    /// Under heads, one for each of these. Else as many as marks stand beside them, and of others the first one is the
    /// one to read.
    pub numbers: Vec<String>,
}

/// One number of a row.
pub struct RowMark {
    pub kind: MarkKind,
    pub at: f64,
    pub span: Option<(f64, f64)>,
    /// What it is the median of.
    pub each: Vec<f64>,
}

impl RowMark {
    /// All that it takes room for on its axis.
    fn numbers(&self) -> impl Iterator<Item = f64> {
        let ends = self.span.into_iter().flat_map(|(low, high)| [low, high]);
        ends.chain([self.at]).chain(self.each.iter().copied())
    }

    pub(super) fn interval(&self) -> Option<(f64, f64)> {
        self.span.filter(|(low, high)| low < high)
    }
}

impl PictureRow {
    /// Each number is that of a mark.
    pub(super) fn has_numbers_beside(&self) -> bool {
        self.marks.len() == self.numbers.len()
    }
}

impl RowSection {
    pub fn new(title: impl Into<String>, rows: Vec<PictureRow>) -> RowSection {
        RowSection { title: title.into(), is_apart: false, rows }
    }

    pub(super) fn has_marks(&self) -> bool {
        self.rows.iter().any(|row| !row.marks.is_empty())
    }
}

impl RowPicture {
    /// With an axis around all marks, the band, and 1.
    pub fn new(title: String, across: String, sections: Vec<RowSection>) -> RowPicture {
        let axis = Axis::around(std::iter::empty(), "x");
        let heads = Vec::new();
        let mut picture =
            RowPicture { title, across, axis, sections, band: None, guide: None, heads, caption: String::new() };
        picture.axis = Axis::around(picture.numbers().chain([1.0]), "x");
        picture
    }

    /// Of the marks and the band.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        let band = self.band.into_iter().flat_map(|((low, high), _)| [low, high]);
        self.marks().flat_map(RowMark::numbers).chain(band)
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &PictureRow> {
        self.sections.iter().flat_map(|section| &section.rows)
    }

    pub(super) fn marks(&self) -> impl Iterator<Item = &RowMark> {
        self.rows().flat_map(|row| &row.marks)
    }
}

/// The sentences that are true, one behind the other.
pub fn caption(sentences: &[(bool, &str)]) -> String {
    sentences.iter().filter(|(is, _)| *is).map(|(_, words)| *words).collect::<Vec<_>>().join(" ")
}

//! Marks on rows over one axis: a row has a name, its marks with their intervals, and its numbers. The legend has the
//! marks that occur. What a row is of is not known here.

use maud::{Markup, html};

use super::axis::Axis;
use super::legend::{drawn_item, height, legend};
use super::marks::{MarkKind, arrow, band, bar, bracket, each, guide, mark, struck};
use super::palette::{GREY, GRID, LINES, PAPER, TEXT};
use super::svg::{self, LETTERS, MARGIN, Placed, SMALL, area, cut, dashed, letters_in, line, small, text};
use crate::table::wrap;

// Lengths in pixels.
const WIDTH: f64 = 880.0;
/// Where names begin behind ranks, where the plot begins and ends, and where the numbers begin.
const NAMES_BEHIND_RANKS: f64 = 54.0;
const BRACKET: f64 = 44.0;
const PLOT: f64 = 284.0;
const PLOT_END: f64 = 640.0;
const NUMBERS: f64 = 660.0;
/// A row of one line, and each line more.
const ROW: f64 = 22.0;
const LINE: f64 = 14.0;
const SECTION: f64 = 26.0;
/// Below the rows: the numbers and the title of the axis.
const AXIS: f64 = 44.0;
const ARROW: f64 = 28.0;
const NAME_LINES_MAX: usize = 2;
const SMALL_LINES_MAX: usize = 3;

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
    /// As many as marks stand beside them; of others the first one is the one to read.
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
    fn has_numbers_beside(&self) -> bool {
        self.marks.len() == self.numbers.len()
    }
}

impl RowSection {
    pub fn new(title: impl Into<String>, rows: Vec<PictureRow>) -> RowSection {
        RowSection { title: title.into(), is_apart: false, rows }
    }

    fn has_marks(&self) -> bool {
        self.rows.iter().any(|row| !row.marks.is_empty())
    }
}

impl RowPicture {
    /// With an axis around all marks, the band, and 1.
    pub fn new(title: String, across: String, sections: Vec<RowSection>) -> RowPicture {
        let axis = Axis::around(std::iter::empty(), "x");
        let mut picture = RowPicture { title, across, axis, sections, band: None, guide: None, caption: String::new() };
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

    fn x(&self, number: f64) -> f64 {
        PLOT + self.axis.share(number) * (PLOT_END - PLOT)
    }
}

/// The picture with its caption, for a page.
pub fn figure(picture: &RowPicture) -> Markup {
    let (height, drawn) = drawn(picture);
    svg::figure(&picture.title, (WIDTH, height), &drawn, &html! { figcaption { (picture.caption) } })
}

/// The picture as a file of its own.
pub fn document(heading: &str, picture: RowPicture) -> String {
    let (height, drawn) = drawn(&picture);
    let placed = Placed { title: String::new(), size: (WIDTH, height), drawn, notes: vec![picture.caption] };
    svg::document(heading, &[placed])
}

/// The sentences that are true, one behind the other.
pub fn caption(sentences: &[(bool, &str)]) -> String {
    sentences.iter().filter(|(is, _)| *is).map(|(_, words)| *words).collect::<Vec<_>>().join(" ")
}

/// How high it is, and what is in it.
fn drawn(picture: &RowPicture) -> (f64, Markup) {
    let legend = legend(picture, WIDTH);
    let top = height(&legend);
    let (marked, others): (Vec<_>, Vec<_>) = picture.sections.iter().partition(|section| section.has_marks());
    let marked = stacked(&marked, top, picture);
    let bottom = marked.last().map_or(top, PlacedSection::bottom);
    // What has no place on the axis stands below it.
    let others = stacked(&others, bottom + AXIS, picture);
    let all = others.last().map_or(bottom + AXIS, PlacedSection::bottom);
    let together = marked.iter().rfind(|placed| !placed.section.is_apart).map_or(top, PlacedSection::bottom);
    let drawn = html! {
        title { (svg::printable(&summary(picture))) }
        (area((0.0, 0.0), (WIDTH, all), PAPER))
        @for (place, item) in legend.iter().enumerate() { (drawn_item(item, place == 0)) }
        @if let Some(((low, high), _)) = picture.band { (band(picture.x(low), picture.x(high), top, together)) }
        (axis(picture, top, bottom))
        @if let Some((at, _)) = picture.guide { (guide(picture.x(at), top, together)) }
        @for placed in marked.iter().chain(&others) { (drawn_section(placed, picture)) }
    };
    (all, drawn)
}

/// What the picture shows, for who does not see it.
fn summary(picture: &RowPicture) -> String {
    let each = picture.sections.iter().map(|section| {
        let rows: Vec<String> = section.rows.iter().map(in_words).collect();
        let title = if section.title.is_empty() { String::new() } else { format!("{}: ", section.title) };
        format!("{title}{}", rows.join(", "))
    });
    format!("{}, {}: {}", picture.title, picture.across, each.collect::<Vec<_>>().join("; "))
}

fn in_words(row: &PictureRow) -> String {
    let why = (row.marks.is_empty() && !row.reason.is_empty()).then_some(&row.reason);
    let words: Vec<&str> = row.numbers.iter().chain(why).map(String::as_str).collect();
    format!("{} {}", row.name, words.join(" and "))
}

fn axis(picture: &RowPicture, top: f64, bottom: f64) -> Markup {
    html! {
        @for tick in &picture.axis.ticks {
            @let x = picture.x(*tick);
            (line((x, top), (x, bottom), if picture.axis.is_origin(*tick) { GREY } else { GRID }))
            (text((x, bottom + 12.0), &picture.axis.words(*tick), GREY, "middle"))
        }
        (text(((PLOT + PLOT_END) / 2.0, bottom + 31.0), &picture.across, GREY, "middle"))
    }
}

/// A section with its rows below each other.
struct PlacedSection<'a> {
    section: &'a RowSection,
    top: f64,
    rows: Vec<PlacedRow<'a>>,
}

struct PlacedRow<'a> {
    row: &'a PictureRow,
    name: Vec<String>,
    below: Vec<String>,
    middle: f64,
    bottom: f64,
}

impl PlacedSection<'_> {
    fn bottom(&self) -> f64 {
        self.rows.last().map_or(self.top, |row| row.bottom)
    }
}

fn stacked<'a>(sections: &[&'a RowSection], top: f64, picture: &RowPicture) -> Vec<PlacedSection<'a>> {
    let room = PLOT - names_at(picture) - MARGIN;
    let mut bottom = top;
    let placed = sections.iter().map(|section| {
        let top = bottom;
        bottom += if section.title.is_empty() { 0.0 } else { SECTION };
        let rows = section.rows.iter().map(|row| {
            let placed = placed_row(row, bottom, room);
            bottom = placed.bottom;
            placed
        });
        PlacedSection { section, top, rows: rows.collect() }
    });
    placed.collect()
}

fn placed_row(row: &PictureRow, top: f64, room: f64) -> PlacedRow<'_> {
    let name = lines_of(&row.name, letters_in(room, LETTERS), NAME_LINES_MAX);
    let below = lines_of(&row.below, letters_in(room, SMALL), SMALL_LINES_MAX);
    let lines = (name.len() + below.len()).max(row.numbers.len()).max(row.marks.len()).max(1);
    let height = ROW + (lines - 1) as f64 * LINE;
    PlacedRow { row, name, below, middle: top + height / 2.0, bottom: top + height }
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

fn names_at(picture: &RowPicture) -> f64 {
    if picture.rows().any(|row| row.rank.is_some()) { NAMES_BEHIND_RANKS } else { MARGIN }
}

fn drawn_section(placed: &PlacedSection<'_>, picture: &RowPicture) -> Markup {
    let title = cut(&placed.section.title, letters_in(WIDTH - 2.0 * MARGIN, LETTERS));
    let ranks = placed.rows.chunk_by(|one, next| one.row.rank.is_some() && one.row.rank == next.row.rank);
    html! {
        @if !title.is_empty() {
            // No line of the axis goes through the words.
            (area((0.0, placed.top), (WIDTH, placed.top + SECTION), PAPER))
            (line((MARGIN, placed.top + 1.0), (WIDTH - MARGIN, placed.top + 1.0), GRID))
            (text((MARGIN, placed.top + 14.0), &title, TEXT, "start"))
        }
        @for rows in ranks { (drawn_rank(rows)) }
        @for row in &placed.rows { (drawn_row(row, picture)) }
    }
}

/// The places that targets may have; a bracket for those that cannot be told apart.
fn drawn_rank(rows: &[PlacedRow<'_>]) -> Markup {
    let Some((best, worst)) = rows[0].row.rank else { return html! {} };
    let (first, last) = (rows[0].middle, rows[rows.len() - 1].middle);
    let words = if best == worst { best.to_string() } else { format!("{best}-{worst}") };
    html! {
        (text((MARGIN, (first + last) / 2.0), &words, TEXT, "start"))
        @if last > first { (bracket(BRACKET, first, last)) }
    }
}

fn drawn_row(placed: &PlacedRow<'_>, picture: &RowPicture) -> Markup {
    let row = placed.row;
    let stroke = if row.is_muted { GREY } else { TEXT };
    let names = names_at(picture);
    let name_at = |place: usize| (names, in_line(placed.middle, place, placed.name.len() + placed.below.len()));
    let is_beside = row.has_numbers_beside();
    html! {
        @for (place, words) in placed.name.iter().enumerate() {
            @if row.is_struck { (struck(name_at(place), words)) } @else { (text(name_at(place), words, stroke, "start")) }
        }
        @for (place, words) in placed.below.iter().enumerate() {
            (small(name_at(placed.name.len() + place), words, GREY, "start"))
        }
        @if row.marks.is_empty() { (reason(row, placed.middle)) } @else { (drawn_marks(row, placed.middle, picture)) }
        @for (place, words) in row.numbers.iter().enumerate() {
            @let at = (NUMBERS, in_line(placed.middle, place, row.numbers.len()));
            @if place == 0 || is_beside { (text(at, words, stroke, "start")) } @else { (small(at, words, GREY, "start")) }
        }
    }
}

/// The height of one of so many lines around a middle.
fn in_line(middle: f64, place: usize, lines: usize) -> f64 {
    middle + (place as f64 - (lines.max(1) - 1) as f64 / 2.0) * LINE
}

/// What went wrong stands out.
fn reason(row: &PictureRow, y: f64) -> Markup {
    let end = if row.numbers.is_empty() { WIDTH } else { NUMBERS };
    let stroke = if row.reason.starts_with("FAILED") { LINES[5] } else { GREY };
    html! {
        // No line of the axis goes through the words.
        (area((PLOT, y - ROW / 2.0 + 1.0), (end, y + ROW / 2.0 - 1.0), PAPER))
        (text((PLOT, y), &cut(&row.reason, letters_in(end - PLOT, LETTERS)), stroke, "start"))
    }
}

/// The marks of a row; two are joined, so that it is seen how far they are from each other.
fn drawn_marks(row: &PictureRow, middle: f64, picture: &RowPicture) -> Markup {
    let at = |place: usize| (picture.x(row.marks[place].at), in_line(middle, place, row.marks.len()));
    html! {
        @for place in 1..row.marks.len() { (dashed(at(place - 1), at(place), GREY, "4 3")) }
        @for (place, one) in row.marks.iter().enumerate() {
            (each(one.each.iter().map(|number| picture.x(*number)), at(place).1))
            @if let Some((low, high)) = one.interval() {
                (bar(picture.x(low), picture.x(high), at(place).1, one.kind.stroke, one.kind.is_thin))
            }
            @if picture.axis.has(one.at) {
                (mark(one.kind, at(place)))
            } @else {
                (arrow((PLOT_END - ARROW, at(place).1)))
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::legend::LegendMark;
    use super::super::marks::MarkShape;
    use super::super::palette::hex;
    use super::super::svg::{px, tests::attributes};
    use super::*;

    const MEDIAN: MarkKind = MarkKind::new(MarkShape::Dot, LINES[0], "median");
    const HOLLOW: MarkKind = MarkKind::new(MarkShape::HollowDot, LINES[1], "of a single run");

    fn at(kind: MarkKind, at: f64) -> RowMark {
        RowMark { kind, at, span: Some((at * 0.9, at * 1.1)), each: Vec::new() }
    }

    fn row(name: &str, marks: Vec<RowMark>) -> PictureRow {
        let numbers = marks.iter().map(|mark| format!("{}x", mark.at)).collect();
        PictureRow { name: name.to_string(), marks, numbers, ..PictureRow::default() }
    }

    fn picture(rows: Vec<PictureRow>) -> RowPicture {
        RowPicture::new("Time".to_string(), "times as long".to_string(), vec![RowSection::new("", rows)])
    }

    fn svg(picture: &RowPicture) -> String {
        drawn(picture).1.into_string()
    }

    /// Where the middles of the dots behind the legend stand.
    pub fn dots(picture: &RowPicture) -> Vec<f64> {
        let kinds = legend(picture, WIDTH).iter().filter(|item| is_round(item.sample)).count();
        let svg = svg(picture);
        attributes(&svg, "circle", "cx").into_iter().skip(kinds).filter_map(|x| x.parse().ok()).collect()
    }

    fn is_round(sample: LegendMark) -> bool {
        matches!(sample, LegendMark::Mark(kind) if matches!(kind.shape, MarkShape::Dot | MarkShape::HollowDot))
    }

    #[test]
    fn marks_stand_at_their_numbers() {
        let rows = vec![row("a", vec![at(MEDIAN, 1.0)]), row("b", vec![at(MEDIAN, 4.0), at(HOLLOW, 2.0)])];
        let picture = picture(rows);
        let expected: Vec<f64> = [1.0, 4.0, 2.0].map(|ratio| px(picture.x(ratio)).parse().expect("pixels")).into();
        assert_eq!(dots(&picture), expected);
        assert!((picture.x(2.0) - picture.x(1.0) - (picture.x(4.0) - picture.x(2.0))).abs() < 1e-9, "equal ratios");
    }

    #[test]
    fn the_legend_has_what_occurs_and_each_once() {
        let words = |picture: &RowPicture| legend(picture, WIDTH).iter().map(|item| item.words).collect::<Vec<_>>();
        let mut seen = picture(vec![row("a", vec![at(MEDIAN, 1.0)]), row("b", vec![at(MEDIAN, 2.0)])]);
        assert_eq!(words(&seen), ["median", "95 % interval"]);
        seen.band = Some(((0.9, 1.1), "noise"));
        seen.sections[0].rows[0].rank = Some((1, 2));
        seen.sections[0].rows[1].marks[0] = RowMark { span: None, each: vec![1.9, 2.1], ..at(HOLLOW, 2.0) };
        seen.sections[0].rows[1].is_struck = true;
        seen.guide = Some((3.0, "all together"));
        let all = ["median", "of a single run", "95 % interval", "one block each", "noise", "the order is not known"];
        assert_eq!(words(&seen), [&all[..], &["all together", "cannot be combined"]].concat());
        assert!(height(&legend(&seen, WIDTH)) > height(&legend(&seen, 9_999.0)), "a second line");
        assert_eq!(svg(&seen).matches("how to read").count(), 1);
    }

    #[test]
    fn rows_have_room_for_their_lines() {
        let mut long = row("a", vec![at(MEDIAN, 1.0)]);
        long.below = "a price that is told in many words ".repeat(9);
        let seen = picture(vec![long, row("b", Vec::new())]);
        let sections: Vec<&RowSection> = seen.sections.iter().collect();
        let placed = &stacked(&sections, 10.0, &seen)[0];
        assert_eq!(placed.rows[0].below.len(), SMALL_LINES_MAX);
        assert!(placed.rows[0].below[SMALL_LINES_MAX - 1].ends_with('…'));
        assert!((placed.rows[0].bottom - 10.0 - ROW - 3.0 * LINE).abs() < 1e-9);
        assert!((placed.bottom() - placed.rows[0].bottom - ROW).abs() < 1e-9);
        assert!(placed.rows[1].name == ["b"]);
    }

    #[test]
    fn what_lies_beyond_is_an_arrow_and_what_has_no_number_says_why() {
        let mut rows = vec![row("a", vec![at(MEDIAN, 1.0)]), row("far", vec![at(MEDIAN, 900.0)])];
        rows.push(PictureRow { reason: "FAILED: wrong <answers>".to_string(), ..row("bad", Vec::new()) });
        let mut seen = picture(rows);
        seen.axis = Axis::around([0.5, 8.0].into_iter(), "x");
        let svg = svg(&seen);
        assert_eq!(svg.matches("h28 m-7 -5").count(), 1, "{svg}");
        assert!(svg.contains(">900x</text>") && svg.contains(">FAILED: wrong &lt;answers&gt;</text>"), "{svg}");
        assert!(svg.contains(&format!("fill=\"{}\" text-anchor=\"start\">FAILED", hex(LINES[5].light))), "{svg}");
    }

    #[test]
    fn what_has_no_marks_at_all_stands_below_the_axis() {
        let none =
            RowSection::new("no number", vec![PictureRow { reason: "left out".to_string(), ..row("c", vec![]) }]);
        let mut seen = picture(vec![row("a", vec![at(MEDIAN, 2.0)])]);
        seen.sections.insert(0, none);
        let svg = svg(&seen);
        let height = |words: &str| {
            let (before, _) = svg.split_once(&format!(">{words}</text>")).expect(words);
            let (_, y) = before.rsplit_once(" y=\"").expect("its height");
            y.split_once('"').and_then(|(y, _)| y.parse::<f64>().ok()).expect("a number")
        };
        assert!(height("left out") > height("times as long") && height("times as long") > height("a"), "{svg}");
    }

    #[test]
    fn hostile_text_stays_text() {
        let mut hostile = row("\u{7}\u{FFFE}</svg><script>", vec![at(MEDIAN, 1.0)]);
        hostile.below = "<b>".to_string();
        let svg = document("redis: <i>", picture(vec![hostile]));
        assert!(svg.contains("redis: &lt;i&gt;") && svg.contains("&lt;script&gt;"), "{svg}");
        for bad in ["<script", "<b>", "<i>", "\u{7}", "\u{FFFE}", "url("] {
            assert!(!svg.contains(bad), "{bad}\n{svg}");
        }
    }
}

//! A picture of rows as SVG: with a line for each row, or narrow, with the marks of a row below its name.

use maud::{Markup, html};

use super::legend::{drawn_item, height, legend};
use super::marks::{arrow, band, bar, bracket, each, guide, mark, struck};
use super::palette::{GREY, GRID, LINES, PAPER, Stroke, TEXT};
use super::placed_rows::{
    ARROW, AXIS, BRACKET, HEADS, LABEL_GAP, LINE, Layout, NUMBERS, PLAIN, PlacedRow, PlacedSection, ROW, SECTION,
    bracketed, in_line, names_at, stacked,
};
use super::rows::{PictureRow, RowPicture};
use super::svg::{self, LETTERS, MARGIN, Placed, View, area, cut, dashed, letters_in, line, small, text, width_of};

/// The picture with its caption, for a page: wide, and narrow for a telephone.
pub fn figure(picture: &RowPicture) -> Markup {
    let view = |class: &'static str, layout: &Layout| {
        let (height, drawn) = drawn(picture, layout);
        View { class, size: (layout.width, height), drawn }
    };
    let views = [view("scroll wide", &Layout::of(picture)), view("narrow", &Layout::narrow(picture))];
    let caption = html! { @if !picture.caption.is_empty() { figcaption { (picture.caption) } } };
    svg::figure(&picture.title, &views, &caption)
}

/// The picture as a file of its own.
pub fn document(heading: &str, picture: RowPicture) -> String {
    let layout = Layout::of(&picture);
    let (height, drawn) = drawn(&picture, &layout);
    let placed = Placed { title: String::new(), size: (layout.width, height), drawn, notes: vec![picture.caption] };
    svg::document(heading, &[placed])
}

/// How high it is, and what is in it.
fn drawn(picture: &RowPicture, layout: &Layout) -> (f64, Markup) {
    let legend = legend(picture, layout.width);
    let top = height(&legend) + if picture.heads.is_empty() { 0.0 } else { HEADS };
    let (marked, others): (Vec<_>, Vec<_>) = picture.sections.iter().partition(|section| section.has_marks());
    let marked = stacked(&marked, top, picture, layout);
    let bottom = marked.last().map_or(top, PlacedSection::bottom);
    // What has no place on the axis stands below it.
    let others = stacked(&others, bottom + AXIS, picture, layout);
    let all = others.last().map_or(bottom + AXIS, PlacedSection::bottom);
    let together = marked.iter().rfind(|placed| !placed.section.is_apart).map_or(top, PlacedSection::bottom);
    let x = |number: f64| layout.x(picture, number);
    let drawn = html! {
        title { (svg::printable(&summary(picture))) }
        (area((0.0, 0.0), (layout.width, all), PAPER))
        @for (place, item) in legend.iter().enumerate() { (drawn_item(item, place == 0)) }
        @for (head, right) in picture.heads.iter().zip(layout.cells) {
            (small((*right, top - HEADS / 2.0), head, GREY, "end"))
        }
        @if let Some(((low, high), _)) = picture.band { (band(x(low), x(high), top, together)) }
        (axis(picture, layout, (top, bottom)))
        @if let Some((at, _)) = picture.guide { (guide(x(at), top, together)) }
        @for placed in marked.iter().chain(&others) { (drawn_section(placed, picture, layout)) }
    };
    (all, drawn)
}

/// What the picture shows, for those who do not see it.
fn summary(picture: &RowPicture) -> String {
    let has_cells = !picture.heads.is_empty();
    let each = picture.sections.iter().map(|section| {
        let rows: Vec<String> = section.rows.iter().map(|row| in_words(row, has_cells)).collect();
        let title = if section.title.is_empty() { String::new() } else { format!("{}: ", section.title) };
        format!("{title}{}", rows.join(if has_cells { "; " } else { ", " }))
    });
    format!("{}, {}: {}", picture.title, picture.across, each.collect::<Vec<_>>().join("; "))
}

fn in_words(row: &PictureRow, has_cells: bool) -> String {
    let why = (row.marks.is_empty() && !row.reason.is_empty()).then_some(&row.reason);
    let words = row.numbers.iter().chain(why).map(String::as_str).filter(|words| !words.is_empty());
    let words: Vec<&str> = words.collect();
    match has_cells {
        true => format!("{}: {}", row.name, words.join(", ")),
        false => format!("{} {}", row.name, words.join(" and ")),
    }
}

fn axis(picture: &RowPicture, layout: &Layout, (top, bottom): (f64, f64)) -> Markup {
    html! {
        @for tick in &picture.axis.ticks {
            @let x = layout.x(picture, *tick);
            (line((x, top), (x, bottom), if picture.axis.is_origin(*tick) { GREY } else { GRID }))
        }
        @for (x, words) in labels(picture, layout) { (text((x, bottom + 12.0), &words, GREY, "middle")) }
        (text(((layout.plot.0 + layout.plot.1) / 2.0, bottom + 31.0), &picture.across, GREY, "middle"))
    }
}

/// The numbers of the axis, as many as have room, none of them beyond the picture.
fn labels(picture: &RowPicture, layout: &Layout) -> Vec<(f64, String)> {
    let mut labels = Vec::new();
    let mut end = 0.0;
    for tick in &picture.axis.ticks {
        let words = picture.axis.words(*tick);
        let half = width_of(&words) / 2.0;
        let x = layout.x(picture, *tick).clamp(half, layout.width - half);
        if x - half >= end {
            end = x + half + LABEL_GAP;
            labels.push((x, words));
        }
    }
    labels
}

fn drawn_section(placed: &PlacedSection<'_>, picture: &RowPicture, layout: &Layout) -> Markup {
    let width = layout.width;
    let title = cut(&placed.section.title, letters_in(width - 2.0 * MARGIN, LETTERS));
    let ranks = placed.rows.chunk_by(|one, next| one.row.rank.is_some() && one.row.rank == next.row.rank);
    html! {
        @if !title.is_empty() {
            // No line of the axis goes through the words.
            (area((0.0, placed.top), (width, placed.top + SECTION), PAPER))
            (line((MARGIN, placed.top + 1.0), (width - MARGIN, placed.top + 1.0), GRID))
            (text((MARGIN, placed.top + 14.0), &title, TEXT, "start"))
        }
        @for rows in ranks { (drawn_rank(rows)) }
        @for row in &placed.rows {
            // The page's script finds a row's ratio by its name.
            @if layout.cells.is_empty() {
                (drawn_row(row, picture, layout))
            } @else {
                g data-row=(svg::printable(&row.row.name)) { (drawn_row(row, picture, layout)) }
            }
        }
    }
}

/// The places that targets may have; a bracket for those that are not separated.
fn drawn_rank(rows: &[PlacedRow<'_>]) -> Markup {
    let Some((best, worst)) = rows[0].row.rank else { return html! {} };
    let (first, last) = (rows[0].text, rows[rows.len() - 1].text);
    let words = if best == worst { best.to_string() } else { format!("{best}-{worst}") };
    html! {
        (text((MARGIN, (first + last) / 2.0), &words, TEXT, "start"))
        @if last > first { (bracket(BRACKET, first, last)) }
    }
}

fn drawn_row(placed: &PlacedRow<'_>, picture: &RowPicture, layout: &Layout) -> Markup {
    let row = placed.row;
    let stroke = if row.is_muted { GREY } else { TEXT };
    let names = names_at(picture);
    let name_at = |place: usize| (names, in_line(placed.text, place, placed.name.len() + placed.below.len()));
    html! {
        @for (place, words) in placed.name.iter().enumerate() {
            @if row.is_struck { (struck(name_at(place), words)) } @else { (text(name_at(place), words, stroke, "start")) }
        }
        @for (place, words) in placed.below.iter().enumerate() {
            (small(name_at(placed.name.len() + place), words, GREY, "start"))
        }
        @if row.marks.is_empty() {
            (reason(row, placed.marks, layout))
        } @else {
            (drawn_marks(placed, picture, layout))
        }
        @if layout.cells.is_empty() { (numbers(placed, stroke, layout)) } @else { (cells(placed, stroke, layout)) }
    }
}

/// At the end of the row, or below its name.
fn numbers(placed: &PlacedRow<'_>, stroke: Stroke, layout: &Layout) -> Markup {
    let row = placed.row;
    let is_beside = row.has_numbers_beside();
    if layout.is_stacked {
        // Below the name, above the marks.
        let at = |place: usize| (MARGIN, placed.text + (ROW + LINE) / 2.0 + place as f64 * LINE);
        return html! {
            @for (place, words) in row.numbers.iter().enumerate() { (small(at(place), words, GREY, "start")) }
        };
    }
    html! {
        @for (place, words) in row.numbers.iter().enumerate() {
            @let at = (NUMBERS, in_line(placed.text, place, row.numbers.len()));
            @let words = &fitted(words);
            @if place == 0 || is_beside { (text(at, words, stroke, "start")) } @else { (small(at, words, GREY, "start")) }
        }
    }
}

/// Where there is no room for an interval its bar has to tell it.
fn fitted(words: &str) -> String {
    match (words.find(" ["), words.find(']')) {
        (Some(from), Some(to)) if from < to && words.chars().count() > letters_in(PLAIN.width - NUMBERS, LETTERS) => {
            format!("{}{}", &words[..from], &words[to + 1..])
        }
        _ => words.to_string(),
    }
}

/// Under the heads, as many as the layout has columns.
fn cells(placed: &PlacedRow<'_>, stroke: Stroke, layout: &Layout) -> Markup {
    html! {
        @for (place, (cell, right)) in placed.row.numbers.iter().zip(layout.cells).enumerate() {
            @let (number, interval) = bracketed(cell);
            @let interval = interval.filter(|_| !layout.is_stacked);
            @let lines = 1 + usize::from(interval.is_some());
            g class=[(place == 1).then_some("ratio")] {
                (text((*right, in_line(placed.text, 0, lines)), number, stroke, "end"))
                @if let Some(interval) = interval {
                    (small((*right, in_line(placed.text, 1, lines)), interval, GREY, "end"))
                }
            }
        }
    }
}

/// What went wrong stands out.
fn reason(row: &PictureRow, y: f64, layout: &Layout) -> Markup {
    let (from, end) = (layout.plot.0, if row.numbers.is_empty() { layout.width } else { layout.plot.1 });
    let stroke = if row.reason.starts_with("FAILED") { LINES[5] } else { GREY };
    html! {
        // No line of the axis goes through the words.
        (area((from, y - ROW / 2.0 + 1.0), (end, y + ROW / 2.0 - 1.0), PAPER))
        (text((from, y), &cut(&row.reason, letters_in(end - from, LETTERS)), stroke, "start"))
    }
}

/// The marks of a row; two are joined, so that it is seen how far they are from each other.
fn drawn_marks(placed: &PlacedRow<'_>, picture: &RowPicture, layout: &Layout) -> Markup {
    let row = placed.row;
    let x = |number: f64| layout.x(picture, number);
    let at = |place: usize| (x(row.marks[place].at), in_line(placed.marks, place, row.marks.len()));
    html! {
        @for place in 1..row.marks.len() { (dashed(at(place - 1), at(place), GREY, "4 3")) }
        @for (place, one) in row.marks.iter().enumerate() {
            (each(one.each.iter().map(|number| x(*number)), at(place).1))
            @if let Some((low, high)) = one.interval() {
                (bar(x(low), x(high), at(place).1, one.kind.stroke, one.kind.is_thin))
            }
            @if picture.axis.has(one.at) {
                (mark(one.kind, at(place)))
            } @else {
                (arrow((layout.plot.1 - ARROW, at(place).1)))
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::axis::Axis;
    use super::super::legend::LegendMark;
    use super::super::marks::{MarkKind, MarkShape};
    use super::super::palette::hex;
    use super::super::placed_rows::SMALL_LINES_MAX;
    use super::super::rows::{RowMark, RowSection};
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
        drawn(picture, &Layout::of(picture)).1.into_string()
    }

    /// Where the middles of the dots behind the legend stand.
    pub fn dots(picture: &RowPicture) -> Vec<f64> {
        let kinds = legend(picture, PLAIN.width).iter().filter(|item| is_round(item.sample)).count();
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
        let expected: Vec<f64> =
            [1.0, 4.0, 2.0].map(|ratio| px(PLAIN.x(&picture, ratio)).parse().expect("pixels")).into();
        assert_eq!(dots(&picture), expected);
        let x = |ratio: f64| PLAIN.x(&picture, ratio);
        assert!((x(2.0) - x(1.0) - (x(4.0) - x(2.0))).abs() < 1e-9, "equal ratios");
    }

    #[test]
    fn the_legend_has_what_occurs_and_each_once() {
        let words =
            |picture: &RowPicture| legend(picture, PLAIN.width).iter().map(|item| item.words).collect::<Vec<_>>();
        let mut seen = picture(vec![row("a", vec![at(MEDIAN, 1.0)]), row("b", vec![at(MEDIAN, 2.0)])]);
        assert_eq!(words(&seen), ["median", "95 % interval"]);
        seen.band = Some(((0.9, 1.1), "noise"));
        seen.sections[0].rows[0].rank = Some((1, 2));
        seen.sections[0].rows[1].marks[0] = RowMark { span: None, each: vec![1.9, 2.1], ..at(HOLLOW, 2.0) };
        seen.sections[0].rows[1].is_struck = true;
        seen.guide = Some((3.0, "all together"));
        let all = ["median", "of a single run", "95 % interval", "one block each", "noise", "the order is not known"];
        assert_eq!(words(&seen), [&all[..], &["all together", "cannot be combined"]].concat());
        assert!(height(&legend(&seen, PLAIN.width)) > height(&legend(&seen, 9_999.0)), "a second line");
        assert_eq!(svg(&seen).matches("how to read").count(), 1);
    }

    #[test]
    fn rows_have_room_for_their_lines() {
        let mut long = row("a", vec![at(MEDIAN, 1.0)]);
        long.below = "a price that is told in many words ".repeat(9);
        let seen = picture(vec![long, row("b", Vec::new())]);
        let sections: Vec<&RowSection> = seen.sections.iter().collect();
        let placed = &stacked(&sections, 10.0, &seen, &PLAIN)[0];
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
    fn cells_stand_under_heads_and_a_narrow_picture_has_two_lines_a_row() {
        let mut seen = picture(vec![row("near", vec![at(MEDIAN, 1.0)]), row("far away", vec![at(MEDIAN, 2.0)])]);
        seen.heads = vec!["time", "ratio", "CPU"];
        for row in &mut seen.sections[0].rows {
            row.numbers = ["0.89 s", "1.18x [1.14-1.27]", "4 us"].map(str::to_string).to_vec();
        }
        let wide = svg(&seen);
        for words in [">time</text>", ">0.89 s</text>", ">1.18x</text>", ">[1.14-1.27]</text>", ">4 us</text>"] {
            assert!(wide.contains(words), "{words}\n{wide}");
        }
        let layout = Layout::narrow(&seen);
        let narrow = drawn(&seen, &layout).1.into_string();
        assert!(
            narrow.contains(">1.18x</text>") && !narrow.contains(">[1.14") && !narrow.contains(">4 us"),
            "{narrow}"
        );
        let sections: Vec<&RowSection> = seen.sections.iter().collect();
        let placed = &stacked(&sections, 0.0, &seen, &layout)[0].rows;
        assert!(placed[0].text < placed[0].marks && placed[0].marks < placed[1].text);
        // Without cells numbers stand between the name and the marks.
        let plain = picture(vec![row("near", vec![at(MEDIAN, 1.0), at(HOLLOW, 2.0)])]);
        let layout = Layout::narrow(&plain);
        let sections: Vec<&RowSection> = plain.sections.iter().collect();
        let placed = &stacked(&sections, 0.0, &plain, &layout)[0].rows[0];
        assert!(placed.marks - placed.text > 2.0 * LINE && placed.bottom - placed.marks > LINE);
        assert!(drawn(&plain, &layout).1.into_string().contains(">2x</text>"));
    }

    #[test]
    fn numbers_of_the_axis_never_touch() {
        let mut seen = picture(vec![row("a", vec![at(MEDIAN, 0.002)]), row("b", vec![at(MEDIAN, 900.0)])]);
        seen.heads = vec!["time"];
        for layout in [Layout::of(&seen), Layout::narrow(&seen)] {
            let labels = labels(&seen, &layout);
            let ends = |(x, words): &(f64, String)| (x - width_of(words) / 2.0, x + width_of(words) / 2.0);
            assert!(labels.len() > 2 && labels.windows(2).all(|two| ends(&two[0]).1 < ends(&two[1]).0), "{labels:?}");
            assert!(labels.iter().map(ends).all(|(low, high)| low >= 0.0 && high <= layout.width), "{labels:?}");
        }
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

//! The gains of levers as SVG: from the base to all levers together, a row each on one logarithmic axis.

use maud::{Markup, html};

use super::marks::{
    self, AXIS, DrawMark, LETTERS, Legend, MARGIN, RatioAxis, WIDTH, arrow, band, bar, cut, dot, line, reason, said,
    text,
};
use crate::report::chart::palette::{GREY, GRID, LINES, PAPER, Stroke, TEXT, hex};
use crate::report::chart::plot::{letters_in, px};
use crate::report::chart::shortened;
use crate::report::levers::waterfall::{MarkKind, Waterfall, WaterfallMark, WaterfallPlace, WaterfallRow};
use crate::report::table::wrap;

// Lengths in the picture's own pixels.
/// Where the plot and the numbers begin; names stand at the margin.
const PLOT: f64 = 272.0;
const PLOT_END: f64 = 648.0;
const NUMBERS: f64 = 664.0;
/// A row has its two marks so far above and below its middle.
const MARKS_APART: f64 = 8.0;
const ROW: f64 = 46.0;
const TITLE: f64 = 30.0;
/// What stands below a name.
const SMALL: f64 = 11.0;
const SMALL_LINE: f64 = 14.0;
const SMALL_LINES_MAX: usize = 3;
/// A durability level farther than so many times the rest of the axis is an arrow at its end: it would leave no room
/// for the levers.
const LEVEL_ROOM: f64 = 4.0;
/// Between the strokes of what is hatched.
const HATCH: f64 = 6.0;

/// The picture with its caption.
pub fn figure(waterfall: &Waterfall) -> Markup {
    let (height, drawn) = drawn(waterfall);
    marks::figure(&waterfall.title, height, &drawn, &caption(waterfall))
}

/// The picture as a file of its own.
pub fn document(heading: &str, waterfall: &Waterfall) -> String {
    let (height, drawn) = drawn(waterfall);
    marks::document(heading, height, &drawn, &caption(waterfall))
}

fn caption(waterfall: &Waterfall) -> String {
    let blocks = match waterfall.blocks {
        1 => "Seen once, no claim: one block has no interval.".to_string(),
        blocks => format!("{blocks} blocks; ratios compare trials of the same block."),
    };
    said(&[
        (true, "Logarithmic axis."),
        (true, blocks.as_str()),
        (waterfall.by_cpu, "CPU of client and server: times cannot be told here."),
        (waterfall.is_noisy, "Noisy: bars are thin, and only the end of an interval nearest to 1 is claimed."),
        (
            waterfall.band.is_none(),
            "No target was run twice often enough, so the noise is unknown and nothing is claimed.",
        ),
        (
            waterfall.rows.iter().any(is_pair),
            "A lever is added last where all others are there already: as much as alone means that it is independent \
            of them, less that they overlap.",
        ),
        (!waterfall.levels.is_empty(), "Durability levels are another promise, and never among all."),
        (waterfall.rows.len() > 2, "Sets of levers that were not measured have no number: gains are never multiplied."),
    ])
}

fn marks(row: &WaterfallRow) -> &[WaterfallMark] {
    match &row.place {
        WaterfallPlace::At(marks) => marks,
        WaterfallPlace::Nowhere(_) => &[],
    }
}

fn is_pair(row: &WaterfallRow) -> bool {
    marks(row).len() == 2
}

/// Around all that is drawn.
fn axis_of(waterfall: &Waterfall) -> RatioAxis {
    let ends = |rows: &[WaterfallRow]| -> Vec<f64> {
        let all = rows.iter().flat_map(marks).map(|mark| mark.versus);
        all.flat_map(|versus| [Some(versus.ratio), versus.low, versus.high]).flatten().collect()
    };
    let mut all = ends(&waterfall.rows);
    all.extend(waterfall.band.into_iter().flat_map(|(low, high)| [low, high]));
    let most = LEVEL_ROOM * all.iter().copied().fold(1.0, f64::max);
    all.extend(ends(&waterfall.levels).into_iter().map(|ratio| ratio.min(most)));
    RatioAxis::around(all.into_iter(), (PLOT, PLOT_END))
}

/// A row with its lines of small letters, and the middle of its marks.
struct Placed<'a> {
    row: &'a WaterfallRow,
    below: Vec<String>,
    top: f64,
    height: f64,
}

impl Placed<'_> {
    fn middle(&self) -> f64 {
        self.top + self.height / 2.0
    }
}

/// Rows below each other from `top` on, and where they end.
fn placed(rows: &[WaterfallRow], top: f64) -> (Vec<Placed<'_>>, f64) {
    let letters = letters_in(PLOT - 2.0 * MARGIN, SMALL);
    let mut bottom = top;
    let placed = rows.iter().map(|row| {
        let mut below = if row.below.is_empty() { Vec::new() } else { wrap(&row.below, letters) };
        if below.len() > SMALL_LINES_MAX {
            below.truncate(SMALL_LINES_MAX);
            // The table has all of it.
            let last = &mut below[SMALL_LINES_MAX - 1];
            *last = cut(&format!("{last} …"), letters);
        }
        let (top, height) = (bottom, ROW.max(30.0 + below.len() as f64 * SMALL_LINE));
        bottom += height;
        Placed { row, below, top, height }
    });
    (placed.collect(), bottom)
}

/// How high it is, and what is in it.
fn drawn(waterfall: &Waterfall) -> (f64, Markup) {
    let axis = axis_of(waterfall);
    let legend = legend(waterfall);
    let (rows, rows_end) = placed(&waterfall.rows, legend.bottom());
    let levels_top = rows_end + if waterfall.levels.is_empty() { 0.0 } else { TITLE };
    let (levels, bottom) = placed(&waterfall.levels, levels_top);
    let height = bottom + AXIS;
    let picture = html! {
        title { (summary(waterfall)) }
        rect width=(px(WIDTH)) height=(px(height)) fill=(hex(PAPER.light)) {}
        (legend.drawn())
        @if let Some((low, high)) = waterfall.band { (band(axis.x(low), axis.x(high), legend.bottom(), rows_end)) }
        (axis.drawn(legend.bottom(), bottom, waterfall.axis))
        @if let Some(together) = waterfall.together {
            (dashed((axis.x(together), legend.bottom()), (axis.x(together), rows_end)))
        }
        @for row in &rows { (drawn_row(row, &axis, waterfall.is_noisy)) }
        @if !levels.is_empty() {
            // No line of the axis goes through the words.
            rect y=(px(rows_end)) width=(px(WIDTH)) height=(px(TITLE)) fill=(hex(PAPER.light)) {}
            (text(MARGIN, rows_end + 19.0, "apart: gained by keeping less after a crash", GREY, "start"))
        }
        @for row in &levels { (drawn_row(row, &axis, waterfall.is_noisy)) }
    };
    (height, picture)
}

/// What the picture shows, for who does not see it.
fn summary(waterfall: &Waterfall) -> String {
    let rows = waterfall.rows.iter().chain(&waterfall.levels);
    let each = rows.map(|row| match &row.place {
        WaterfallPlace::At(_) => format!("{} {}", row.name, row.numbers.join(", ")),
        WaterfallPlace::Nowhere(why) => format!("{} {why}", row.name),
    });
    format!("{}, {}: {}", waterfall.title, waterfall.axis, each.collect::<Vec<_>>().join("; "))
}

fn drawn_row(placed: &Placed<'_>, axis: &RatioAxis, is_noisy: bool) -> Markup {
    let (row, y) = (placed.row, placed.middle());
    let first = y - placed.below.len() as f64 * SMALL_LINE / 2.0 + 4.5;
    let numbers_top = y - (row.numbers.len().max(1) - 1) as f64 * MARKS_APART + 4.5;
    html! {
        (line((MARGIN, placed.top), (WIDTH - MARGIN, placed.top), GRID))
        text x=(px(MARGIN)) y=(px(first)) fill=(hex(TEXT.light)) text-anchor="start"
            text-decoration=[row.is_struck.then_some("line-through")] { (shortened(&row.name)) }
        @for (place, words) in placed.below.iter().enumerate() {
            @let y = first + (place + 1) as f64 * SMALL_LINE;
            text x=(px(MARGIN)) y=(px(y)) fill=(hex(GREY.light)) font-size=(px(SMALL)) { (words) }
        }
        @match &row.place {
            WaterfallPlace::At(marks) => (drawn_marks(marks, y, axis, is_noisy)),
            WaterfallPlace::Nowhere(why) => {
                // No line of the axis goes through the words.
                rect x=(px(PLOT)) y=(px(placed.top + 1.0)) width=(px(WIDTH - PLOT)) height=(px(placed.height - 1.0))
                    fill=(hex(PAPER.light)) {}
                (reason(PLOT + MARGIN, y + 4.5, &cut(why, letters_in(WIDTH - PLOT, LETTERS))))
            }
        }
        @for (place, words) in row.numbers.iter().enumerate() {
            @let y = numbers_top + place as f64 * 2.0 * MARKS_APART;
            text x=(px(NUMBERS)) y=(px(y)) fill=(hex(TEXT.light)) font-size="12" { (words) }
        }
    }
}

/// The marks of a row; two are joined, so that it is seen how far they are from each other.
fn drawn_marks(marks: &[WaterfallMark], y: f64, axis: &RatioAxis, is_noisy: bool) -> Markup {
    let heights: &[f64] = if marks.len() == 2 { &[-MARKS_APART, MARKS_APART] } else { &[0.0] };
    let placed: Vec<(&WaterfallMark, f64)> = marks.iter().zip(heights).map(|(mark, above)| (mark, y + above)).collect();
    html! {
        @if let [(one, one_y), (other, other_y)] = placed.as_slice() {
            (dashed((axis.x(one.versus.ratio), *one_y), (axis.x(other.versus.ratio), *other_y)))
        }
        @for (mark, y) in &placed { (drawn_mark(mark, *y, axis, is_noisy)) }
    }
}

fn drawn_mark(mark: &WaterfallMark, y: f64, axis: &RatioAxis, is_noisy: bool) -> Markup {
    let x = axis.x(mark.versus.ratio);
    let stroke = stroke_of(mark.kind, mark.is_claimed);
    let ends = mark.versus.low.zip(mark.versus.high).filter(|(low, high)| low < high);
    html! {
        @if mark.kind == MarkKind::Level { (hatched(axis.x(1.0), x, y)) }
        @if let Some((low, high)) = ends { (bar(axis.x(low), axis.x(high), y, stroke, is_noisy)) }
        @match mark.kind {
            _ if !axis.has(mark.versus.ratio) => (arrow(PLOT_END - 28.0, y)),
            MarkKind::Alone => (dot(x, y, stroke, false)),
            MarkKind::Last => (dot(x, y, stroke, true)),
            MarkKind::Set => (diamond(x, y, stroke)),
            MarkKind::Level => (square(x, y, stroke)),
        }
    }
}

/// Shapes tell the same as colours.
fn stroke_of(kind: MarkKind, is_claimed: bool) -> Stroke {
    match kind {
        _ if !is_claimed => GREY,
        MarkKind::Alone => LINES[0],
        MarkKind::Last => LINES[1],
        MarkKind::Set => LINES[2],
        MarkKind::Level => LINES[3],
    }
}

/// The marks that occur.
fn legend(waterfall: &Waterfall) -> Legend {
    let of_rows = || waterfall.rows.iter().flat_map(marks);
    let all = || of_rows().chain(waterfall.levels.iter().flat_map(marks));
    let has = |kind: MarkKind| of_rows().any(|mark| mark.kind == kind && mark.versus.ratio != 1.0);
    let has_intervals = all().any(|mark| mark.versus.low < mark.versus.high);
    let is_struck = waterfall.rows.iter().any(|row| row.is_struck);
    let marks: [(DrawMark, _, _); 9] = [
        (|x, y| dot(x + 16.0, y, LINES[0], false), "the lever alone", has(MarkKind::Alone)),
        (|x, y| dot(x + 16.0, y, LINES[1], true), "the lever added last", has(MarkKind::Last)),
        (|x, y| diamond(x + 16.0, y, LINES[2]), "several levers", has(MarkKind::Set)),
        (|x, y| bar(x, x + 32.0, y, LINES[0], false), "95 % interval", has_intervals),
        (|x, y| band(x + 2.0, x + 30.0, y - 9.0, y + 9.0), "noise: same target twice", waterfall.band.is_some()),
        (
            |x, y| dot(x + 16.0, y, GREY, false),
            "no effect seen",
            all().any(|mark| !mark.is_claimed && mark.kind != MarkKind::Set),
        ),
        (|x, y| dashed((x + 16.0, y - 10.0), (x + 16.0, y + 10.0)), "all together", waterfall.together.is_some()),
        (|x, y| hatched(x, x + 32.0, y), "costs durability", !waterfall.levels.is_empty()),
        (struck, "cannot be combined", is_struck),
    ];
    Legend::of(&marks)
}

fn struck(x: f64, y: f64) -> Markup {
    html! {
        text x=(px(x)) y=(px(y + 4.5)) fill=(hex(TEXT.light)) text-decoration="line-through" { "lever" }
    }
}

fn diamond(x: f64, y: f64, stroke: Stroke) -> Markup {
    let path = format!("M{} {}l7 7 l-7 7 l-7 -7z", px(x), px(y - 7.0));
    html! { path d=(path) fill=(hex(stroke.light)) {} }
}

fn square(x: f64, y: f64, stroke: Stroke) -> Markup {
    html! { rect x=(px(x - 5.0)) y=(px(y - 5.0)) width="10" height="10" fill=(hex(stroke.light)) {} }
}

fn dashed((x, y): (f64, f64), (to_x, to_y): (f64, f64)) -> Markup {
    let path = format!("M{} {}L{} {}", px(x), px(y), px(to_x), px(to_y));
    html! { path d=(path) fill="none" stroke=(hex(GREY.light)) stroke-dasharray="4 3" {} }
}

/// A box of strokes: a pattern would have to be loaded by its name, which the page's policy forbids.
fn hatched(one: f64, other: f64, y: f64) -> Markup {
    let (from, to, half) = (one.min(other), one.max(other), 7.0);
    let count = ((to - from) / HATCH).floor().max(1.0) as usize;
    let strokes: String =
        (0..count).map(|place| format!("M{} {}l6 -14", px(from + place as f64 * HATCH), px(y + half))).collect();
    html! {
        rect x=(px(from)) y=(px(y - half)) width=(px((to - from).max(1.0))) height="14" fill="none"
            stroke=(hex(LINES[3].light)) {}
        path d=(strokes) fill="none" stroke=(hex(LINES[3].light)) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::levers::waterfall::tests::{gain, report};
    use crate::report::levers::waterfall::waterfall;
    use crate::stats::levers::LeverEffect;

    /// The numbers of an attribute, in their order.
    fn attributes(svg: &str, element: &str, name: &str) -> Vec<f64> {
        let (element, name) = (format!("<{element} "), format!("{name}=\""));
        let value = |text: &str| text.split_once(&name)?.1.split_once('"')?.0.parse().ok();
        svg.split(&element).skip(1).filter_map(value).collect()
    }

    #[test]
    fn marks_stand_at_their_ratios_to_either_side_of_1() {
        let seen = waterfall(&report());
        let axis = axis_of(&seen);
        let (_, drawn) = drawn(&seen);
        let svg = drawn.into_string();
        let places = attributes(&svg, "circle", "cx");
        // Filled and hollow by turns; the lever that cannot be combined has one mark, the one that failed has none.
        let expected = [5.8, 4.9, 1.5, 1.3, 1.01, 0.99, 0.8, 0.7, 1.4].map(|ratio| px(axis.x(ratio)));
        let behind_legend: Vec<String> = places[places.len() - 9..].iter().map(|x| px(*x)).collect();
        assert_eq!(behind_legend, expected);
        assert!(axis.x(0.7) < axis.x(1.0) && axis.x(1.0) < axis.x(1.3));
        assert!(!axis.has(7.0), "what failed has no place on the axis");
        for words in ["how to read", "the lever alone", "the lever added last", "noise", "costs durability"] {
            assert!(svg.contains(words), "{words}\n{svg}");
        }
    }

    #[test]
    fn rows_have_room_for_their_words_and_do_not_overlap() {
        let mut long = report();
        long.levers[0].pays = "a price that is told in many words ".repeat(9);
        let seen = waterfall(&long);
        let (rows, bottom) = placed(&seen.rows, 10.0);
        assert!(rows.windows(2).all(|pair| (pair[0].top + pair[0].height - pair[1].top).abs() < 1e-9));
        assert!((bottom - rows.iter().map(|row| row.height).sum::<f64>() - 10.0).abs() < 1e-9);
        assert_eq!(rows[1].below.len(), SMALL_LINES_MAX);
        assert!(rows[1].below[SMALL_LINES_MAX - 1].ends_with('…') && rows[1].height > ROW);
        assert!(rows.iter().all(|row| row.height >= 30.0 + row.below.len() as f64 * SMALL_LINE));
    }

    /// The levers keep their room; the number stands beside the arrow.
    #[test]
    fn a_durability_level_far_away_is_an_arrow() {
        let mut far = report();
        far.durability[1].ratio = Some(gain(900.0, Some(LeverEffect::Helps)).ratio);
        let seen = waterfall(&far);
        let axis = axis_of(&seen);
        assert!(!axis.has(900.0) && axis.has(6.2));
        let arrows = |seen: &Waterfall| drawn(seen).1.into_string().matches("h28 m-7 -5").count();
        assert_eq!((arrows(&seen), arrows(&waterfall(&report()))), (1, 0));
        assert!(drawn(&seen).1.into_string().contains("900x"));
    }

    #[test]
    fn a_lever_that_cannot_be_combined_is_struck_and_one_that_failed_says_why() {
        let svg = drawn(&waterfall(&report())).1.into_string();
        assert!(svg.contains("text-decoration=\"line-through\">cache</text>"), "{svg}");
        assert!(svg.contains("a cache cannot see that") && svg.contains(">FAILED: wrong answers</text>"), "{svg}");
    }

    #[test]
    fn a_file_of_its_own_is_xml_and_hostile_text_stays_text() {
        let mut hostile = report();
        hostile.levers[1].change = "\u{7}\u{FFFE}</svg><script>".to_string();
        let svg = document("redis: <b>unix</b> is enough", &waterfall(&hostile));
        assert!(svg.starts_with("<svg width=\"880\"") && svg.ends_with("</svg>\n"), "{svg}");
        assert!(svg.contains("redis: &lt;b&gt;unix&lt;/b&gt; is enough") && svg.contains("&lt;script&gt;"), "{svg}");
        for bad in ["<script", "<b>", "\u{7}", "\u{FFFE}", "url("] {
            assert!(!svg.contains(bad), "{bad}\n{svg}");
        }
        assert_eq!(svg, document("redis: <b>unix</b> is enough", &waterfall(&hostile)), "the same bytes");
    }

    #[test]
    fn the_caption_says_what_is_not_drawn() {
        let seen = waterfall(&report());
        let words = caption(&seen);
        assert!(words.contains("11 blocks") && words.contains("gains are never multiplied"), "{words}");
        assert!(!words.contains("Noisy") && !words.contains("CPU"), "{words}");
        let noisy = Waterfall { is_noisy: true, by_cpu: true, band: None, blocks: 1, ..seen };
        let words = caption(&noisy);
        for part in ["Noisy: bars are thin", "times cannot be told here", "noise is unknown", "Seen once"] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }
}

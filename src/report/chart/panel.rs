//! One panel of a chart: axes, bands, lines, points, and the names of the lines beside their ends.

use anyhow::Result;
use plotters::backend::SVGBackend;
use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{Circle, PathElement, Polygon};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontDesc, FontFamily, FontStyle, IntoFont, ShapeStyle, TRANSPARENT, TextStyle};

use super::axis::Axis;
use super::palette::{GREY, GRID, Mark, PAPER, Stroke, TEXT};
use super::{Line, Measure, called, labels, step, swept};
use crate::report::point::Point;

// Lengths in pixels, letters by their height.
const PLOT_WIDTH: i32 = 330;
const PLOT_HEIGHT: i32 = 250;
/// Beside a plot: the numbers of its axis; above it: its title; below it: the numbers and the title of its axis.
const AXIS_WIDTH: i32 = 52;
const TITLE_HEIGHT: i32 = 30;
const AXIS_HEIGHT: i32 = 42;
/// Between a plot and its labels, for the hairlines that lead from ends to labels.
const LEADER_WIDTH: i32 = 18;
/// Of the piece of its line that stands before a label.
const SAMPLE_WIDTH: i32 = 26;
/// Between that and the label.
const SAMPLE_GAP: i32 = 6;
const LABEL_GAP: i32 = 15;
const LABEL: f64 = 12.0;
const NUMBER: f64 = 11.0;
const TITLE: f64 = 13.0;
const RADIUS: i32 = 5;
const RADIUS_OF_BASELINES: i32 = 4;
const BAND_OPACITY: f64 = 0.15;
/// The mean width of a letter by its height, in the wide faces of screens (Verdana, DejaVu Sans).
const LETTER_SHARE: f64 = 0.6;
/// A longer name is cut.
const NAME_LETTERS: usize = 32;

/// The whole picture, by its pixels.
pub type Page<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A place on the page.
type Pixel = (i32, i32);

/// How large the panels of a chart are.
pub struct PanelSizes {
    pub width: i32,
    pub height: i32,
}

impl PanelSizes {
    /// Room for all names, and for a label of each line above the others.
    pub fn of(lines: &[Line]) -> PanelSizes {
        let longest = lines.iter().map(|line| shortened(line.target).chars().count()).max().unwrap_or(0);
        let label_width = SAMPLE_WIDTH + SAMPLE_GAP + (longest as f64 * LABEL * LETTER_SHARE).ceil() as i32;
        let plot_height = PLOT_HEIGHT.max(lines.len() as i32 * LABEL_GAP);
        PanelSizes {
            width: AXIS_WIDTH + PLOT_WIDTH + LEADER_WIDTH + label_width,
            height: TITLE_HEIGHT + plot_height + AXIS_HEIGHT,
        }
    }
}

/// How many letters of that height there is room for.
pub fn letters_in(width: i32, height: f64) -> usize {
    (f64::from(width) / (height * LETTER_SHARE)) as usize
}

/// How something is written.
pub struct Letters {
    pub height: f64,
    pub stroke: Stroke,
    pub bold: bool,
}

/// Writes a line of text from a place at its left, half of its height above and half below.
pub fn write(page: &Page, text: &str, at: Pixel, letters: &Letters) -> Result<()> {
    Ok(page.draw_text(&printable(text), &letters.style().pos(Pos::new(HPos::Left, VPos::Center)), at)?)
}

impl Letters {
    fn style(&self) -> TextStyle<'static> {
        let style = if self.bold { FontStyle::Bold } else { FontStyle::Normal };
        // The crate takes the height of a line and writes that of its letters: a 1.24th.
        let font: FontDesc = (FontFamily::SansSerif, self.height * 1.24, style).into_font();
        font.color(&self.stroke.light)
    }
}

/// What no XML may hold is replaced. What has a meaning in it is escaped by the plotting crate.
pub fn printable(text: &str) -> String {
    let is_bad = |letter: char| letter.is_control() || matches!(letter, '\u{FFFE}' | '\u{FFFF}');
    text.chars().map(|letter| if is_bad(letter) { '\u{FFFD}' } else { letter }).collect()
}

/// A name that is too long, cut in its middle: targets differ at both ends.
pub fn shortened(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= NAME_LETTERS {
        return name.to_string();
    }
    let (head, tail) = (NAME_LETTERS / 2, NAME_LETTERS - NAME_LETTERS / 2 - 1);
    letters[..head].iter().chain(&['…']).chain(&letters[letters.len() - tail..]).collect()
}

/// One line as it lies on the page: its points from left to right, with the ends of their bands.
struct Laid<'a> {
    line: &'a Line<'a>,
    points: Vec<(Pixel, &'a Point)>,
    lowest: Vec<Pixel>,
    highest: Vec<Pixel>,
}

/// Draws what a measure says of a part's points, with the upper left corner there.
pub fn draw(
    page: &Page,
    corner: Pixel,
    sizes: &PanelSizes,
    measure: &Measure,
    points: &[&Point],
    lines: &[Line],
) -> Result<()> {
    let xs: Vec<f64> = points.iter().map(|point| step(point)).collect();
    let ys: Vec<f64> = points.iter().flat_map(|point| (measure.span)(point)).collect();
    let (x, y) = (Axis::of_sweep(&xs), Axis::of_measure(&ys));
    let title = format!("{}{}", (measure.title)(called(&points[0].part)), scale(&y));
    let letters = Letters { height: TITLE, stroke: TEXT, bold: true };
    write(page, &title, (corner.0, corner.1 + TITLE_HEIGHT / 3), &letters)?;

    let plot_width = AXIS_WIDTH + PLOT_WIDTH;
    let area = page.clone().shrink((corner.0, corner.1 + TITLE_HEIGHT), (plot_width, sizes.height - TITLE_HEIGHT));
    let mut chart = ChartBuilder::on(&area);
    let x_title = format!("{}{}", swept(points), scale(&x));
    let mut chart = chart.x_label_area_size(AXIS_HEIGHT).y_label_area_size(AXIS_WIDTH).build_cartesian_2d(x, y)?;
    let numbers = Letters { height: NUMBER, stroke: GREY, bold: false }.style();
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID.light)
        .axis_style(GRID.light)
        .label_style(numbers)
        .x_desc(x_title)
        .draw()?;

    let plot = chart.plotting_area();
    let laid = lines.iter().filter_map(|line| {
        let mut points: Vec<&Point> = points.iter().copied().filter(|point| point.target == line.target).collect();
        points.sort_by(|one, other| step(one).total_cmp(&step(other)));
        let place = |point: &Point, number: f64| plot.map_coordinate(&(step(point), number));
        (!points.is_empty()).then(|| Laid {
            line,
            lowest: points.iter().map(|point| place(point, (measure.span)(point)[0])).collect(),
            highest: points.iter().map(|point| place(point, (measure.span)(point)[1])).collect(),
            points: points.iter().map(|&point| (place(point, (measure.value)(point)), point)).collect(),
        })
    });
    let mut laid: Vec<Laid> = laid.collect();
    // Baselines lie below what is compared.
    laid.sort_by_key(|laid| !laid.line.baseline);
    let (across, down) = plot.get_pixel_range();
    bands(page, &laid)?;
    names(page, &laid, across.end, (down.start, down.end))?;
    laid.iter().try_for_each(|laid| line(page, laid))
}

/// What an axis in equal ratios adds to its title.
fn scale(axis: &Axis) -> &'static str {
    if axis.logarithmic { " (logarithmic)" } else { "" }
}

fn bands(page: &Page, laid: &[Laid]) -> Result<()> {
    for laid in laid.iter().filter(|laid| laid.lowest != laid.highest) {
        let around: Vec<Pixel> = laid.lowest.iter().chain(laid.highest.iter().rev()).copied().collect();
        page.draw(&Polygon::new(around, laid.line.stroke.light.mix(BAND_OPACITY)))?;
    }
    Ok(())
}

fn line(page: &Page, laid: &Laid) -> Result<()> {
    page.draw(&path(laid.line, laid.points.iter().map(|(at, _)| *at).collect()))?;
    laid.points.iter().try_for_each(|(at, point)| mark(page, *at, laid.line, point.client_limited))
}

fn path(line: &Line, through: Vec<Pixel>) -> PathElement<Pixel> {
    let width = if line.baseline { 1 } else { 2 };
    PathElement::new(through, ShapeStyle::from(line.stroke.light).stroke_width(width))
}

/// A hollow mark is a smaller one of paper on it, so that no line shines through.
fn mark(page: &Page, at: Pixel, line: &Line, hollow: bool) -> Result<()> {
    let radius = if line.baseline { RADIUS_OF_BASELINES } else { RADIUS };
    let layers = [(radius, line.stroke), (radius - 2, PAPER)];
    for (radius, stroke) in &layers[..if hollow { 2 } else { 1 }] {
        if line.mark == Mark::Circle {
            page.draw(&Circle::new(at, *radius, stroke.light.filled()))?;
        } else {
            let corners = line.mark.corners(*radius).into_iter().map(|(right, below)| (at.0 + right, at.1 + below));
            page.draw(&Polygon::new(corners.collect::<Vec<Pixel>>(), stroke.light))?;
        }
    }
    Ok(())
}

/// The name of each line right of the plot, behind a piece of the line, at the height of its end or as near to it as
/// others allow.
fn names(page: &Page, laid: &[Laid], plot_end: i32, (top, bottom): Pixel) -> Result<()> {
    let ends: Vec<Pixel> = laid.iter().filter_map(|laid| Some(laid.points.last()?.0)).collect();
    let wanted: Vec<f64> = ends.iter().map(|end| f64::from(end.1)).collect();
    let heights = labels::apart(&wanted, LABEL_GAP.into(), top.into(), bottom.into());
    for ((laid, end), height) in laid.iter().zip(ends).zip(heights) {
        let (left, height) = (plot_end + LEADER_WIDTH, height.round() as i32);
        page.draw(&PathElement::new(vec![end, (left, height)], GRID.light))?;
        page.draw(&path(laid.line, vec![(left, height), (left + SAMPLE_WIDTH, height)]))?;
        mark(page, (left + SAMPLE_WIDTH / 2, height), laid.line, false)?;
        let letters = Letters { height: LABEL, stroke: laid.line.stroke, bold: false };
        let at = (left + SAMPLE_WIDTH + SAMPLE_GAP, height);
        write(page, &shortened(laid.line.target), at, &letters)?;
    }
    Ok(())
}

//! What all pictures are drawn with. Colours and sizes are attributes, so that a picture is whole without style sheets;
//! those make it dark.

use maud::{Markup, html};

use super::palette::{GREY, PAPER, Stroke, TEXT, hex, style_sheet};
use crate::table::wrap;

// Lengths in pixels, letters by their height.
pub const LETTERS: f64 = 12.0;
pub const SMALL: f64 = 11.0;
pub const MARGIN: f64 = 8.0;
const HEADING: f64 = 15.0;
const NOTE_LINE: f64 = 18.0;
const HEADING_LINE: f64 = 20.0;
/// From the middle of a letter to the line that it stands on.
const LETTER_BASE: f64 = 4.0;
/// The mean width of a letter by its height, in the wide faces of screens (Verdana, DejaVu Sans).
const LETTER_SHARE: f64 = 0.6;
/// The same of names, which are short and often have an m, a w or a +.
const NAME_SHARE: f64 = 0.67;
/// A longer name is cut.
const NAME_LETTERS: usize = 32;
/// The radius of a dot.
const RADIUS: f64 = 5.0;

/// A place in a picture, in pixels from its left and from its top.
pub type Pixel = (f64, f64);

/// To a tenth of a pixel.
pub fn px(length: f64) -> String {
    let text = format!("{length:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

/// How many letters of that height there is room for.
pub fn letters_in(width: f64, height: f64) -> usize {
    (width / (height * LETTER_SHARE)) as usize
}

/// The width that a text takes, and a name.
pub fn width_of(text: &str) -> f64 {
    (text.chars().count() as f64 * LETTERS * LETTER_SHARE).ceil()
}

pub fn width_of_name(name: &str) -> f64 {
    (name.chars().count() as f64 * LETTERS * NAME_SHARE).ceil()
}

/// What no XML may hold is replaced. What has a meaning in it is escaped by the templates.
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

/// A text that is too long, cut at its end.
pub fn cut(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_string();
    }
    text.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
}

/// With its middle at that height.
pub fn text((x, y): Pixel, words: &str, stroke: Stroke, anchor: &str) -> Markup {
    html! {
        text x=(px(x)) y=(px(y + LETTER_BASE)) fill=(hex(stroke.light)) text-anchor=(anchor) { (printable(words)) }
    }
}

/// The same in small letters.
pub fn small((x, y): Pixel, words: &str, stroke: Stroke, anchor: &str) -> Markup {
    html! {
        text x=(px(x)) y=(px(y + LETTER_BASE)) font-size=(px(SMALL)) fill=(hex(stroke.light)) text-anchor=(anchor) {
            (printable(words))
        }
    }
}

pub fn line(from: Pixel, to: Pixel, stroke: Stroke) -> Markup {
    html! { path d=(path(from, to)) fill="none" stroke=(hex(stroke.light)) {} }
}

pub fn dashed(from: Pixel, to: Pixel, stroke: Stroke, dashes: &str) -> Markup {
    html! { path d=(path(from, to)) fill="none" stroke=(hex(stroke.light)) stroke-dasharray=(dashes) {} }
}

pub fn thick(from: Pixel, to: Pixel, stroke: Stroke) -> Markup {
    html! { path d=(path(from, to)) fill="none" stroke=(hex(stroke.light)) stroke-width="3" {} }
}

fn path((x, y): Pixel, (to_x, to_y): Pixel) -> String {
    format!("M{} {}L{} {}", px(x), px(y), px(to_x), px(to_y))
}

/// A filled one, or one of paper with an edge.
pub fn dot((x, y): Pixel, stroke: Stroke, is_hollow: bool) -> Markup {
    let fill = if is_hollow { PAPER } else { stroke };
    html! {
        circle cx=(px(x)) cy=(px(y)) r=(px(RADIUS)) fill=(hex(fill.light)) stroke=(hex(stroke.light)) stroke-width="2" {}
    }
}

/// From one corner to the other one; nothing is less than a pixel wide or high.
pub fn area((x, y): Pixel, (to_x, to_y): Pixel, stroke: Stroke) -> Markup {
    let (width, height) = ((to_x - x).max(1.0), (to_y - y).max(1.0));
    html! { rect x=(px(x)) y=(px(y)) width=(px(width)) height=(px(height)) fill=(hex(stroke.light)) {} }
}

/// A picture as it is drawn for screens of some width. The class says for which.
pub struct View {
    pub class: &'static str,
    pub size: (f64, f64),
    pub drawn: Markup,
}

/// A picture on a page, with its caption: what is not drawn.
pub fn figure(title: &str, views: &[View], below: &Markup) -> Markup {
    html! {
        figure {
            @for View { class, size, drawn } in views {
                div class=(class) tabindex="0" role="region" aria-label=(printable(title)) {
                    svg role="img" width=(px(size.0)) height=(px(size.1))
                        viewBox=(format!("0 0 {} {}", px(size.0), px(size.1)))
                        font-family="sans-serif" font-size=(px(LETTERS)) { (drawn) }
                }
            }
            (below)
        }
    }
}

/// A picture of a file, with what stands above and below it.
pub struct Placed {
    pub title: String,
    pub size: (f64, f64),
    pub drawn: Markup,
    pub notes: Vec<String>,
}

/// Pictures below a heading, below each other, as a file of their own.
pub fn document(heading: &str, pictures: &[Placed]) -> String {
    let width = pictures.iter().map(|picture| picture.size.0).fold(0.0, f64::max);
    let inside = width - 2.0 * MARGIN;
    let heading = wrap(heading, letters_in(inside, HEADING));
    let mut bottom = MARGIN + (heading.len() as f64 + 0.5) * HEADING_LINE;
    let placed: Vec<Markup> = pictures.iter().map(|picture| placed(picture, inside, &mut bottom)).collect();
    let body = html! {
        rect width=(px(width)) height=(px(bottom)) fill=(hex(PAPER.light)) {}
        (paragraph(&heading, MARGIN, HEADING, HEADING_LINE, TEXT))
        @for picture in &placed { (picture) }
    };
    file((width, bottom), &body.into_string())
}

fn placed(picture: &Placed, inside: f64, bottom: &mut f64) -> Markup {
    let title = if picture.title.is_empty() { Vec::new() } else { wrap(&picture.title, letters_in(inside, LETTERS)) };
    let titled = *bottom;
    let top = titled + title.len() as f64 * HEADING_LINE;
    let below = top + picture.size.1;
    let notes: Vec<String> = picture.notes.iter().flat_map(|note| wrap(note, letters_in(inside, SMALL))).collect();
    *bottom = below + (notes.len() as f64 + 0.5) * NOTE_LINE;
    html! {
        (paragraph(&title, titled, LETTERS, HEADING_LINE, TEXT))
        g transform=(format!("translate(0 {})", px(top))) { (picture.drawn) }
        (paragraph(&notes, below, SMALL, NOTE_LINE, GREY))
    }
}

/// An SVG file around what is drawn in it, which has no line ends of its own.
fn file((width, height): (f64, f64), drawn: &str) -> String {
    format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"{letters}\">\n\
         {style}{drawn}\n</svg>\n",
        width = px(width),
        height = px(height),
        letters = px(LETTERS),
        style = style_sheet(),
        drawn = printable(drawn),
    )
}

/// Lines of text below each other.
fn paragraph(lines: &[String], top: f64, letters: f64, height: f64, stroke: Stroke) -> Markup {
    html! {
        @for (row, words) in lines.iter().enumerate() {
            @let y = top + (row as f64 + 0.75) * height;
            text x=(px(MARGIN)) y=(px(y)) font-size=(px(letters)) fill=(hex(stroke.light)) { (words) }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::palette::GRID;
    use super::*;

    /// What the attribute has in all elements of a kind, in their order.
    pub fn attributes<'a>(svg: &'a str, element: &str, name: &str) -> Vec<&'a str> {
        let (element, name) = (format!("<{element} "), format!("{name}=\""));
        let elements = svg.split(element.as_str()).skip(1).filter_map(|rest| rest.split_once('>'));
        let values = elements.filter_map(|(inside, _)| inside.split_once(name.as_str())?.1.split_once('"'));
        values.map(|(value, _)| value).collect()
    }

    #[test]
    fn a_file_holds_all_pictures_and_hostile_text_stays_text() {
        let placed = |words: &str| Placed {
            title: format!("title of {words}"),
            size: (400.0, 100.0),
            drawn: text((10.0, 10.0), words, TEXT, "start"),
            notes: vec!["a note, <i>".to_string()],
        };
        let svg = document("a <b> run", &[placed("<script>\u{7}\u{FFFE}"), placed("b")]);
        assert!(svg.starts_with("<svg width=\"400\"") && svg.ends_with("</svg>\n"), "{svg}");
        assert_eq!(svg.matches("<g transform=").count(), 2, "{svg}");
        for words in ["a &lt;b&gt; run", "&lt;script&gt;\u{FFFD}", "a note, &lt;i&gt;", "title of b"] {
            assert!(svg.contains(words), "{words}\n{svg}");
        }
        assert!(["<script", "<b>", "<i>", "\u{7}", "\u{FFFE}"].iter().all(|bad| !svg.contains(bad)), "{svg}");
    }

    #[test]
    fn the_picture_knows_the_dark() {
        let drawn = html! { (dot((1.0, 1.0), TEXT, true)) (line((0.0, 0.0), (1.0, 1.0), GRID)) };
        let notes = vec!["said".to_string()];
        let svg = document("a run", &[Placed { title: String::new(), size: (90.0, 90.0), drawn, notes }]);
        let (head, sheet) = svg.split_once("<style>").expect("a style sheet");
        assert_eq!(head.lines().count(), 1);
        assert!(sheet.contains("@media (prefers-color-scheme: dark)"));
        let (sheet, drawing) = sheet.split_once("</style>").expect("its end");
        for colour in drawing.split("=\"#").skip(1).map(|rest| &rest[..6]) {
            assert!(sheet.contains(&format!("[fill=\"#{colour}\"]")), "{colour}");
        }
    }

    #[test]
    fn long_names_are_cut_in_their_middle_and_long_texts_at_their_end() {
        let name = format!("{}{}", "a".repeat(50), "z".repeat(50));
        assert_eq!(shortened(&name).chars().count(), NAME_LETTERS);
        assert!(shortened(&name).starts_with("aaa") && shortened(&name).ends_with("zzz"));
        assert_eq!((cut("abcdef", 4), cut("abcd", 4)), ("abc…".to_string(), "abcd".to_string()));
        assert_eq!([px(1.0), px(1.24), px(10.0)], ["1", "1.2", "10"]);
    }
}

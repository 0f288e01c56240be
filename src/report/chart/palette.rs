//! What a chart is drawn with: colours for light and for dark screens, dashes and marks.
//!
//! The plotting crate writes the light colours. A style sheet in the picture names each of them and says what it is in
//! the dark, and how lines of it are dashed: a reader without style sheets has a light picture all the same.

use plotters::style::RGBColor;

/// A colour on a light screen, what it is on a dark one, and how lines of it are dashed (lengths in pixels; empty for a
/// line that is not).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    pub light: RGBColor,
    dark: RGBColor,
    dashes: &'static str,
}

const fn stroke(light: u32, dark: u32, dashes: &'static str) -> Stroke {
    const fn colour(hex: u32) -> RGBColor {
        RGBColor((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
    }
    Stroke { light: colour(light), dark: colour(dark), dashes }
}

pub const PAPER: Stroke = stroke(0xFFFFFF, 0x15181C, "");
pub const TEXT: Stroke = stroke(0x1C2024, 0xE6E8EA, "");
/// Baselines, and what is said below.
pub const GREY: Stroke = stroke(0x6B7075, 0x9BA1A7, "");
/// Axes and grid.
pub const GRID: Stroke = stroke(0xDDE0E3, 0x343A41, "");

/// Lines in the order in which they are given out. Each stands out from the paper at least 4.5 to 1 (WCAG 2.2, 1.4.3),
/// since labels are written in it; dashes tell them apart where colours do not.
pub const LINES: [Stroke; 6] = [
    stroke(0x1B5E9E, 0x7FB8F0, ""),
    stroke(0xB8450A, 0xFFA36B, "9 4"),
    stroke(0x0B7654, 0x5FD3A8, "2 3"),
    stroke(0x8A3A8C, 0xDCA3DF, "14 4 3 4"),
    stroke(0x7A6000, 0xE0C050, "5 3"),
    stroke(0xB3245A, 0xFF92B4, "12 3 2 3 2 3"),
];

/// The shape of a line's points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    Circle,
    Square,
    Up,
    Diamond,
    Down,
}

pub const MARKS: [Mark; 5] = [Mark::Circle, Mark::Square, Mark::Up, Mark::Diamond, Mark::Down];

impl Mark {
    /// Corners around the middle, in pixels; none for a circle. They are chosen to look equally large.
    pub fn corners(self, radius: i32) -> Vec<(i32, i32)> {
        let (small, large) = (radius - 1, radius + 1);
        match self {
            Mark::Circle => Vec::new(),
            Mark::Square => vec![(-small, -small), (small, -small), (small, small), (-small, small)],
            Mark::Up => vec![(0, -large), (large, small), (-large, small)],
            Mark::Diamond => vec![(0, -large), (large, 0), (0, large), (-large, 0)],
            Mark::Down => vec![(0, large), (large, -small), (-large, -small)],
        }
    }
}

/// The style sheet of all inks, as an element.
pub fn style_sheet() -> String {
    format!("<style>\n{}</style>\n", rules())
}

/// The same, for a page that has several pictures.
pub fn rules() -> String {
    let all = || [PAPER, TEXT, GREY, GRID].into_iter().chain(LINES);
    let mut text = "polyline { stroke-linejoin: round }\n".to_string();
    for stroke in all().filter(|stroke| !stroke.dashes.is_empty()) {
        text.push_str(&format!(
            "polyline[stroke=\"{}\"] {{ stroke-dasharray: {} }}\n",
            hex(stroke.light),
            stroke.dashes
        ));
    }
    text.push_str("@media (prefers-color-scheme: dark) {\n");
    for stroke in all() {
        let (light, dark) = (hex(stroke.light), hex(stroke.dark));
        text.push_str(&format!("[fill=\"{light}\"] {{ fill: {dark} }} [stroke=\"{light}\"] {{ stroke: {dark} }}\n"));
    }
    text.push_str("}\n");
    text
}

/// As the plotting crate writes it.
pub fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contrast as WCAG 2.2 defines it.
    fn contrast(one: RGBColor, other: RGBColor) -> f64 {
        let linear = |part: u8| {
            let share = f64::from(part) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        let luminance =
            |RGBColor(red, green, blue)| 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn what_is_written_can_be_read_in_light_and_dark() {
        for stroke in [TEXT, GREY].into_iter().chain(LINES) {
            assert!(contrast(stroke.light, PAPER.light) >= 4.5, "{stroke:?}");
            assert!(contrast(stroke.dark, PAPER.dark) >= 4.5, "{stroke:?}");
        }
    }

    /// The style sheet knows inks by their light colours, and lines are told apart in grey by their dashes.
    #[test]
    fn no_two_inks_are_alike() {
        let all: Vec<Stroke> = [PAPER, TEXT, GREY, GRID].into_iter().chain(LINES).collect();
        for (index, stroke) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other.light != stroke.light), "{stroke:?}");
            assert!(LINES.iter().filter(|line| line.dashes == stroke.dashes).count() <= 1, "{stroke:?}");
        }
    }
}

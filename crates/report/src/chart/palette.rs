//! What a chart is drawn with: colours for light and for dark screens, dashes and marks.
//!
//! Attributes have the light colours. A style sheet in the picture names each of them and says what it is in the dark,
//! and how lines of it are dashed: a reader without style sheets has a light picture all the same.

/// A colour on a light screen, what it is on a dark one, and how lines of it are dashed (lengths in pixels; empty for a
/// line that is not). Colours are 0xRRGGBB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    pub light: u32,
    dark: u32,
    dashes: &'static str,
}

const fn stroke(light: u32, dark: u32, dashes: &'static str) -> Stroke {
    Stroke { light, dark, dashes }
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
    pub fn corners(self, radius: f64) -> Vec<(f64, f64)> {
        let (small, large) = (radius - 1.0, radius + 1.0);
        match self {
            Mark::Circle => Vec::new(),
            Mark::Square => vec![(-small, -small), (small, -small), (small, small), (-small, small)],
            Mark::Up => vec![(0.0, -large), (large, small), (-large, small)],
            Mark::Diamond => vec![(0.0, -large), (large, 0.0), (0.0, large), (-large, 0.0)],
            Mark::Down => vec![(0.0, large), (large, -small), (-large, -small)],
        }
    }
}

/// How a target is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ink {
    pub stroke: Stroke,
    pub mark: Mark,
    /// Thin, and below the others.
    pub is_baseline: bool,
}

/// The inks of targets, the same in all charts of a run: in the order in which they are named, baselines in grey.
pub struct Inks<'a>(Vec<(&'a str, Ink)>);

impl<'a> Inks<'a> {
    /// Targets, each with whether it is a baseline. What is named again keeps its ink.
    pub fn of(targets: impl Iterator<Item = (&'a str, bool)>) -> Inks<'a> {
        let mut inks: Vec<(&str, Ink)> = Vec::new();
        for (target, is_baseline) in targets {
            if inks.iter().any(|(other, _)| *other == target) {
                continue;
            }
            let place = inks.iter().filter(|(_, ink)| ink.is_baseline == is_baseline).count();
            let stroke = if is_baseline { GREY } else { LINES[place % LINES.len()] };
            inks.push((target, Ink { stroke, mark: MARKS[place % MARKS.len()], is_baseline }));
        }
        Inks(inks)
    }

    /// Grey for a target that was not named.
    pub fn ink(&self, target: &str) -> Ink {
        let found = self.0.iter().find(|(name, _)| *name == target);
        found.map_or(Ink { stroke: GREY, mark: Mark::Circle, is_baseline: true }, |(_, ink)| *ink)
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

/// As attributes and style sheets write it: `#1B5E9E`.
pub fn hex(colour: u32) -> String {
    format!("#{colour:06X}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contrast as WCAG 2.2 defines it.
    fn contrast(one: u32, other: u32) -> f64 {
        let linear = |part: u32| {
            let share = f64::from(part & 0xFF) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        let luminance =
            |colour: u32| 0.2126 * linear(colour >> 16) + 0.7152 * linear(colour >> 8) + 0.0722 * linear(colour);
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

    #[test]
    fn targets_keep_their_inks_and_baselines_are_grey() {
        let inks = Inks::of([("a", false), ("null", true), ("b", false), ("a", false)].into_iter());
        assert_eq!((inks.ink("a").stroke, inks.ink("b").stroke), (LINES[0], LINES[1]));
        assert_ne!(inks.ink("a").mark, inks.ink("b").mark);
        assert_eq!((inks.ink("null").stroke, inks.ink("null").is_baseline), (GREY, true));
    }
}

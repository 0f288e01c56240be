//! The colours of pictures where a reader's system chooses all colours (`forced-colors`): each stroke of the palette by
//! the system colour that means the same.

use crate::chart::palette::{GREY, GRID, LINES, PAPER, TEXT, hex};

/// As what is filled with a stroke is shown, and as what is drawn with it. A band is filled with the grid's colour: its
/// dashed ends alone tell where it is, since the system has no light grey. Marks and lines are told apart by their
/// shapes and dashes.
const SYSTEM: [(&str, &str); 5] = [
    ("Canvas", "Canvas"),
    ("CanvasText", "CanvasText"),
    ("CanvasText", "GrayText"),
    ("Canvas", "GrayText"),
    ("LinkText", "LinkText"),
];

/// Rules that must follow those of [`palette::rules`](crate::chart::palette::rules), which are as specific.
pub fn rules() -> String {
    let strokes = [PAPER, TEXT, GREY, GRID].into_iter().chain(LINES).enumerate();
    let each = strokes.map(|(place, stroke)| {
        let (fill, line) = SYSTEM[place.min(SYSTEM.len() - 1)];
        let light = hex(stroke.light);
        // The system has no fainter colour for a grid.
        let dots = if stroke == GRID { "; stroke-dasharray: 1 4" } else { "" };
        format!("[fill=\"{light}\"] {{ fill: {fill} }} [stroke=\"{light}\"] {{ stroke: {line}{dots} }}\n")
    });
    // Browsers leave pictures alone, and give text in them the system's colours: without this, on whichever ground.
    let all = "svg, svg text { forced-color-adjust: none }\n";
    format!("@media (forced-colors: active) {{\n{all}{}}}\n", each.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::palette;

    #[test]
    fn each_colour_of_the_palette_has_a_system_colour() {
        let (palette, forced) = (palette::rules(), rules());
        let names: Vec<&str> = palette.split("[fill=\"").skip(1).filter_map(|rest| rest.get(..7)).collect();
        assert_eq!(names.len(), 4 + LINES.len(), "{palette}");
        for name in names {
            assert!(forced.contains(&format!("[fill=\"{name}\"]")), "{name}: {forced}");
            assert!(forced.contains(&format!("[stroke=\"{name}\"]")), "{name}: {forced}");
        }
        assert!(!forced.contains(": #"), "{forced}");
    }
}

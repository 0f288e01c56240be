//! Colour on a terminal: the best rows green, failed ones red, warnings yellow. The words say the same without it. Text
//! is painted after it was made plain, so that no label brings a colour of its own.

use std::env;
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use clap::ColorChoice;

const BEST: Style = AnsiColor::Green.on_default();
const FAILED: Style = AnsiColor::Red.on_default();
const WARNING: Style = AnsiColor::Yellow.on_default();

static CHOICE: OnceLock<ColorChoice> = OnceLock::new();

/// What `--color` says. The first call counts.
pub fn choose(choice: ColorChoice) {
    CHOICE.get_or_init(|| choice);
}

/// Whether text for a stream is painted. `NO_COLOR` with any text turns colour off (no-color.org), and so does a
/// terminal that draws none; `--color` decides before both.
pub fn is_wanted(is_terminal: bool) -> bool {
    match CHOICE.get() {
        Some(ColorChoice::Always) => true,
        Some(ColorChoice::Never) => false,
        Some(ColorChoice::Auto) | None => {
            is_terminal && !is_dumb() && env::var_os("NO_COLOR").is_none_or(|text| text.is_empty())
        }
    }
}

/// A terminal that can move no cursor.
pub fn is_dumb() -> bool {
    env::var_os("TERM").is_some_and(|kind| kind == "dumb")
}

/// What is printed of a run, with its rows and warnings painted.
pub fn painted(text: &str) -> String {
    let mut is_ranked = false;
    let lines = text.split_inclusive('\n').map(|line| {
        let (words, end) = line.split_at(line.trim_end_matches('\n').len());
        is_ranked = words.starts_with(RANKED) || is_ranked && words.starts_with(' ');
        format!("{}{end}", line_painted(words, is_ranked))
    });
    lines.collect()
}

/// How the headings of a table with ranks begin.
const RANKED: &str = " rank  target";

fn line_painted(line: &str, is_ranked: bool) -> String {
    let paint = |style: Style, words: &str| format!("{style}{words}{style:#}");
    if let Some((kind, rest)) = line.strip_prefix("warning (").and_then(|rest| rest.split_once("):")) {
        return format!("{}{rest}", paint(WARNING, &format!("warning ({kind}):")));
    }
    let rank = line.split_whitespace().next().unwrap_or_default();
    match () {
        () if line.starts_with(' ') && line.contains("  FAILED: ") => paint(FAILED, line),
        () if is_ranked && (rank == "1" || rank.starts_with("1-")) => paint(BEST, line),
        () => line.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fans, 9 profiles\n rank  target  seconds\n 1     redis     0.89\n 2     lmdb      1.0\n       \
                        bad       FAILED: 3 keys\nwarning (noise): much\n 1     redis is no row here\n";

    #[test]
    fn the_best_the_failed_and_warnings_are_painted_and_no_word_changes() {
        let text = painted(TEXT);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "\u{1b}[32m 1     redis     0.89\u{1b}[0m");
        assert_eq!(lines[4], "\u{1b}[31m       bad       FAILED: 3 keys\u{1b}[0m");
        assert_eq!(lines[5], "\u{1b}[33mwarning (noise):\u{1b}[0m much");
        for place in [0, 1, 3, 6] {
            assert!(!lines[place].contains('\u{1b}'), "{}", lines[place]);
        }
        let bare = ["\u{1b}[32m", "\u{1b}[31m", "\u{1b}[33m", "\u{1b}[0m"]
            .iter()
            .fold(text, |text, code| text.replace(code, ""));
        assert_eq!(bare, TEXT);
    }
}

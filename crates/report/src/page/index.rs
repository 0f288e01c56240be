//! The index of a site of pages: a row a page, the newest first, and filters by job, store and machine. Without scripts
//! it is a table.

use maud::{Markup, html};

use super::badges::date;
use super::facts::PageFacts;
use super::mask::Mask;
use super::style;
use crate::chart::palette::{LINES, hex};
use kvfair_core::plain;
use kvfair_core::trial::METHOD;
use kvfair_core::units;

/// A page, and where it lies from the index.
pub struct IndexEntry {
    /// The name of its file.
    pub file: String,
    pub facts: PageFacts,
}

const SCRIPT: &str = include_str!("index.js");
const RULES: &str = "a { color: var(--link) }\nlabel { display: inline-block; max-width: 100%; margin-right: 1rem }\nselect { font: inherit; max-width: 100% }\nsvg.dots { display: block; border-left: 1px solid var(--line); stroke-width: 6; stroke-linecap: round }\n";

/// What a cell may take, in bytes of HTML. 300 rows of these, and all else, are less than 300 kB.
const SENTENCE: usize = 160;
const STORES: usize = 130;
const MACHINE: usize = 90;
const WORD: usize = 30;
/// A thumbnail has no more dots.
const DOTS: usize = 20;

// Lengths of a thumbnail, in pixels, and where its axis ends.
const WIDTH: f64 = 200.0;
const HEIGHT: f64 = 16.0;
const EDGE: f64 = 5.0;
const RATIO_MAX: f64 = 1000.0;

/// The document. The same entries give the same bytes, in whichever order they come.
pub fn index(entries: &[IndexEntry]) -> String {
    let mut entries: Vec<&IndexEntry> = entries.iter().collect();
    entries.sort_by(|one, other| other.facts.began.cmp(&one.facts.began).then_with(|| one.file.cmp(&other.file)));
    let title = format!("Results of {}", units::counted(entries.len() as u64, "run"));
    let body = html! {
        h1 { (title) }
        p.grey {
            "Measured by kvfair. Each page has its picture, tables, versions and machine. Dots: each store's time from 1x "
            "of the shortest, left, to 1,000x, right, in equal ratios; embedded stores above, servers below."
        }
        div.scroll {
            table {
                thead {
                    tr {
                        @for heading in ["result", "job", "stores", "machine", "date"] {
                            th.left scope="col" { (heading) }
                        }
                    }
                }
                tbody {
                    @for entry in entries {
                        @let facts = &entry.facts;
                        tr.row {
                            td.reason {
                                a href=(address(&entry.file)) { (cut(&facts.sentence, SENTENCE)) }
                                (thumbnail(&facts.ratios))
                            }
                            td.left { (cut(&facts.job, WORD)) }
                            td.left { (cut(&facts.stores.join(", "), STORES)) }
                            td.left { (cut(&facts.machine, MACHINE)) }
                            td.whole {
                                (cut(&date(&facts.began), WORD))
                                // Numbers of different methods are not comparable.
                                @if facts.method != METHOD { ", method " (facts.method) }
                            }
                        }
                    }
                }
            }
        }
    };
    style::document_with(&format!("kvfair: {title}"), &Mask::default().applied(&body.into_string()), SCRIPT, RULES)
}

/// All runs have the same axis, so that jobs are compared by eye.
fn thumbnail(ratios: &[(bool, f64)]) -> Markup {
    let x = |ratio: f64| EDGE + (libm::log(ratio) / libm::log(RATIO_MAX)).clamp(0.0, 1.0) * (WIDTH - 2.0 * EDGE);
    let dots = |is_server: bool, y: u32| {
        let of = ratios.iter().take(DOTS).filter(|(server, _)| *server == is_server);
        of.map(|(_, ratio)| format!("M{:.0} {y}h0", x(*ratio))).collect::<String>()
    };
    html! {
        @if ratios.len() > 1 {
            svg.dots aria-hidden="true" width=(WIDTH) height=(HEIGHT) {
                @for (place, dots) in [dots(false, 4), dots(true, 12)].iter().enumerate() {
                    @if !dots.is_empty() { path d=(dots) stroke=(hex(LINES[place].light)) {} }
                }
            }
        }
    }
}

/// The relative address of a file: all bytes but those that every address may hold, by their numbers.
fn address(file: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let each =
        file.bytes().map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    each.collect()
}

/// The text, or its beginning with an ellipsis, in so many bytes of HTML at the most.
fn cut(text: &str, bytes: usize) -> String {
    const ELLIPSIS: &str = "…";
    let width = |letter: char| match letter {
        '&' => "&amp;".len(),
        '<' | '>' => "&lt;".len(),
        '"' => "&quot;".len(),
        // As the mask writes it, in one or two units.
        letter if plain::is_harmful(letter) => 6 * letter.len_utf16(),
        letter => letter.len_utf8(),
    };
    let (mut taken, mut end) = (0, 0);
    for (at, letter) in text.char_indices() {
        taken += width(letter);
        if taken + ELLIPSIS.len() <= bytes {
            end = at + letter.len_utf8();
        }
    }
    if taken <= bytes { text.to_string() } else { format!("{}{ELLIPSIS}", text[..end].trim_end()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(file: &str, began: &str, sentence: &str) -> IndexEntry {
        let facts = PageFacts {
            sentence: sentence.to_string(),
            job: "fans".to_string(),
            stores: vec!["lmdb".to_string(), "redis".to_string()],
            machine: "x86, 2 processors".to_string(),
            began: began.to_string(),
            method: METHOD,
            ratios: vec![(false, 1.0), (true, 9.0)],
            has_other_script: false,
        };
        IndexEntry { file: file.to_string(), facts }
    }

    #[test]
    fn the_newest_run_comes_first_whatever_the_order() {
        let all = || [entry("b.html", "20261122T032606Z", "one"), entry("a.html", "20261123T032606Z", "two")];
        let [one, other] = all();
        let page = index(&[other, one]);
        assert_eq!(page, index(&all()));
        let places = ["href=\"a.html\"", "href=\"b.html\""].map(|link| page.find(link).expect("a link"));
        assert!(places[0] < places[1] && page.contains("2026-11-23 03:26 UTC"), "{page}");
        assert!(page.contains("<h1>Results of 2 runs</h1>") && page.contains("lmdb, redis"), "{page}");
        assert!(page.contains("<path d=\"M5 4h0\"") && page.contains("<path d=\"M65 12h0\""), "{page}");
        assert!(!page.contains(", method "), "{page}");
        let mut other = entry("c.html", "20261121T032606Z", "three");
        other.facts.method = METHOD + 1;
        assert!(index(&[other]).contains(&format!("03:26 UTC, method {}</td>", METHOD + 1)));
    }

    #[test]
    fn nothing_is_loaded_and_no_name_is_markup() {
        let hostile = "</td><script>alert(1)</script>\u{202e}";
        let page = index(&[entry("java script:<x>.html", "yesterday\"><b>", hostile)]);
        assert!(page.contains("href=\"java%20script%3A%3Cx%3E.html\""), "{page}");
        assert!(page.contains("&lt;script&gt;alert(1)") && page.matches("<script>").count() == 1, "{page}");
        assert!(page.contains(&format!("script-src 'sha256-{}'", style::digest(SCRIPT))) && !page.contains('\u{202e}'));
        for word in ["url(", "@import", "http:", "https:", "fetch", "import(", "</"] {
            assert!(!SCRIPT.contains(word) && !RULES.contains(word), "{word}");
        }
    }

    /// Whatever text they hold.
    #[test]
    fn three_hundred_rows_take_300_kilobytes_at_the_most() {
        for letter in ["a", "<", "\"", "\u{202e}", "ä ", "\u{e0001}"] {
            let long = letter.repeat(2_000);
            let entries = (0..300).map(|number| {
                let mut entry = entry(&format!("{number:060}.html"), &long, &long);
                (entry.facts.job, entry.facts.machine) = (long.clone(), long.clone());
                entry.facts.stores = vec![long.clone()];
                entry.facts.ratios = vec![(true, 1e9); 99];
                entry
            });
            let page = index(&entries.collect::<Vec<_>>());
            assert!(page.len() <= 300_000, "{letter:?}: {} bytes", page.len());
        }
    }

    #[test]
    fn text_is_cut_between_letters() {
        assert_eq!([cut("abc", 3), cut("abcdef", 5), cut("äöü", 5), cut("", 3)], ["abc", "ab…", "ä…", ""]);
        assert_eq!(cut("<<<<", 12), "<<…", "eight bytes of two, and three of the ellipsis");
    }
}

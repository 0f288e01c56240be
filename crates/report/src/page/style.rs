//! How a page looks, and its own script: it sorts, filters, unpacks long tables, and lets arrow keys walk through
//! charts. Both stand in the page; nothing else is loaded, and a policy with the script's hash makes the browser refuse
//! any other script.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::forced;
use crate::chart::palette;

/// Text stands out from paper at least 4.5 to 1, light and dark; GREY of the palette is on paper only.
const SHEET: &str = include_str!("page.css");

/// Without it headings are text, all measures are shown, and long tables name the command that prints them.
pub const SCRIPT: &str = concat!(include_str!("page.js"), include_str!("charts.js"));

/// The whole document around its title, which is escaped here, and its body, which is HTML.
pub fn document(title: &str, body: &str) -> String {
    document_with(title, body, SCRIPT, "")
}

/// What the policy of each document is, around the digest of its script.
pub const POLICY: [&str; 2] =
    ["default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-", "'; base-uri 'none'; form-action 'none'"];

/// The digest of a script in a policy.
pub fn digest(script: &str) -> String {
    STANDARD.encode(Sha256::digest(script))
}

/// The same with another script, and with rules behind those of all pages.
pub fn document_with(title: &str, body: &str, script: &str, rules: &str) -> String {
    let policy = format!("{}{}{}", POLICY[0], digest(script), POLICY[1]);
    let page: Markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style {
                    (PreEscaped(SHEET)) (PreEscaped(palette::rules())) (PreEscaped(forced::rules()))
                    (PreEscaped(rules))
                }
            }
            body {
                main { (PreEscaped(body)) }
                script { (PreEscaped(script)) }
            }
        }
    };
    format!("{}\n", page.into_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_the_one_that_the_policy_allows() {
        let page = document("<x>", "<p>body</p>");
        let (_, rest) = page.split_once("<script>").expect("a script");
        let (script, _) = rest.split_once("</script>").expect("its end");
        assert!(page.contains(&format!("script-src 'sha256-{}'", STANDARD.encode(Sha256::digest(script)))), "{page}");
        assert!(page.contains("<title>&lt;x&gt;</title>") && page.contains("default-src 'none'"));
    }

    #[test]
    fn nothing_is_loaded() {
        for text in [SHEET, SCRIPT] {
            for word in ["url(", "@import", "http", "fetch", "import(", "</"] {
                assert!(!text.contains(word), "{word}");
            }
        }
        assert!(SHEET.len() + SCRIPT.len() < 28_000, "{}", SHEET.len() + SCRIPT.len());
    }
}

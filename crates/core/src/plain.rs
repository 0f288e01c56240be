//! Text that is safe to show: what steers a terminal, or turns the order of letters round, is escaped.

use std::borrow::Cow;

/// Whether a letter does something other than be seen: control characters (escape sequences begin with one) and the
/// marks that change the direction of text or are not seen at all. Joiners stay: names in several scripts need them.
pub fn is_harmful(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// Text of several lines as it may reach a terminal. Line ends and tabs stay.
///
/// Escapes are those of JSON: in a string of a JSON document they mean the same letters as before.
pub fn text(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| is_harmful(letter) && letter != '\n' && letter != '\t')
}

/// The same for what must be one line, such as a name.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_harmful)
}

/// Whether a text has an address in it. An address is copied whole, so it is not broken.
pub fn has_address(text: &str) -> bool {
    text.contains("://")
}

fn escaped(text: &str, is_harmful: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_harmful) {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_harmful(letter) {
            letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| plain.push_str(&format!("\\u{unit:04x}")));
        } else {
            plain.push(letter);
        }
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_escaped_and_all_else_stays() {
        let good = "Ünïcödé 日本 עברית 👩\u{200d}👩\tx\n";
        assert_eq!(text(good), good);
        assert_eq!(line(good), good.replace('\t', "\\u0009").replace('\n', "\\u000a"));
        let bad = "a\u{1b}[2Jb\u{9b}1mc\u{202e}d\u{2066}e\r\u{7f}\u{e0041}";
        assert_eq!(text(bad), r"a\u001b[2Jb\u009b1mc\u202ed\u2066e\u000d\u007f\udb40\udc41");
        let document = serde_json::to_string(bad).expect("a string");
        let shown = text(&document);
        assert!(!shown.contains(is_harmful), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).expect("a string"), bad);
    }
}

//! Texts of Rust sources: the values of their string literals.

/// Each literal of a source: where it begins, and its value. Comments and single characters are passed over.
pub fn literals(code: &str) -> Vec<(usize, String)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(letter) = code[at..].chars().next() {
        let rest = &code[at..];
        at += match letter {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '\'' => character(rest),
            'r' if rest.starts_with("r\"") || rest.starts_with("r#\"") => {
                let (opening, closing) = if rest.starts_with("r\"") { (2, "\"") } else { (3, "\"#") };
                let length = rest[opening..].find(closing).unwrap_or_else(|| panic!("it ends: {rest}"));
                found.push((at, rest[opening..opening + length].to_string()));
                opening + length + closing.len()
            }
            '"' => {
                let length = text(rest);
                found.push((at, value(&rest[1..length - 1])));
                length
            }
            letter => letter.len_utf8(),
        };
    }
    found
}

/// The length of a character; a lifetime is its quote alone.
fn character(rest: &str) -> usize {
    let mut letters = rest[1..].chars();
    match letters.next() {
        // What is escaped may be a quote.
        Some('\\') => rest[3..].find('\'').map_or(1, |length| length + 4),
        Some(letter) if letters.next() == Some('\'') => letter.len_utf8() + 2,
        _ => 1,
    }
}

/// The length of a literal, with its quotes.
fn text(rest: &str) -> usize {
    let (bytes, mut at) = (rest.as_bytes(), 1);
    while bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// What an escaped text stands for.
fn value(escaped: &str) -> String {
    let (mut value, mut rest) = (String::new(), escaped);
    while let Some((before, after)) = rest.split_once('\\') {
        value.push_str(before);
        let mut letters = after.chars();
        rest = match letters.next() {
            Some('\n') => after.trim_start(),
            Some('n') => {
                value.push('\n');
                letters.as_str()
            }
            other => {
                value.extend(other);
                letters.as_str()
            }
        };
    }
    value + rest
}

/// A lexer that is wrong in one file would pass over its hints.
#[test]
fn literals_are_found_between_comments_characters_and_lifetimes() {
    let code = "fn a<'a>(it: &'a str) { // \"no\"\n ['\"', '\\'', 'é'];\n(\"one\\n\\\"two\\\" \\\n   three\", r#\"a \"raw\" one\"#) }";
    let values: Vec<String> = literals(code).into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, ["one\n\"two\" three", "a \"raw\" one"]);
}

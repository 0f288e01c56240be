//! A command as it was typed: its options changed.

use kvfair_core::logins::HIDDEN;

/// Words as a command has them.
pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// What a word has of that option: nothing of another one, an empty value where it is the next word.
fn part<'a>(word: &'a str, option: &str) -> Option<&'a str> {
    let rest = word.strip_prefix(option)?;
    match rest.strip_prefix('=') {
        Some(value) => Some(value),
        // A short option has its value right behind it.
        None => (rest.is_empty() || !option.starts_with("--")).then_some(rest),
    }
}

/// What was typed behind that option.
pub fn value<'a>(typed: &'a [String], option: &str) -> Option<&'a str> {
    let of = |(place, word): (usize, &'a String)| match part(word, option)? {
        "" if word == option => typed.get(place + 1).map(String::as_str),
        value => Some(value),
    };
    typed.iter().enumerate().find_map(of)
}

/// Without that option and its value. What stands behind `--` is no option.
pub fn without(typed: Vec<String>, option: &str) -> Vec<String> {
    let end = typed.iter().position(|word| word == "--").unwrap_or(typed.len());
    let (options, rest) = typed.split_at(end);
    let (mut kept, mut options) = (Vec::new(), options.iter());
    while let Some(word) = options.next() {
        match part(word, option) {
            Some(_) if word == option => _ = options.next(),
            Some(_) => {}
            None => kept.push(word.clone()),
        }
    }
    kept.extend_from_slice(rest);
    kept
}

/// With that value of the option, in place of the one that was typed.
pub fn with(typed: Vec<String>, option: &str, value: &str) -> Vec<String> {
    let mut typed = without(typed, option);
    let place = typed.iter().position(|word| word == "--").unwrap_or(typed.len());
    typed.splice(place..place, words(&[option, value]));
    typed
}

/// Options that name what must not exist yet: what was typed has made it.
const MADE: [&str; 5] = ["--output", "-o", "--keep", "--html", "--svg"];

/// As it is to be typed another time: without what it has made, and without logins.
pub fn again(typed: &[String]) -> Vec<String> {
    let typed = typed.iter().map(|word| word.replace(&format!("://{HIDDEN}@"), "://")).collect();
    MADE.iter().fold(typed, |typed, option| without(typed, option))
}

/// The store of a target as it is typed: `cached:ram?memory=1MB`, `--base=redis+unix`, `lmdb:/dir`.
pub fn store_of(word: &str) -> &str {
    let target = ["--base=", "--head=", "cached:"].iter().fold(word, |word, before| word.trim_start_matches(before));
    target.split([':', '?', '+']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_replaced_where_it_was_typed() {
        let typed = words(&["run", "mixed", "--rate", "2k", "redis", "--blocks=1", "-o", "x"]);
        let changed = without(with(typed, "--blocks", "6"), "-o");
        assert_eq!(changed, words(&["run", "mixed", "--rate", "2k", "redis", "--blocks", "6"]));
        let short = without(words(&["run", "-ox", "mixed", "-o=y", "--only", "get", "--", "-o"]), "-o");
        assert_eq!(short, words(&["run", "mixed", "--only", "get", "--", "-o"]));
        let behind = with(words(&["run", "fans", "--", "redis"]), "--timeout", "30m");
        assert_eq!(behind, words(&["run", "fans", "--timeout", "30m", "--", "redis"]));
    }
}

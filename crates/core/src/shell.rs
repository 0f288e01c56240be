//! Commands as a shell takes them.

use super::plain;

/// One word of a command. What a shell would read in another way stands in single quotes.
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:=,%+@".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The same for a message. Control characters are escaped, since names in results may come from another user: a shell
/// does not take such a word for the name.
pub fn shown(word: &str) -> String {
    quoted(&plain::line(word))
}

/// A command of kvfair for a message.
pub fn command<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    words.into_iter().fold("kvfair".to_string(), |line, word| line + " " + &shown(word.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_shell_are_quoted() {
        assert_eq!(quoted("redis+unix"), "redis+unix");
        assert_eq!(quoted("a\nb"), "'a\nb'");
        let words = ["run", "redis?name=it's", "", "a b", "a\nb"];
        assert_eq!(command(words), "kvfair run 'redis?name=it'\\''s' '' 'a b' 'a\\u000ab'");
    }
}

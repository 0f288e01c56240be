//! Logins in texts that people typed and programs said: found by their looks, well formed or not, and taken out before
//! a text is shown or kept. A word too many is hidden rather than one too few.

/// What stands in the place of what is hidden.
pub const HIDDEN: &str = "***";

/// Variables, options and settings with such a word in their names hold secrets.
const TELLTALE: [&str; 6] = ["PASS", "PWD", "AUTH", "SECRET", "TOKEN", "CREDENTIAL"];

/// A text of many words, as a command line: without these secrets, without logins in URLs, and without what follows
/// options and variables that are named like secrets.
pub fn hidden(text: &str, secrets: &[String]) -> String {
    let text = without(text.to_string(), secrets);
    let (mut shown, mut rest, mut is_secret) = (String::new(), text.as_str(), false);
    while !rest.is_empty() {
        let blank = rest.len() - rest.trim_start().len();
        shown.push_str(&rest[..blank]);
        rest = &rest[blank..];
        let (word, after) = rest.split_at(end_of_word(rest));
        // What a shell or kvfair puts in its place is no secret.
        let is_filled_in = word.trim_start_matches(['"', '\'']).starts_with(['$', '{']);
        match is_secret && !word.is_empty() && !is_filled_in {
            true => shown.push_str(HIDDEN),
            false => shown.push_str(&hidden_word(word)),
        }
        is_secret = word == "-a" || word.starts_with("--") && !word.contains('=') && is_telltale(word);
        rest = after;
    }
    shown
}

/// A text without these secrets.
pub fn without(text: String, secrets: &[String]) -> String {
    secrets.iter().fold(text, |text, secret| text.replace(secret.as_str(), HIDDEN))
}

/// One word, as a target is: whatever stands in it belongs together.
pub fn hidden_word(word: &str) -> String {
    let inner = word.strip_prefix(['"', '\'']).and_then(|inner| inner.strip_suffix(['"', '\'']));
    let are_words =
        |inner: &&str| inner.split_once(char::is_whitespace).is_some_and(|(first, _)| !first.contains("://"));
    if let Some(inner) = inner.filter(are_words) {
        let quote = &word[..1];
        return format!("{quote}{}{quote}", hidden(inner, &[]));
    }
    if let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_name(name) && is_telltale(name)) {
        return if value.starts_with(['$', '{']) { word.to_string() } else { format!("{name}={HIDDEN}") };
    }
    let lower = word.to_ascii_lowercase();
    if !word.contains('@') && lower.contains("%40") && (word.contains(':') || lower.contains("%3a")) {
        return HIDDEN.to_string();
    }
    if word.contains("://") { without_authorities(word) } else { without_prefix(word) }
}

/// A word that may be a target: what is left of a login without slashes, or without a host, is hidden as well.
pub fn hidden_target(text: &str) -> String {
    let hidden = hidden_word(text);
    match (text.rsplit_once('@'), text.split_once(':')) {
        _ if hidden != text => hidden,
        (Some((_, host)), _) => format!("{HIDDEN}@{host}"),
        _ if is_ipv6(text) => hidden,
        (None, Some((name, rest))) if !rest.starts_with("//") && rest.contains(':') => format!("{name}:{HIDDEN}"),
        _ => hidden,
    }
}

/// An address in brackets, perhaps with a port and a database: its colons stand before no password.
fn is_ipv6(text: &str) -> bool {
    let Some((inside, behind)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) else { return false };
    let end = behind.find('/').unwrap_or(behind.len());
    let port = behind[..end].strip_prefix(':');
    inside.chars().all(|letter| letter.is_ascii_hexdigit() || letter == ':' || letter == '.')
        && port.map_or(end == 0, |port| port.parse::<u16>().is_ok())
}

/// Of each URL in a word all up to its last @, since an @ that should have been escaped may stand in a password; and a
/// port that is none, since it may be a password whose host was forgotten.
fn without_authorities(word: &str) -> String {
    let mut parts = word.split("://");
    let scheme = parts.next().unwrap_or_default();
    let mut shown = scheme.rsplit_once('@').map_or(scheme.to_string(), |(_, scheme)| format!("{HIDDEN}@{scheme}"));
    for part in parts {
        shown.push_str("://");
        match part.rsplit_once('@') {
            Some((_, host)) => shown.push_str(&format!("{HIDDEN}@{}", without_values(host))),
            None => {
                let end = part.find(['/', '?', '#']).unwrap_or(part.len());
                match may_be_a_password(&part[..end]) {
                    true => shown.push_str(HIDDEN),
                    false => shown.push_str(&without_values(part)),
                }
            }
        }
    }
    shown
}

/// Whether what stands behind the host of an authority without an @ is no port.
fn may_be_a_password(authority: &str) -> bool {
    let behind_ipv6 = authority.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(_, behind)| behind);
    let Some((_, port)) = behind_ipv6.unwrap_or(authority).split_once(':') else { return false };
    let port = port.trim_end_matches(|letter: char| !letter.is_alphanumeric() && letter != '}');
    !port.is_empty() && !port.starts_with(['$', '{']) && port.parse::<u16>().is_err()
}

/// `user:password@host` and the like without a scheme.
fn without_prefix(word: &str) -> String {
    match word.rsplit_once('@') {
        Some((before, host)) if before.contains(':') => {
            let option = before.find('=').filter(|at| before.find(':').is_none_or(|colon| *at < colon));
            format!("{}{HIDDEN}@{host}", &before[..option.map_or(0, |at| at + 1)])
        }
        _ => word.to_string(),
    }
}

/// `?password=...` in what follows a URL's host.
fn without_values(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_string() };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_telltale(name) => format!("{name}={HIDDEN}"),
        _ => pair.to_string(),
    });
    format!("{path}?{}", shown.collect::<Vec<_>>().join("&"))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
}

fn is_telltale(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    TELLTALE.iter().any(|word| name.contains(word))
}

/// Where the first word of a text ends, as a shell sees it: quotes hold blanks together.
fn end_of_word(text: &str) -> usize {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match quote {
            Some(open) if letter == open => quote = None,
            None if letter.is_whitespace() => return at,
            None if matches!(letter, '"' | '\'') && text[at + 1..].contains(letter) => quote = Some(letter),
            _ => {}
        }
    }
    text.len()
}

/// A password in every form in which it may stand somewhere: plain, and as it stands in URLs. Of two the longer one
/// comes first: it may begin with the other.
pub fn forms(password: &str) -> Vec<String> {
    let mut url = url::Url::parse("x://host").expect("it is one");
    let in_authority = url.set_password(Some(password)).ok().and_then(|()| Some(url.password()?.to_string()));
    let in_query = url::form_urlencoded::byte_serialize(password.as_bytes()).collect();
    let mut all: Vec<String> =
        [Some(password.to_string()), in_authority, Some(in_query)].into_iter().flatten().collect();
    all.retain(|form| !form.is_empty());
    all.sort_by_key(|form| std::cmp::Reverse(form.len()));
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn logins_are_hidden_and_all_else_is_left() {
        for (text, expected) in [
            ("redis-cli -u redis://me:pw@h:1/2 get x", "redis-cli -u redis://***@h:1/2 get x"),
            ("x --url=redis://:p@w@h:1", "x --url=redis://***@h:1"),
            ("x 'redis://me:p w@h' 2>&1", "x 'redis://***@h' 2>&1"),
            ("redis:me:pw@h", "***@h"),
            ("pw@redis://h", "***@redis://h"),
            ("x --to=me:pw@h", "x --to=***@h"),
            ("redis://me:pw", "redis://***"),
            ("redis%3A%2F%2Fme%3Apw%40h", "***"),
            ("redis://me:pw%40h", "***"),
            ("redis://h/2?password=pw&db=1", "redis://h/2?password=***&db=1"),
            ("redis-cli -a pw get x", "redis-cli -a *** get x"),
            ("redis-cli --pass 'p w' -n 1", "redis-cli --pass *** -n 1"),
            ("x --password=pw", "x --password=***"),
            ("REDISCLI_AUTH=pw redis-cli", "REDISCLI_AUTH=*** redis-cli"),
            (
                "sh -c \"redis-cli -a pw; X_TOKEN=t y redis://a:b@c\"",
                "sh -c \"redis-cli -a *** X_TOKEN=*** y redis://***@c\"",
            ),
            ("it's at redis://a:b@h, isn't it", "it's at redis://***@h, isn't it"),
        ] {
            assert_eq!(hidden(text, &[]), expected);
        }
        for text in [
            "mine.py -h {host} -p {port} {url} {dir}",
            "curl http://h:80/x http://[::1]:5/ http://h:$PORT/ http://h:{port}/",
            "redis-cli -a \"$PASSWORD\" -u {url}",
            "awk '{print $1}' f | scp x me@host:y",
            "rsync --password={dir}",
            "unix:///run/a b",
            "",
            " ' \" ",
        ] {
            assert_eq!(hidden(text, &[]), text);
        }
        assert_eq!(hidden("echo p%40w p@w", &forms("p@w")), "echo *** ***");
    }

    #[test]
    fn what_may_be_a_target_may_be_a_login_without_its_signs() {
        for (text, expected) in [
            ("pw@h", "***@h"),
            ("redis:me:pw", "redis:***"),
            ("redis:me:pw@h", "***@h"),
            ("redis://h:1/2?db=3", "redis://h:1/2?db=3"),
            ("lmdb:/data", "lmdb:/data"),
            ("redis+unix:///a:b", "redis+unix:///a:b"),
        ] {
            assert_eq!(hidden_target(text), expected);
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_searched(text in "[ -~é'\"@:=/?%\n]{0,60}") {
            hidden(&text, &[]);
        }

        #[test]
        fn no_password_of_a_url_is_left(password in "[a-z0-9@:/?#=&%.+-]{0,12}", quote in "['\"]?") {
            let shown = hidden(&format!("x {quote}redis://me:SECRET{password}SECRET@h:1/2{quote} y"), &[]);
            prop_assert!(!shown.contains("SECRET"), "{}", shown);
        }
    }
}

//! What is said where a server wants a login that it was not given, or another one: the URL that has it.

use super::Place;
use crate::model::op::Fault;

const NEEDED: &str = " needs a password: ";

/// Whether these are the words of a server that wants a password and was given none.
pub fn is_wanted(words: &str) -> bool {
    words.contains(NEEDED) || words.contains("NOAUTH")
}

/// "redis at host:6379 needs a password: redis://:PASSWORD@host:6379". A path of a Unix socket has no place for one.
pub fn needed(name: &str) -> String {
    told(name, ":PASSWORD")
}

/// The same of a store whose users have names, with the server's own words.
pub fn of_a_user(store: &str, place: &Place, words: &str) -> Fault {
    Fault::Refused(format!("{} ({words})", told(&format!("{store} at {place}"), "USER:PASSWORD")))
}

fn told(name: &str, login: &str) -> String {
    match name.split_once(" at ").filter(|(_, place)| !place.starts_with('/')) {
        Some((store, place)) => format!("{name}{NEEDED}{store}://{login}@{place}, or KVFAIR_PASSWORD"),
        None => format!("{name}{NEEDED}KVFAIR_PASSWORD"),
    }
}

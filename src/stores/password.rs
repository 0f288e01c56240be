//! What is said where a server wants a login that it was not given, or another one: the URL that has it.

use std::fs::File;
use std::io::{self, Read};

use super::Place;
use crate::model::op::Fault;
use crate::protocol::OF_A_USER;

/// 128 bits: too many to guess.
const RANDOM_BYTES: usize = 16;

const NEEDED: &str = " needs a password: ";

/// Whether these are the words of a server that wants a password and was given none.
pub fn is_wanted(words: &str) -> bool {
    words.contains(NEEDED) || words.contains("NOAUTH")
}

/// Random letters and digits, so that no server reads anything else into them: a password, or a number used once.
pub fn fresh() -> io::Result<String> {
    let mut bytes = [0; RANDOM_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex::encode(bytes))
}

/// "redis at host:6379 needs a password: redis://:PASSWORD@host:6379", with the server's own words. `login` is how one
/// stands in its URL; a path of a Unix socket has no place for one.
pub fn refused(name: &str, login: &str, words: &str) -> Fault {
    Fault::Refused(format!("{} ({words})", told(name, login)))
}

/// The same of a server of a store whose users have names.
pub fn of_a_user(store: &str, place: &Place, words: &str) -> Fault {
    refused(&format!("{store} at {place}"), OF_A_USER, words)
}

fn told(name: &str, login: &str) -> String {
    match name.split_once(" at ").filter(|(_, place)| !place.starts_with('/')) {
        Some((store, place)) => format!("{name}{NEEDED}{store}://{login}@{place}, or KVFAIR_PASSWORD"),
        None => format!("{name}{NEEDED}KVFAIR_PASSWORD"),
    }
}

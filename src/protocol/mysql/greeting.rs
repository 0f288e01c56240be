//! What is said before the first op. The server speaks first: its version, and a random text for the password's proof.
//!
//! The packets: <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase.html>.

use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::packets::{Payload, ServerError, push_bytes, read, sent, split_text};
use crate::model::op::{Fault, readable};
use crate::protocol::text::garbled;
use crate::protocol::{Credentials, Decoded, OF_A_USER};

/// What this client can do: a protocol of 4.1 or later, a database at connecting, transactions, a proof of 20 bytes or
/// more, its method by name.
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/group__group__cs__capabilities__flags.html>
const LONG_PASSWORD: u32 = 0x1;
const WITH_DATABASE: u32 = 0x8;
const PROTOCOL_41: u32 = 0x200;
const TRANSACTIONS: u32 = 0x2000;
const SECURE_CONNECTION: u32 = 0x8000;
const PLUGINS: u32 = 0x8_0000;
const NEEDED: u32 = WITH_DATABASE | PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION | PLUGINS;
/// MariaDB does not say that it can do the first one, and takes a client that does for one of MySQL's.
const OURS: u32 = LONG_PASSWORD | NEEDED;

/// The longest packet of the protocol.
const PACKET_MAX: u32 = 1 << 30;
/// utf8mb4_general_ci, which both products have.
const CHARACTERS: u8 = 45;

const NATIVE: &str = "mysql_native_password";
const CACHING: &str = "caching_sha2_password";

/// Numbers of errors: a password that is missing or wrong, and one that is missing at MariaDB's socket; no such
/// database.
/// <https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html>
const ACCESS_DENIED: [u16; 2] = [1045, 1698];
const NO_SUCH_DATABASE: u16 = 1049;

pub struct Greeting {
    pub login: Credentials,
    /// The connection is a Unix socket, on which a password may be sent as it is.
    pub is_private: bool,
    /// How its URLs begin.
    pub scheme: &'static str,
    plugin: Plugin,
    scramble: Vec<u8>,
    has_answered: bool,
}

/// How a password is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plugin {
    Native,
    Caching,
}

impl Plugin {
    fn of(name: &[u8]) -> Option<Plugin> {
        match name {
            name if name == NATIVE.as_bytes() => Some(Plugin::Native),
            name if name == CACHING.as_bytes() => Some(Plugin::Caching),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Plugin::Native => NATIVE,
            Plugin::Caching => CACHING,
        }
    }

    /// The proof of a password. An empty one has none.
    fn proof(self, password: &str, scramble: &[u8]) -> Vec<u8> {
        match self {
            _ if password.is_empty() => Vec::new(),
            Plugin::Native => {
                let once = Sha1::digest(password);
                let mixed = Sha1::new().chain_update(scramble).chain_update(Sha1::digest(once)).finalize();
                exclusive_or(&once, &mixed)
            }
            Plugin::Caching => {
                let once = Sha256::digest(password);
                let mixed = Sha256::new().chain_update(Sha256::digest(once)).chain_update(scramble).finalize();
                exclusive_or(&once, &mixed)
            }
        }
    }
}

fn exclusive_or(one: &[u8], other: &[u8]) -> Vec<u8> {
    one.iter().zip(other).map(|(one, other)| one ^ other).collect()
}

impl Greeting {
    pub fn new(login: Credentials, is_private: bool, scheme: &'static str) -> Greeting {
        Greeting { login, is_private, scheme, plugin: Plugin::Native, scramble: Vec::new(), has_answered: false }
    }

    /// Takes a packet of the server, and appends what it asks for. `Greeted` once we are let in.
    pub(super) fn hear(&mut self, number: u8, payload: &[u8], out: &mut Vec<u8>) -> Result<Decoded<'static>, Fault> {
        if !self.has_answered {
            return self.answer_handshake(number, payload, out);
        }
        match read(payload)? {
            Payload::Done(_) => Ok(Decoded::Greeted),
            Payload::Error(error) => Ok(self.refused(error)),
            _ => match payload.split_first() {
                Some((0xfe, rest)) => self.switch(number, rest, out),
                Some((0x01, b"\x03")) if self.plugin == Plugin::Caching => Ok(Decoded::Again),
                Some((0x01, b"\x04")) if self.plugin == Plugin::Caching => Ok(self.say_password(number, out)),
                _ => Err(garbled("a packet about the login", payload)),
            },
        }
    }

    fn answer_handshake(&mut self, number: u8, payload: &[u8], out: &mut Vec<u8>) -> Result<Decoded<'static>, Fault> {
        if let Payload::Error(error) = read(payload)? {
            return Ok(self.refused(error));
        }
        let (capabilities, scramble, plugin) =
            handshake(payload).ok_or_else(|| garbled("a handshake of version 10", payload))?;
        if capabilities & NEEDED != NEEDED {
            let what = "a server that is older than version 5.5 (its handshake lacks what kvfair needs)";
            return Ok(Decoded::Refused(what.to_string()));
        }
        // Another method is asked for once the server knows the user.
        self.plugin = Plugin::of(plugin).unwrap_or(Plugin::Native);
        self.scramble = scramble;
        self.has_answered = true;
        let proof = self.proof();
        let Credentials { user, database, .. } = &self.login;
        sent(number.wrapping_add(1), out, |out| {
            out.extend_from_slice(&OURS.to_le_bytes());
            out.extend_from_slice(&PACKET_MAX.to_le_bytes());
            out.push(CHARACTERS);
            out.extend_from_slice(&[0; 23]);
            push_text(user, out);
            push_bytes(&proof, out);
            push_text(database, out);
            push_text(self.plugin.name(), out);
        });
        Ok(Decoded::Again)
    }

    fn proof(&self) -> Vec<u8> {
        self.plugin.proof(self.login.password.as_deref().unwrap_or_default(), &self.scramble)
    }

    /// The user's password is proven in another way.
    fn switch(&mut self, number: u8, rest: &[u8], out: &mut Vec<u8>) -> Result<Decoded<'static>, Fault> {
        let (name, scramble) = split_text(rest).ok_or_else(|| garbled("the name of a way to log in", rest))?;
        let Some(plugin) = Plugin::of(name) else {
            let name = readable(name, 40);
            let what = format!("the server asks for {name}, and kvfair speaks {NATIVE} and {CACHING}");
            return Ok(Decoded::Refused(what));
        };
        (self.plugin, self.scramble) = (plugin, scramble.strip_suffix(b"\0").unwrap_or(scramble).to_vec());
        let proof = self.proof();
        sent(number.wrapping_add(1), out, |out| out.extend_from_slice(&proof));
        Ok(Decoded::Again)
    }

    /// The server has no digest of this password yet, and wants it as it is.
    fn say_password(&self, number: u8, out: &mut Vec<u8>) -> Decoded<'static> {
        if !self.is_private {
            let what = "the server asks for the password in clear text, which kvfair sends over a Unix socket only: log \
                        in there once, or give the user mysql_native_password";
            return Decoded::Refused(what.to_string());
        }
        let password = self.login.password.as_deref().unwrap_or_default();
        sent(number.wrapping_add(1), out, |out| push_text(password, out));
        Decoded::Again
    }

    fn refused(&self, error: ServerError) -> Decoded<'static> {
        let ServerError { code, words } = error;
        match code {
            code if ACCESS_DENIED.contains(&code) => Decoded::PasswordNeeded { login: OF_A_USER, words },
            NO_SUCH_DATABASE => {
                Decoded::Refused(format!("{words}: name one that is there ({}://HOST/DATABASE)", self.scheme))
            }
            _ => Decoded::Refused(words),
        }
    }
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// What the server can do, its random text, and how it would have the password proven.
fn handshake(payload: &[u8]) -> Option<(u32, Vec<u8>, &[u8])> {
    let rest = payload.strip_prefix(&[10])?;
    let (_version, rest) = split_text(rest)?;
    let (_thread, rest) = rest.split_at_checked(4)?;
    let (first, rest) = rest.split_at_checked(8)?;
    let (&[_, low, high, _characters, _, _, upper, top, length], rest) = rest.split_first_chunk::<9>()?;
    let (_reserved, rest) = rest.split_at_checked(10)?;
    // It ends with a zero, which counts.
    let (second, rest) = rest.split_at_checked(usize::from(length).saturating_sub(8).max(13))?;
    let second = second.strip_suffix(b"\0").unwrap_or(second);
    let plugin = rest.strip_suffix(b"\0").unwrap_or(rest);
    Some((u32::from_le_bytes([low, high, upper, top]), [first, second].concat(), plugin))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRAMBLE: &[u8; 20] = b"abcdefghijklmnopqrst";

    fn greeting(password: Option<&str>, is_private: bool) -> Greeting {
        let [user, database, nonce] = ["me", "base", ""].map(str::to_string);
        let login = Credentials { user, password: password.map(str::to_string), database, nonce };
        Greeting::new(login, is_private, "mysql")
    }

    /// As MariaDB 10.11 begins.
    fn first(plugin: &str) -> Vec<u8> {
        let second: &[u8] = b"\0\xfe\xf7\x2d\x02\0\xff\x81\x15\0\0\0\0\0\0\x1d\0\0\0";
        [b"\x0a5.5.5-10.11\0\x05\0\0\0", &SCRAMBLE[..8], second, &SCRAMBLE[8..], b"\0", plugin.as_bytes(), b"\0"]
            .concat()
    }

    fn hear(greeting: &mut Greeting, number: u8, payload: &[u8]) -> (Decoded<'static>, Vec<u8>) {
        let mut out = Vec::new();
        let heard = greeting.hear(number, payload, &mut out).expect("a packet of the protocol");
        (heard, out)
    }

    #[test]
    fn it_says_who_it_is_and_proves_its_password() {
        let mut greeting = greeting(Some("secret"), false);
        let (heard, out) = hear(&mut greeting, 0, &first(NATIVE));
        assert_eq!(heard, Decoded::Again);
        let proof = Plugin::Native.proof("secret", SCRAMBLE);
        // By a program that is not ours: sha1(p) xor sha1(scramble + sha1(sha1(p))).
        assert_eq!(hex::encode(&proof), "8817c50fa779daef010ee7577825b0847df9842e");
        let expected =
            [&b"\x09\xa2\x08\0\0\0\0\x40\x2d"[..], &[0; 23], b"me\0\x14", &proof, b"base\0", NATIVE.as_bytes(), b"\0"];
        assert_eq!(out[4..], expected.concat());
        assert_eq!(out[..4], [(out.len() - 4) as u8, 0, 0, 1]);
        assert_eq!(hear(&mut greeting, 2, b"\0\0\0\x02\0\0\0").0, Decoded::Greeted);
    }

    #[test]
    fn without_a_password_there_is_no_proof() {
        let (_, out) = hear(&mut greeting(None, false), 0, &first(NATIVE));
        assert!(out.windows(8).any(|part| part == b"me\0\0base"), "{}", out.escape_ascii());
    }

    #[test]
    fn another_way_to_log_in_is_taken_or_refused_by_name() {
        let mut greeting = greeting(Some("secret"), false);
        hear(&mut greeting, 0, &first("client_ed25519"));
        let switch = [b"\xfe", CACHING.as_bytes(), b"\0", SCRAMBLE, b"\0"].concat();
        let (heard, out) = hear(&mut greeting, 2, &switch);
        assert_eq!((heard, &out[..4]), (Decoded::Again, &[32, 0, 0, 3][..]));
        assert_eq!(hex::encode(&out[4..]), "c76e2898612a4cf042c77fa8c4702c4c64c0c2c557c53c4d75595aaa6abae809");
        let (heard, _) = hear(&mut greeting, 2, b"\xfeclient_ed25519\0scramble\0");
        assert!(matches!(heard, Decoded::Refused(words) if words.contains("client_ed25519")));
    }

    #[test]
    fn a_password_is_said_as_it_is_over_a_unix_socket_only() {
        for is_private in [false, true] {
            let mut greeting = greeting(Some("secret"), is_private);
            hear(&mut greeting, 0, &first(CACHING));
            assert_eq!(hear(&mut greeting, 2, b"\x01\x03").0, Decoded::Again, "its digest was enough");
            let (heard, out) = hear(&mut greeting, 2, b"\x01\x04");
            match is_private {
                true => assert_eq!((heard, out.as_slice()), (Decoded::Again, &b"\x07\0\0\x03secret\0"[..])),
                false => assert!(matches!(heard, Decoded::Refused(_)) && out.is_empty()),
            }
        }
    }

    #[test]
    fn errors_are_told_apart() {
        let said = |payload: &[u8]| hear(&mut greeting(None, false), 0, payload).0;
        assert!(
            matches!(said(b"\xff\x10\x04Too many connections"), Decoded::Refused(words) if words.starts_with("Too"))
        );
        let mut greeting = greeting(None, false);
        hear(&mut greeting, 0, &first(NATIVE));
        let (heard, _) = hear(&mut greeting, 2, b"\xff\x15\x04#28000Access denied");
        assert_eq!(heard, Decoded::PasswordNeeded { login: OF_A_USER, words: "Access denied".to_string() });
        let (heard, _) = hear(&mut greeting, 2, b"\xff\x19\x04#42000Unknown database 'x'");
        assert!(matches!(heard, Decoded::Refused(words) if words.ends_with("(mysql://HOST/DATABASE)")));
    }
}

//! What is said before the first op: who we are, and what the server asks to prove it.
//!
//! The messages: <https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-START-UP>.

use std::fmt::Write;

use md5::{Digest, Md5};

use super::frames::{ERROR, Message, READY, counted, push_text, sent, server_error};
use crate::model::op::Fault;
use crate::protocol::scram::{SCRAM_SHA_256, Scram};
use crate::protocol::text::garbled;
use crate::protocol::{Credentials, Decoded, OF_A_USER};

/// The version of the protocol: 3.0.
const VERSION: u32 = 3 << 16;
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>: invalid_password, invalid_catalog_name.
const INVALID_PASSWORD: &str = "28P01";
const NO_SUCH_DATABASE: &str = "3D000";

/// The kinds of authentication that are spoken, and one that is refused by name.
const ACCEPTED: u32 = 0;
const CLEARTEXT: u32 = 3;
const MD5: u32 = 5;
const SASL: u32 = 10;
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

pub struct Greeting {
    login: Credentials,
    /// The connection is a Unix socket, on which a password may be sent as it is.
    is_private: bool,
    options: String,
    scram: Option<Scram>,
    is_accepted: bool,
}

impl Greeting {
    /// `options` are settings of the session, as `-c name=value`.
    pub fn new(login: Credentials, is_private: bool, options: String) -> Greeting {
        Greeting { login, is_private, options, scram: None, is_accepted: false }
    }

    pub(super) fn hello(&self, out: &mut Vec<u8>) {
        let Credentials { user, database, .. } = &self.login;
        counted(out, true, |out| {
            out.extend_from_slice(&VERSION.to_be_bytes());
            let parameters = [
                ("user", user.as_str()),
                ("database", database),
                ("application_name", "kvfair"),
                ("client_encoding", "UTF8"),
                ("options", &self.options),
            ];
            // A pool of connections may refuse options.
            for (name, value) in parameters.into_iter().filter(|(_, value)| !value.is_empty()) {
                push_text(name, out);
                push_text(value, out);
            }
            out.push(0);
        });
    }

    /// Takes a message of the server, and appends what it asks for. `Greeted` once the server is ready.
    pub(super) fn hear(
        &mut self,
        Message { kind, body }: Message<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Decoded<'static>, Fault> {
        match kind {
            b'R' => self.authenticate(body, out),
            // What cancels a question; that it speaks an older version; what it says at any time.
            b'K' | b'v' | b'S' | b'N' | b'A' => Ok(Decoded::Again),
            READY if self.is_accepted => Ok(Decoded::Greeted),
            ERROR => {
                let error = server_error(body);
                match error.code.as_str() {
                    INVALID_PASSWORD => Ok(password_needed(&error.words)),
                    NO_SUCH_DATABASE => {
                        let hint = ": name one that is there (postgres://HOST/DATABASE)";
                        Ok(Decoded::Refused(error.words + hint))
                    }
                    _ if error.is_end() => Err(error.lost()),
                    _ => Ok(Decoded::Refused(error.words)),
                }
            }
            _ => Err(garbled("a message about the login", &[kind])),
        }
    }

    fn authenticate(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<Decoded<'static>, Fault> {
        let Some((method, rest)) = body.split_first_chunk::<4>() else {
            return Err(garbled("a kind of authentication", body));
        };
        match (u32::from_be_bytes(*method), &mut self.scram) {
            (ACCEPTED, scram) if scram.as_ref().is_none_or(Scram::is_done) => {
                self.is_accepted = true;
                Ok(Decoded::Again)
            }
            (ACCEPTED, _) => Err(garbled("the server's own proof of the password", body)),
            (MD5, None) => self.answer_md5(rest, out),
            (SASL, None) => self.begin_scram(rest, out),
            (SASL_CONTINUE, Some(scram)) => {
                let proof = std::str::from_utf8(rest).map_err(|_| "text").and_then(|text| scram.prove(text));
                let proof = proof.map_err(|expected| garbled(expected, rest))?;
                sent(b'p', out, |out| out.extend_from_slice(proof.as_bytes()));
                Ok(Decoded::Again)
            }
            (SASL_FINAL, Some(scram)) => {
                let checked = std::str::from_utf8(rest).map_err(|_| "text").and_then(|text| scram.check(text));
                checked.map_err(|expected| garbled(expected, rest)).map(|()| Decoded::Again)
            }
            (CLEARTEXT, None) if self.is_private => self.say_password(out),
            (CLEARTEXT, _) => Ok(refused("the password in clear text, which kvfair sends over a Unix socket only")),
            (method, _) => Ok(refused(&format!("an authentication (number {method}) that kvfair does not speak"))),
        }
    }

    fn password(&self) -> Result<&str, Decoded<'static>> {
        self.login.password.as_deref().ok_or_else(|| password_needed("password missing"))
    }

    fn say_password(&self, out: &mut Vec<u8>) -> Result<Decoded<'static>, Fault> {
        match self.password() {
            Ok(password) => sent(b'p', out, |out| push_text(password, out)),
            Err(missing) => return Ok(missing),
        }
        Ok(Decoded::Again)
    }

    fn answer_md5(&self, salt: &[u8], out: &mut Vec<u8>) -> Result<Decoded<'static>, Fault> {
        let password = match self.password() {
            Ok(password) => password,
            Err(missing) => return Ok(missing),
        };
        let inner = hexadecimal(&[password.as_bytes(), self.login.user.as_bytes()]);
        let outer = hexadecimal(&[inner.as_bytes(), salt]);
        sent(b'p', out, |out| push_text(&format!("md5{outer}"), out));
        Ok(Decoded::Again)
    }

    fn begin_scram(&mut self, mechanisms: &[u8], out: &mut Vec<u8>) -> Result<Decoded<'static>, Fault> {
        if !mechanisms.split(|&byte| byte == 0).any(|name| name == SCRAM_SHA_256.as_bytes()) {
            return Ok(refused(&format!("a mechanism other than {SCRAM_SHA_256}")));
        }
        let password = match self.password() {
            Ok(password) => password,
            Err(missing) => return Ok(missing),
        };
        // The user stands in the startup message.
        let scram = Scram::new("", password, &self.login.nonce);
        let first = scram.first();
        sent(b'p', out, |out| {
            push_text(SCRAM_SHA_256, out);
            counted(out, false, |out| out.extend_from_slice(first.as_bytes()));
        });
        self.scram = Some(scram);
        Ok(Decoded::Again)
    }
}

fn password_needed(words: &str) -> Decoded<'static> {
    Decoded::PasswordNeeded { login: OF_A_USER, words: words.to_string() }
}

fn refused(what: &str) -> Decoded<'static> {
    Decoded::Refused(format!("the server asks for {what}"))
}

/// The MD5 digest of all parts together, in hexadecimal.
fn hexadecimal(parts: &[&[u8]]) -> String {
    let mut md5 = Md5::new();
    parts.iter().for_each(|part| md5.update(part));
    md5.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes any text");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(password: Option<&str>) -> Greeting {
        let login = Credentials {
            user: "me".to_string(),
            password: password.map(str::to_string),
            database: "base".to_string(),
            nonce: "nonce".to_string(),
        };
        Greeting::new(login, false, "-c jit=off".to_string())
    }

    fn asked(greeting: &mut Greeting, body: &[u8]) -> (Result<Decoded<'static>, Fault>, Vec<u8>) {
        let mut out = Vec::new();
        (greeting.hear(Message { kind: b'R', body }, &mut out), out)
    }

    #[test]
    fn it_says_who_it_is() {
        let mut out = Vec::new();
        greeting(None).hello(&mut out);
        let said = b"\0\0\0\x5f\0\x03\0\0user\0me\0database\0base\0application_name\0kvfair\0client_encoding\0UTF8\0\
                     options\0-c jit=off\0\0";
        assert_eq!(out, said);
        assert_eq!(out.len(), 0x5f);
    }

    /// The digest is that of `SELECT 'md5' || md5(md5('secretme') || 'salt')`.
    #[test]
    fn a_password_is_digested_or_asked_for() {
        let (heard, out) = asked(&mut greeting(Some("secret")), b"\0\0\0\x05salt");
        assert_eq!(heard.unwrap(), Decoded::Again);
        assert_eq!(out, b"p\0\0\0\x28md541c83370953958037c7298c50b238bda\0".as_slice());
        for body in [&b"\0\0\0\x05salt"[..], b"\0\0\0\x0aSCRAM-SHA-256\0\0"] {
            let (heard, out) = asked(&mut greeting(None), body);
            assert_eq!(heard.unwrap(), password_needed("password missing"));
            assert!(out.is_empty());
        }
    }

    #[test]
    fn a_password_is_sent_as_it_is_over_a_unix_socket_only() {
        let mut private = Greeting { is_private: true, ..greeting(Some("secret")) };
        assert_eq!(asked(&mut private, b"\0\0\0\x03").1, b"p\0\0\0\x0bsecret\0");
        for body in [&b"\0\0\0\x03"[..], b"\0\0\0\x07", b"\0\0\0\x0aSCRAM-SHA-1\0\0"] {
            let (heard, out) = asked(&mut greeting(Some("secret")), body);
            assert!(matches!(heard, Ok(Decoded::Refused(_))), "{heard:?}");
            assert!(out.is_empty());
        }
    }

    #[test]
    fn a_server_that_does_not_prove_the_password_is_not_believed() {
        let mut greeting = greeting(Some("secret"));
        let (heard, out) = asked(&mut greeting, b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
        assert_eq!(heard.unwrap(), Decoded::Again);
        assert_eq!(out, b"p\0\0\0\x23SCRAM-SHA-256\0\0\0\0\x0dn,,n=,r=nonce".as_slice());
        let ready = greeting.hear(Message { kind: READY, body: b"I" }, &mut Vec::new());
        assert!(matches!(ready, Err(Fault::Garbled(_))), "it has not let us in");
        for body in [&b"\0\0\0\0"[..], b"\0\0\0\x0cv=AAAA"] {
            let (heard, out) = asked(&mut greeting, body);
            assert!(matches!(heard, Err(Fault::Garbled(_))) && out.is_empty(), "{heard:?}");
        }
    }
}

//! SCRAM-SHA-256: a client proves that it knows a password without sending it, and the server proves the same.
//!
//! The messages: <https://www.rfc-editor.org/rfc/rfc5802>, with SHA-256 by <https://www.rfc-editor.org/rfc/rfc7677>.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// What the mechanism is called.
pub const SCRAM_SHA_256: &str = "SCRAM-SHA-256";

/// Without TLS there is no channel to bind to.
const NO_CHANNEL: &str = "n,,";
/// A server that asks for more rounds would keep the client busy for seconds at each connection.
const ROUNDS_MAX: u32 = 1_000_000;

type Key = [u8; 32];

/// One login.
pub struct Scram {
    password: String,
    client_nonce: String,
    /// The client's first message without its header.
    first_bare: String,
    state: State,
}

enum State {
    Begun,
    /// The password is proven: what the server must answer with.
    Proven(Key),
    Done,
}

impl Scram {
    /// `nonce` is random text without commas. The user's name is escaped here; PostgreSQL takes it from elsewhere, and
    /// an empty one from here.
    pub fn new(user: &str, password: &str, nonce: &str) -> Scram {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        Scram {
            // What cannot be prepared is taken as it is, as PostgreSQL does.
            password: stringprep::saslprep(password).map_or_else(|_| password.to_string(), |text| text.into_owned()),
            client_nonce: nonce.to_string(),
            first_bare: format!("n={user},r={nonce}"),
            state: State::Begun,
        }
    }

    /// The client's first message.
    pub fn first(&self) -> String {
        format!("{NO_CHANNEL}{}", self.first_bare)
    }

    /// The client's last message, in answer to the server's first one. An error says what is wrong with that.
    pub fn prove(&mut self, server_first: &str) -> Result<String, &'static str> {
        let State::Begun = self.state else { return Err("a challenge that was not asked for") };
        let (nonce, salt, rounds) = challenge(server_first).ok_or("a challenge with nonce, salt and iterations")?;
        if !nonce.starts_with(&self.client_nonce) || nonce.len() == self.client_nonce.len() {
            return Err("a nonce that begins with the client's");
        }
        let salt = BASE64_STANDARD.decode(salt).map_err(|_| "a salt in base64")?;
        if !(1..=ROUNDS_MAX).contains(&rounds) {
            return Err("a number of iterations up to 1,000,000");
        }
        let mut salted = Key::default();
        pbkdf2::pbkdf2_hmac::<Sha256>(self.password.as_bytes(), &salt, rounds, &mut salted);
        let client_key = hmac(&salted, b"Client Key");
        let without_proof = format!("c={},r={nonce}", BASE64_STANDARD.encode(NO_CHANNEL));
        let signed = format!("{},{server_first},{without_proof}", self.first_bare);
        let signature = hmac(&Sha256::digest(client_key).into(), signed.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(signature).map(|(key, signature)| key ^ signature).collect();
        self.state = State::Proven(hmac(&hmac(&salted, b"Server Key"), signed.as_bytes()));
        Ok(format!("{without_proof},p={}", BASE64_STANDARD.encode(proof)))
    }

    /// Checks the server's last message. An error says what is wrong with it.
    pub fn check(&mut self, server_final: &str) -> Result<(), &'static str> {
        let State::Proven(expected) = self.state else { return Err("a signature that was not asked for") };
        let signature = server_final.strip_prefix("v=").map(|text| text.split(',').next().unwrap_or_default());
        let signature = signature.and_then(|text| BASE64_STANDARD.decode(text).ok());
        if signature.as_deref() != Some(&expected[..]) {
            return Err("the signature of a server that knows the password");
        }
        self.state = State::Done;
        Ok(())
    }

    /// Whether the server has proven that it knows the password.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }
}

/// Nonce, salt and rounds of "r=...,s=...,i=4096". Extensions may follow.
fn challenge(server_first: &str) -> Option<(&str, &str, u32)> {
    let mut parts = server_first.split(',');
    let nonce = parts.next()?.strip_prefix("r=")?;
    let salt = parts.next()?.strip_prefix("s=")?;
    let rounds = parts.next()?.strip_prefix("i=")?.parse().ok()?;
    Some((nonce, salt, rounds))
}

fn hmac(key: &Key, text: &[u8]) -> Key {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    mac.update(text);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
    const SERVER_FIRST: &str = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    const SERVER_FINAL: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    /// The example of RFC 7677.
    #[test]
    fn a_login_says_what_the_standard_says() {
        let mut scram = Scram::new("user", "pencil", NONCE);
        assert_eq!(scram.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let last = scram.prove(SERVER_FIRST).expect("a proof");
        let proof = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                     p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        assert_eq!(last, proof);
        assert!(!scram.is_done());
        scram.check(SERVER_FINAL).expect("the server's signature");
        assert!(scram.is_done());
        assert!(scram.check(SERVER_FINAL).is_err() && scram.prove(SERVER_FIRST).is_err(), "once is enough");
    }

    #[test]
    fn a_server_that_proves_nothing_is_refused() {
        for challenge in [
            "",
            "r=another,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "r=rOprNGfwEbeRWgbNEkqOx,s=%,i=4096",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=0",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1000001",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=-1",
        ] {
            assert!(Scram::new("user", "pencil", NONCE).prove(challenge).is_err(), "{challenge}");
        }
        let mut scram = Scram::new("user", "another", NONCE);
        assert!(scram.check(SERVER_FINAL).is_err(), "nothing was asked");
        scram.prove(SERVER_FIRST).expect("a proof");
        for signature in [SERVER_FINAL, "", "v=", "v=%", "e=invalid-proof"] {
            assert!(scram.check(signature).is_err() && !scram.is_done(), "{signature}");
        }
    }

    #[test]
    fn a_users_name_may_have_commas() {
        assert_eq!(Scram::new("a=b,c", "x", "n").first(), "n,,n=a=3Db=2Cc,r=n");
    }
}

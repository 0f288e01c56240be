//! Broken clients: something between kvfair and a real server that changes what the server says, as broken clients and
//! proxies have done.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kvfair::model::trial::Transport;

use crate::cli::strangers::port_of;
use crate::common::desk::Desk;
use crate::common::{self, Running};

/// What becomes of a piece of an answer. All connections share it.
pub type Change = Box<dyn FnMut(Vec<u8>) -> Vec<u8> + Send>;

/// Stands before the server and changes nothing; its port.
pub fn unchanged(server: &Running) -> u16 {
    before(port_of(server), Box::new(|said| said))
}

/// Several clients race for seconds, and would use all processors meanwhile. These pieces of what they ask wait.
const PAUSE: Duration = Duration::from_millis(10);

/// Whether these bytes are of a probe in which several clients race.
pub fn are_of_a_race(asked: &[u8]) -> bool {
    [&b"kvfair:check:sum:"[..], b"kvfair:check:added:", b"kvfair:check:race:"]
        .iter()
        .any(|key| memchr::memmem::find(asked, key).is_some())
}

/// How long a piece of what a client asks waits, by its bytes and its number on its connection.
type Wait = fn(&[u8], u32) -> Duration;

/// Hands on what clients ask until one of both sides closes.
fn hand_on(mut asks: TcpStream, mut to: TcpStream, wait: Wait) {
    let (mut bytes, mut pieces) = (vec![0; 1 << 16], 0..);
    while let Ok(count @ 1..) = asks.read(&mut bytes) {
        std::thread::sleep(wait(&bytes[..count], pieces.next().unwrap_or(u32::MAX)));
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// Stands before the server at this port; its own port.
pub fn before(behind: u16, change: Change) -> u16 {
    relay(behind, |asked, _| if are_of_a_race(asked) { PAUSE } else { Duration::ZERO }, change)
}

/// The same of pieces that wait.
pub fn relay(behind: u16, wait: Wait, change: Change) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let change = Arc::new(Mutex::new(change));
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", behind)) else { return };
            let (asks, mut answers) = (client.try_clone().expect("a socket"), client);
            let (to, mut from) = (server.try_clone().expect("a socket"), server);
            std::thread::spawn(move || hand_on(asks, to, wait));
            let change = change.clone();
            std::thread::spawn(move || {
                let mut bytes = vec![0; 1 << 20];
                while let Ok(count @ 1..) = from.read(&mut bytes) {
                    // What is slow for one is not for all.
                    let said = change.lock().expect("no change panics")(bytes[..count].to_vec());
                    if answers.write_all(&said).is_err() {
                        break;
                    }
                }
                let _ = answers.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    port
}

/// The first place of `what` becomes `with`.
fn replaced(mut said: Vec<u8>, what: &[u8], with: &[u8]) -> Vec<u8> {
    if let Some(place) = said.windows(what.len()).position(|part| part == what) {
        said.splice(place..place + what.len(), with.iter().copied());
    }
    said
}

#[track_caller]
fn is_found(store: &str, change: Change, words: &[&str]) {
    let server = common::start(store, Transport::Tcp);
    let desk = Desk::new();
    let said = desk.run(&["check", &format!("{store}://127.0.0.1:{}?name=broken", before(port_of(&server), change))]);
    said.exits(4).shows("broken ").shows(&format!(" {} (", words[0].split(' ').next().expect("WRONG or GARBLED")));
    for words in words {
        said.shows(words);
    }
}

#[test]
fn a_client_that_changes_nothing_is_right() {
    let server = common::start("redis", Transport::Tcp);
    let url = format!("redis://127.0.0.1:{}", unchanged(&server));
    Desk::new().run(&["check", &url]).exits(0).shows("all right");
}

#[test]
fn a_client_that_counts_a_thousand_as_three_digits() {
    let change: Change = Box::new(|said| replaced(said, b"$1000\r\n", b"$100\r\n"));
    is_found(
        "redis",
        change,
        &["GARBLED values of 999 to 1,001 bytes: sent set", "to 1,000 bytes", "came garbled answer"],
    );
}

#[test]
fn the_same_of_memcached() {
    let change: Change = Box::new(|said| replaced(said, b" 0 1000\r\n", b" 0 100\r\n"));
    is_found(
        "memcached",
        change,
        &["GARBLED values of 999 to 1,001 bytes: sent set", "to 1,000 bytes", "came garbled"],
    );
}

#[test]
fn a_client_that_cuts_above_1024() {
    let change: Change = Box::new(|said| match said.strip_prefix(b"$1025\r\n") {
        Some(value) if value.len() == 1_027 => [b"$1024\r\n", &value[..1_024], b"\r\n"].concat(),
        _ => said,
    });
    is_found("redis", change, &["WRONG values of 1,023 to 1,025 bytes: sent", "came 1,024 bytes, not 1,025"]);
}

/// An answer that comes when nobody waits any more must not be taken for the next one either.
#[test]
fn a_client_that_answers_late() {
    let mut is_late = false;
    let change: Change = Box::new(move |said| {
        if said.starts_with(b"$8192\r\n") && !std::mem::replace(&mut is_late, true) {
            std::thread::sleep(Duration::from_secs(12));
        }
        said
    });
    is_found("redis", change, &["WRONG values of 8,191 to 8,193 bytes: sent", "has been silent for 10 s"]);
}

/// Every now and then an answer goes to whoever asked before.
#[test]
fn a_client_that_gives_another_clients_answer() {
    let (mut answers, mut held) = (0, b"$5\r\nother\r\n".to_vec());
    let change: Change = Box::new(move |said| {
        answers += 1;
        let is_short_value = said.starts_with(b"$") && said.len() < 100;
        if is_short_value && answers % 10 == 0 { std::mem::replace(&mut held, said) } else { said }
    });
    is_found("redis", change, &["WRONG several clients, each its own keys: sent "]);
}

//! Nobody at the address, and servers that fall silent, say too much or repeat a password.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use kvfair::model::op::{Fault, Op, Reply};
use kvfair::model::trial::Durability;
use kvfair::protocol::resp;
use kvfair::stores::blocking::Blocking;
use kvfair::stores::{Launch, Place, Session, find};

use super::SERVED;
use crate::common::launch_at;

#[test]
fn nobody_there_is_said_with_the_address() {
    for store in SERVED {
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let places =
            [Place::Tcp { host: "127.0.0.1".to_string(), port }, Place::Unix("/nonexistent/kvfair.sock".into())];
        for place in places {
            let open = (find(store).unwrap().open)(&launch_at(place.clone(), Durability::None)).unwrap();
            match open.facts() {
                Err(Fault::Lost(error)) => {
                    assert!(error.to_string().contains(&format!("{store} at {place}")), "{error}")
                }
                other => panic!("no process is there, but {other:?}"),
            }
        }
    }
}

/// A server that takes what it is told and answers `answer` to the first thing it hears, then nothing more.
fn mute(answer: &'static [u8]) -> Place {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut heard = [0; 1024];
        let _ = stream.read(&mut heard);
        let _ = stream.write_all(answer);
        while stream.read(&mut heard).is_ok_and(|count| count > 0) {}
    });
    Place::Tcp { host: "127.0.0.1".to_string(), port }
}

fn impatient(place: &Place) -> Blocking<resp::Resp> {
    let launch = Launch { patience: Duration::from_millis(200), ..launch_at(place.clone(), Durability::None) };
    Blocking::open("redis", &launch, resp::Resp::new("redis", Default::default())).unwrap()
}

#[test]
fn a_silent_server_is_lost_after_the_patience_and_its_late_answer_is_nobodys() {
    let place = mute(b"$5\r\nhal");
    let mut session = impatient(&place);
    let error = match session.ask(&Op::Get(b"k")) {
        Err(Fault::Lost(error)) => error,
        other => panic!("a silent server answered {other:?}"),
    };
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert_eq!(error.to_string(), format!("redis at {place} has not finished an answer within 0.2 s"));
    let again = session.ask(&Op::Get(b"k")).unwrap_err().to_string();
    assert!(again.contains("an earlier question was never answered"), "{again}");
}

#[test]
fn an_answer_too_many_is_not_taken_for_the_next_one() {
    let mut session = impatient(&mute(b"$1\r\na\r\n$1\r\nb\r\n"));
    assert_eq!(session.ask(&Op::Get(b"k")).unwrap(), Reply::Value(b"a"));
    match session.ask(&Op::Get(b"k")) {
        Err(Fault::Garbled(what)) => assert!(what.contains("nothing was asked"), "{what}"),
        other => panic!("an answer too many gave {other:?}"),
    }
}

#[test]
fn a_refused_login_does_not_repeat_the_password() {
    let launch =
        launch_at(mute(b"-ERR unknown command 'AUTH', with args beginning with: 's3cret' \r\n"), Durability::None);
    let greeting = resp::Greeting { password: Some("s3cret".to_string()), ..Default::default() };
    let fault = Blocking::open("redis", &launch, resp::Resp::new("redis", greeting)).err().unwrap();
    assert!(fault.to_string().contains("'***'") && !fault.to_string().contains("s3cret"), "{fault}");
}

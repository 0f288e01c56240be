//! What was flushed is there when the store is closed and opened again: for an engine in this process a real close, for
//! a server new connections.

use super::super::talk::{ProbeContext, ProbeSession, Probed, failed};
use super::values::noise;
use crate::model::op::{Op, Reply};

pub const NAME: &str = "flush, close, open again";
const KEYS: &str = "kept";
const RECORDS: usize = 60;
const NUMBER: i64 = 77;

fn key(talk: &mut ProbeSession<'_>, place: usize) -> Result<Vec<u8>, super::super::talk::Stop> {
    talk.key(place.to_string())
}

/// Everything that must be there afterwards.
pub fn write(ground: &ProbeContext<'_>) -> Probed {
    let mut talk = ProbeSession::begin(ground, KEYS)?;
    for place in 0..RECORDS {
        let key = key(&mut talk, place)?;
        talk.given(&key, noise(place * place))?;
    }
    let (counter, gone) = (talk.key("n")?, key(&mut talk, 0)?);
    talk.prepare(Op::Increment { key: &counter, by: NUMBER }, Reply::Number(NUMBER))?;
    talk.expect(Op::Delete(&gone), Reply::Done)?;
    talk.flush()?;
    ground.store.final_flush().map_err(|fault| failed("final flush".to_string(), &fault))
}

pub fn read(ground: &ProbeContext<'_>) -> Probed {
    let mut talk = ProbeSession::begin(ground, KEYS)?;
    let gone = key(&mut talk, 0)?;
    talk.expect(Op::Get(&gone), Reply::Missing)?;
    for place in 1..RECORDS {
        let key = key(&mut talk, place)?;
        talk.holds(&key, noise(place * place))?;
    }
    let counter = talk.key("n")?;
    talk.expect(Op::Number(&counter), Reply::Number(NUMBER))
}

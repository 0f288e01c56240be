//! Many questions on their way before the first answer is read, and the answers in one piece, or in two.

use super::super::messages;
use super::super::proxy::Manner;
use super::super::talk::{ProbeSession, Probed, Stop, failed, wrong};
use super::split::NO_CONNECTION;
use super::values::noise;
use crate::loadgen::ahead;
use crate::model::op::{Fault, Op, Reply};

const QUESTIONS: usize = 12;
/// The joined answers are split at so many places besides.
const PLACES: usize = 120;

pub fn joined(talk: &mut ProbeSession<'_>) -> Probed {
    let lacks = |why: &str| Err(Stop::NotOffered(format!("many replies in one piece: {why}")));
    let Some(through) = talk.ground.through else { return Err(Stop::NotOffered(NO_CONNECTION.to_string())) };
    let mut records = Vec::new();
    for place in 0..QUESTIONS {
        let key = talk.key(place.to_string())?;
        let value = (place % 4 != 3).then(|| noise(place * place));
        if let Some(value) = value {
            talk.given(&key, value)?;
        }
        records.push((key, value));
    }
    talk.flush()?;
    through.proxy.pass(Manner::AsTheyCome);
    let cannot = |fault: Fault| failed("opening past a proxy".to_string(), &fault);
    let store = through.open().map_err(cannot)?;
    let Some(connection) = store.connection() else { return lacks("its library asks one thing at a time") };
    let mut connection = connection.map_err(cannot)?;
    let ops: Vec<Op<'_>> = records.iter().map(|(key, _)| Op::Get(key)).collect();
    let (mut length, mut place) = (1, 0);
    while place < length {
        through.proxy.pass(Manner::Joined(place));
        let mut parted = None;
        let heard = ahead::ask(&mut connection, &ops, through.launch.patience, |number, reply| {
            let (key, value) = &records[number];
            let expected = value.map_or(Reply::Missing, Reply::Value);
            let reply = match &reply {
                Ok(reply) if *reply == expected => return,
                Ok(reply) => messages::instead(reply, &expected),
                Err(words) => words.clone(),
            };
            parted.get_or_insert(format!("number {} ({}) is {reply}", number + 1, messages::key(key)));
        });
        let came = heard.err().map(|fault| fault.to_string()).or(parted);
        (talk.ground.pulse)();
        if let Some(came) = came {
            through.proxy.pass(Manner::AsTheyCome);
            let sent = format!("{QUESTIONS} gets at once, their answers in one piece, split after {place} bytes");
            return Err(wrong(sent, came));
        }
        length = through.proxy.answered();
        place += 1 + length / PLACES;
    }
    through.proxy.pass(Manner::AsTheyCome);
    Ok(())
}

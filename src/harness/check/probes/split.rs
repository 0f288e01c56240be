//! Replies that come in pieces: the same questions past a proxy that splits what the server says.

use super::super::proxy::Manner;
use super::super::talk::{ProbeContext, ProbeSession, Probed, Stop, failed};
use super::values::noise;
use crate::model::check::ProbeWrong;
use crate::model::op::{Fault, KeyList, Op, Reply, ValueList};

/// A reply of up to so many bytes is split at each of them.
const EVERY: usize = 150;
/// And at so many bytes at the beginning and the end of a larger one.
const ENDS: usize = 24;
/// Where buffers begin and end.
const BORDERS: &[usize] = &[512, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
/// So many bytes come one by one in a moment.
const DRIPPED: usize = 3_000;

/// Of an engine in this process.
pub const NO_CONNECTION: &str = "replies in pieces: there is no connection";

type Question = fn(&mut ProbeSession<'_>, &Keys) -> Probed;

/// What small questions are asked about.
struct Keys {
    small: Vec<u8>,
    large: Vec<u8>,
    missing: Vec<u8>,
    counter: Vec<u8>,
}

/// Every one of them may be asked again and again. What a store lacks is left out.
const QUESTIONS: &[Question] = &[
    |talk, keys| talk.set(&keys.small, SMALL),
    |talk, keys| talk.holds(&keys.small, SMALL),
    |talk, keys| talk.expect(Op::Get(&keys.missing), Reply::Missing),
    |talk, keys| talk.expect(Op::Delete(&keys.missing), Reply::Missing),
    |talk, keys| talk.expect(Op::Number(&keys.counter), Reply::Number(1_234_567)),
    |talk, keys| {
        talk.expect(Op::Increment { key: &keys.counter, by: 1 }, Reply::Number(1_234_568))?;
        talk.expect(Op::Increment { key: &keys.counter, by: -1 }, Reply::Number(1_234_567))
    },
    |talk, keys| talk.expect(Op::SetIfAbsent { key: &keys.small, value: b"no" }, Reply::Conflict),
    |talk, keys| talk.version(&keys.small, SMALL).map(drop),
    |talk, keys| {
        let (mut list, mut values) = (KeyList::default(), ValueList::default());
        for (key, value) in [(&keys.small, Some(SMALL)), (&keys.missing, None), (&keys.large, Some(noise(100)))] {
            list.push(key);
            values.push(value);
        }
        talk.expect(Op::GetMany(list.lend()), Reply::Values(values.lend()))
    },
];

/// A value in which every end of a line is also the end of something.
const SMALL: &[u8] = b"END\r\n$-1\r\n\r\n";

/// Where to split an answer of so many bytes.
fn places(length: usize) -> Vec<usize> {
    if length <= EVERY {
        return (1..length).collect();
    }
    let near = |border: usize| [border - 1, border, border + 1];
    let mut places: Vec<usize> = (1..ENDS).chain(length - ENDS..length).collect();
    places.extend(BORDERS.iter().copied().flat_map(near).filter(|place| *place < length));
    places.extend((1..10).map(|part| length * part / 10));
    places.sort_unstable();
    places.dedup();
    places
}

/// Asks it whole, then in pieces.
fn in_pieces(talk: &mut ProbeSession<'_>, ask: impl Fn(&mut ProbeSession<'_>) -> Probed) -> Probed {
    let proxy = talk.ground.through.expect("there is a proxy").proxy;
    proxy.pass(Manner::AsTheyCome);
    ask(talk).map_err(|stop| match stop {
        Stop::Wrong(whole) => Stop::Wrong(ProbeWrong { step: Some("the same in one piece".to_string()), ..whole }),
        other => other,
    })?;
    let length = proxy.answered();
    let how = |manner| match manner {
        Manner::ByteByByte => format!("its {length} bytes came one by one"),
        _ => format!("its {length} bytes came in two pieces"),
    };
    let mut manners: Vec<Manner> = places(length).into_iter().map(Manner::SplitAfter).collect();
    if length <= DRIPPED {
        manners.push(Manner::ByteByByte);
    }
    for manner in manners {
        proxy.pass(manner);
        let asked = ask(talk);
        proxy.pass(Manner::AsTheyCome);
        let place =
            if let Manner::SplitAfter(place) = manner { format!(", split after {place}") } else { String::new() };
        asked.map_err(|stop| match stop {
            Stop::Wrong(found) => {
                let came = format!("{} ({}{place})", found.came, how(manner));
                Stop::Wrong(ProbeWrong { came, cause: None, step: None, ..found })
            }
            other => other,
        })?;
    }
    Ok(())
}

/// Opens the store past the proxy, and makes sure that the way to it leads there.
fn past_the_proxy(
    talk: &mut ProbeSession<'_>,
    probe: &'static str,
    ask: impl FnOnce(&mut ProbeSession<'_>) -> Probed,
) -> Probed {
    let Some(through) = talk.ground.through else {
        return Err(Stop::NotOffered(NO_CONNECTION.to_string()));
    };
    through.proxy.pass(Manner::AsTheyCome);
    let cannot = |fault: Fault| failed("opening past a proxy".to_string(), &fault);
    let store = through.open().map_err(cannot)?;
    let ground = ProbeContext { store: store.as_ref(), ..*talk.ground };
    let mut past = ProbeSession::begin(&ground, probe)?;
    let before = through.proxy.passed();
    let missing = past.key("missing")?;
    past.expect(Op::Get(&missing), Reply::Missing)?;
    if through.proxy.passed() == before {
        return Err(Stop::NotOffered("replies in pieces: its library goes its own way to the server".to_string()));
    }
    let asked = ask(&mut past).and_then(|()| past.flush());
    through.proxy.pass(Manner::AsTheyCome);
    asked
}

pub fn small(talk: &mut ProbeSession<'_>) -> Probed {
    past_the_proxy(talk, "split", |talk| {
        let keys = Keys {
            small: talk.key("small")?,
            large: talk.key("large")?,
            missing: talk.key("missing")?,
            counter: talk.key("n")?,
        };
        talk.given(&keys.small, SMALL)?;
        talk.given(&keys.large, noise(100))?;
        talk.prepare(Op::Increment { key: &keys.counter, by: 1_234_567 }, Reply::Number(1_234_567))?;
        for question in QUESTIONS {
            match in_pieces(talk, |talk| question(talk, &keys)) {
                Ok(()) | Err(Stop::NotOffered(_)) => {}
                Err(stop) => return Err(stop),
            }
        }
        Ok(())
    })
}

pub fn large(talk: &mut ProbeSession<'_>) -> Probed {
    past_the_proxy(talk, "split-large", |talk| {
        let key = talk.key("k")?;
        for size in [1_000, 1_024, 4_096, 16_384, 65_536, 100_000] {
            talk.given(&key, noise(size))?;
            in_pieces(talk, |talk| talk.holds(&key, noise(size)))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_replies_are_split_everywhere_and_large_ones_at_borders() {
        assert_eq!(places(0), Vec::<usize>::new());
        assert_eq!(places(5), [1, 2, 3, 4]);
        let large = places(20_000);
        for place in [1, 23, 1_023, 1_024, 1_025, 16_385, 10_000, 19_976, 19_999] {
            assert!(large.contains(&place), "{place}");
        }
        assert!(large.len() < 100 && large.iter().all(|place| (1..20_000).contains(place)));
    }
}

//! Statements that are prepared when they are first used, and ops of several statements or none.

use kvfair::model::op::{Alike, Fault, KeyList, Op, Pairs};
use kvfair::protocol::Codec;
use kvfair::protocol::mysql::Mysql;

use super::super::{Got, hear_all, keys};
use super::Value::Bytes;
use super::{FOUND_ABC, GET, SET, done, error, executed, packet, prepared, ready, rows, rows_of};

/// What is said behind a statement that has no number yet waits until it has one.
#[test]
fn a_statement_is_prepared_when_it_is_first_used_and_what_follows_waits() {
    let (mut codec, mut out) = (ready(), Vec::new());
    let three = keys(&[b"a", b"b", b"c"]);
    let sets = Op::SetMany(Pairs { keys: three.lend(), values: three.lend() });
    let one = Op::Set { key: b"k", value: b"v", ttl_s: None };
    for op in [Op::GetMany(three.lend()), Op::Get(b"k"), one, sets, Op::GetMany(three.lend()), Op::Get(b"k")] {
        codec.say(&op, &mut out).expect("a question");
        // Who writes requests himself would write them ahead of what waits.
        for op in [Op::Get(b"k"), one] {
            assert!(codec.pattern(&Alike { count: 1, op }).is_none());
        }
    }
    let prepare = |text: &str| packet(0, &[b"\x16", text.as_bytes()].concat());
    assert_eq!(out, prepare("GetMany 3"), "nothing else is said yet");
    out.clear();
    let mut heard = Vec::new();
    let mut hear = |codec: &mut Mysql, bytes: &[u8], out: &mut Vec<u8>| {
        let (used, decoded) = codec.hear(bytes, out).expect("right").expect("all of it");
        assert_eq!(used, bytes.len());
        heard.push(format!("{decoded:?}"));
    };
    hear(&mut codec, &prepared(40), &mut out);
    let get = executed(GET, &[Bytes(b"k")]);
    let get_three = executed(40, &[Bytes(b"a"), Bytes(b"b"), Bytes(b"c")]);
    let set_one = executed(SET, &[Bytes(b"k"), Bytes(b"v")]);
    assert_eq!(out, [get_three.clone(), get.clone(), set_one, prepare("Set 3")].concat());
    out.clear();
    hear(&mut codec, rows(&[]), &mut out);
    hear(&mut codec, rows_of(1, &[]), &mut out);
    hear(&mut codec, done(1), &mut out);
    assert!(out.is_empty());
    hear(&mut codec, &prepared(41), &mut out);
    let set = executed(41, &["a", "a", "b", "b", "c", "c"].map(|text| Bytes(text.as_bytes())));
    assert_eq!(out, [set, get_three, get].concat());
    for answer in [done(3), rows(&[]), FOUND_ABC] {
        hear(&mut codec, answer, &mut out);
    }
    assert_eq!(codec.pending(), 0);
    let kinds = heard.iter().filter(|decoded| decoded.as_str() == "Greeted").count();
    assert_eq!((heard.len(), kinds), (8, 2));
    // Numbers that look like something else where the end of a command has its rows.
    for (size, id) in [(5, 0xfb), (6, 0xfc), (7, 0xfe), (8, 0xff)] {
        let list: KeyList = (0..size).map(|index| &b"abcdefgh"[index..=index]).collect();
        codec.say(&Op::GetMany(list.lend()), &mut out).expect("a question");
        let heard = hear_all(&mut codec, &[&prepared(id), rows(&[])]).expect("an answer");
        assert!(matches!(&heard[..], [Got::Greeted, Got::Values(values)] if values.len() == size), "{heard:?}");
    }
    // A server that has no room for a statement.
    codec.say(&Op::GetMany(keys(&[b"a", b"b", b"c", b"d"]).lend()), &mut out).expect("a question");
    match codec.hear(error(1461, "Can't create more than max_prepared_stmt_count statements"), &mut out) {
        Err(Fault::Refused(words)) => assert!(words.contains("max_prepared_stmt_count"), "{words}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn long_lists_are_several_statements_and_one_answer() {
    let names: Vec<String> = (0..300).map(|index| format!("{index:03}")).collect();
    let list: KeyList = names.iter().map(String::as_bytes).collect();
    let (mut codec, mut out) = (ready(), Vec::new());
    codec.say(&Op::GetMany(list.lend()), &mut out).expect("a question");
    let commands = codec.commands();
    let row = |name: &str| rows(&[&[Bytes(name.as_bytes()), Bytes(b"v")]]);
    let answers = [row("299"), row("000"), rows(&[])];
    let numbers = [prepared(50), prepared(51)].concat();
    let heard = hear_all(&mut codec, &[&numbers, &answers.concat()]).expect("an answer");
    let Some(Got::Values(values)) = heard.last() else { panic!("{heard:?}") };
    let found: Vec<usize> = (0..300).filter(|&index| values[index].is_some()).collect();
    assert_eq!((found, values.len()), (vec![0, 299], 300));
    assert_eq!(codec.commands(), commands);
}

#[test]
fn a_tally_goes_in_packets_that_the_server_takes() {
    let (mut codec, mut out) = (ready(), Vec::new());
    // No server takes less than 1,024 bytes, whatever it says.
    codec.limit_packets(0);
    let names: Vec<String> = (0..100).map(|index| format!("field {index}")).collect();
    let (records, fields) = (keys(&[b"r"]), names.iter().map(String::as_bytes).collect::<KeyList>());
    codec.say(&Op::Tally { records: records.lend(), fields: fields.lend(), by: 1 }, &mut out).expect("a question");
    let packets = out.windows(4).filter(|part| part == b" END").count();
    assert!(packets > 2, "{packets}");
    let heard = hear_all(&mut codec, &[&done(2).repeat(packets)]).expect("an answer");
    assert_eq!(heard, [Got::Done]);
}

/// It needs no statement, and an answer all the same, in its turn.
#[test]
fn a_list_of_nothing_is_answered_in_its_turn() {
    let (mut codec, mut out, none) = (ready(), Vec::new(), KeyList::default());
    for op in [
        Op::GetMany(none.lend()),
        Op::NumberMany(none.lend()),
        Op::SetMany(Pairs::default()),
        Op::Tally { records: none.lend(), fields: none.lend(), by: 1 },
    ] {
        codec.say(&op, &mut out).expect("a question");
    }
    assert_eq!(out, packet(0, b"\x0e").repeat(4));
    let heard = hear_all(&mut codec, &[&done(0).repeat(4)]).expect("four answers");
    assert_eq!(heard, [Got::Values(Vec::new()), Got::Numbers(Vec::new()), Got::Done, Got::Done]);
}

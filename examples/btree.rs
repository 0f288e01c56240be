//! Opens the store of CONTRIBUTING.md, sets a key and gets it. The store's file is the one that `src/stores/btree.rs`
//! would be: the imports here give it the names that it would find there.

#[path = "contributing/btree.rs"]
mod btree;

use std::time::Duration;

use btree::BTREE;
use kvfair::model;
use kvfair::stores::{Adapter, Facts, Launch, Means, Place, Role, Session, Store};
use model::op::{Fault, Op, Reply};

fn main() -> Result<(), Fault> {
    let store = (BTREE.open)(&Launch::at(Place::Memory, Duration::from_secs(10)))?;
    let mut session = store.session()?;
    assert_eq!(session.ask(&Op::Set { key: b"key", value: b"value", ttl_s: None })?, Reply::Done);
    assert_eq!(session.ask(&Op::Get(b"key"))?, Reply::Value(b"value"));
    session.flush()?;
    println!("{}: {} record", BTREE.name, store.count()?.unwrap_or_default());
    Ok(())
}

//! `null`: forgets everything and answers at once. Its row shows what the job and the harness cost alone.

use super::{Adapter, Facts, Launch, Role, Session, Store};
use crate::model::op::{Fault, Op, Reply, ValueList};
use crate::model::trial::{Durability, Transport};

pub static NULL: Adapter = Adapter {
    name: "null",
    about: "forgets everything: what the job and the harness cost alone",
    role: Role::Null,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[],
    keeps: |level| match level {
        Durability::None => Ok("stores nothing"),
        _ => Err("null stores nothing"),
    },
    stays: |_| false,
    lacks: |_| &[],
    open,
    server: None,
    version: || Ok(env!("CARGO_PKG_VERSION").to_string()),
    get_it: "built in",
};

fn open(_: &Launch) -> Result<Box<dyn Store>, Fault> {
    Ok(Box::new(Null))
}

struct Null;

impl Store for Null {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(Forgetful::default()))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        Ok(Facts {
            version: env!("CARGO_PKG_VERSION").to_string(),
            client_library: "none".to_string(),
            increment: "forgotten".to_string(),
            ..Facts::default()
        })
    }

    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        Ok(Some(0))
    }

    fn expires(&self) -> bool {
        true
    }
}

/// Answers as an empty store would that takes every write.
#[derive(Default)]
struct Forgetful {
    values: ValueList,
    numbers: Vec<Option<i64>>,
}

impl Session for Forgetful {
    #[inline]
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        Ok(match *op {
            Op::Get(_) | Op::Number(_) | Op::GetVersion(_) | Op::Delete(_) | Op::ReadTally(_) => Reply::Missing,
            Op::Set { .. } | Op::SetMany(_) | Op::SetIfAbsent { .. } | Op::Cas { .. } => Reply::Done,
            Op::Add { .. } | Op::AddMany(_) | Op::Tally { .. } => Reply::Done,
            Op::Increment { by, .. } => Reply::Number(by),
            Op::GetMany(keys) => {
                self.values.reset(keys.len());
                Reply::Values(self.values.lend())
            }
            Op::NumberMany(keys) => {
                self.numbers.clear();
                self.numbers.resize(keys.len(), None);
                Reply::Numbers(&self.numbers)
            }
            Op::Scan { .. } => Reply::Rows(Default::default()),
        })
    }

    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

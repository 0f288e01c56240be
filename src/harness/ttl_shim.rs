//! A store that lets nothing expire, asked as if it did: times to live are left out and counted, or refused with
//! `--strict`. It must not know which store it is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::op::{Fault, Op, Reply};
use crate::model::record::TTLS_LEFT_OUT;
use crate::stores::store_stats::StoreStats;
use crate::stores::{Facts, Session, Store};

const STRICT: &str = "it lets nothing expire, and with --strict no time to live of the recording is left out";

pub struct TtlShim<'s> {
    store: &'s dyn Store,
    is_strict: bool,
    left_out: AtomicU64,
}

impl<'s> TtlShim<'s> {
    pub fn new(store: &'s dyn Store, is_strict: bool) -> TtlShim<'s> {
        TtlShim { store, is_strict, left_out: AtomicU64::new(0) }
    }
}

impl Store for TtlShim<'_> {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(Asking { inner: self.store.session()?, shim: self }))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        self.store.facts()
    }

    fn final_flush(&self) -> Result<(), Fault> {
        self.store.final_flush()
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        self.store.count()
    }

    fn stats(&self) -> Result<StoreStats, Fault> {
        self.store.stats()
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        let mut counters = self.store.counters();
        counters.insert(TTLS_LEFT_OUT.to_string(), self.left_out.load(Ordering::Relaxed));
        counters
    }
}

struct Asking<'s> {
    inner: Box<dyn Session + 's>,
    shim: &'s TtlShim<'s>,
}

impl Session for Asking<'_> {
    fn ask<'a>(&'a mut self, op: &Op<'_>) -> Result<Reply<'a>, Fault> {
        match *op {
            Op::Set { ttl_s: Some(_), .. } if self.shim.is_strict => Err(Fault::Unsupported(STRICT.to_string())),
            Op::Set { key, value, ttl_s: Some(_) } => {
                self.shim.left_out.fetch_add(1, Ordering::Relaxed);
                self.inner.ask(&Op::Set { key, value, ttl_s: None })
            }
            _ => self.inner.ask(op),
        }
    }

    fn expect(&self, key: &[u8]) {
        self.inner.expect(key);
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.inner.flush()
    }

    fn commands(&self) -> Option<u64> {
        self.inner.commands()
    }
}

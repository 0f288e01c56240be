//! What servers of RESP do with their replicas: writes that wait for them, and a replica that becomes a primary.

use std::time::Duration;

use super::{RespServer, ask, info, strange};
use crate::model::op::{Fault, Op, Reply};
use crate::protocol::resp::{Resp, Value};
use crate::stores::blocking::{Blocking, BlockingConnection};
use crate::stores::replication::{Failover, LogPosition};
use crate::stores::{Place, Session};

/// A session whose writes are acknowledged only when so many replicas have them.
pub struct Waiting {
    session: Blocking<Resp>,
    replicas: u32,
    /// How long a write waits for them.
    limit: Duration,
    /// WAIT commands so far.
    waits: u64,
}

impl Waiting {
    pub fn new(session: Blocking<Resp>, replicas: u32, patience: Duration) -> Waiting {
        // The server must answer before the client gives up.
        Waiting { session, replicas, limit: patience / 2, waits: 0 }
    }

    /// <https://redis.io/docs/latest/commands/wait/>
    fn wait(&mut self) -> Result<(), Fault> {
        self.waits += 1;
        let (replicas, limit_ms) = (self.replicas, self.limit.as_millis().max(1));
        let connection = self.session.connection();
        match ask(connection, &[b"WAIT", replicas.to_string().as_bytes(), limit_ms.to_string().as_bytes()])? {
            Value::Number(have) if have >= i64::from(replicas) => Ok(()),
            Value::Number(have) => Err(Fault::Refused(format!(
                "{}: {have} of {replicas} replicas had the write after {limit_ms} ms (WAIT)",
                connection.name()
            ))),
            Value::Error(words) => Err(Fault::Refused(format!("{}: WAIT: {words}", connection.name()))),
            other => Err(strange(connection, "WAIT", &other)),
        }
    }
}

impl Session for Waiting {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        if op.is_read() {
            return self.session.ask(op);
        }
        let reply = match self.session.ask(op)? {
            Reply::Done => Reply::Done,
            Reply::Missing => Reply::Missing,
            Reply::Conflict => Reply::Conflict,
            Reply::Number(number) => Reply::Number(number),
            other => return Err(Fault::Garbled(format!("{} was answered by {other:?}", op.name()))),
        };
        self.wait()?;
        Ok(reply)
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.session.flush()
    }

    fn commands(&self) -> Option<u64> {
        self.session.commands().map(|commands| commands + self.waits)
    }
}

/// <https://redis.io/docs/latest/commands/replicaof/>
impl Failover for RespServer {
    /// What it has applied. It keeps no more, and it tells its primary of no more.
    fn received(&self) -> Result<LogPosition, Fault> {
        let told = info(self.connect()?.connection(), &[b"INFO", b"replication"])?;
        Ok(super::position_told(&told).unwrap_or(LogPosition { bytes: 0, is_linked: false }))
    }

    fn promote(&self) -> Result<(), Fault> {
        replica_of(self.connect()?.connection(), b"NO", b"ONE")
    }

    fn is_primary(&self) -> Result<bool, Fault> {
        let told = info(self.connect()?.connection(), &[b"INFO", b"replication"])?;
        Ok(told.get("role").is_some_and(|role| role == "master"))
    }

    fn follow(&self, primary: &Place) -> Result<(), Fault> {
        let Place::Tcp { host, port } = primary else {
            return Err(Fault::Unsupported(format!("a replica cannot follow {primary}")));
        };
        replica_of(self.connect()?.connection(), host.as_bytes(), port.to_string().as_bytes())
    }
}

fn replica_of(connection: &mut BlockingConnection, host: &[u8], port: &[u8]) -> Result<(), Fault> {
    match ask(connection, &[b"REPLICAOF", host, port])? {
        Value::Text(_) => Ok(()),
        Value::Error(words) => Err(Fault::Refused(format!("{}: REPLICAOF: {words}", connection.name()))),
        other => Err(strange(connection, "REPLICAOF", &other)),
    }
}

//! What a connection of RESP2 waits for.

/// The answer that an op waits for.
#[derive(Clone, Copy, PartialEq)]
pub enum Awaited {
    Login,
    Select,
    Asking,
    Status,
    Absent,
    Removed,
    Sum,
    Value,
    Count,
    Values(usize),
    Counts(usize),
    /// `+OK` so many times, then the value.
    Watched {
        epoch: u64,
        statuses: usize,
    },
    /// MULTI, SET and EXEC.
    Swap,
    /// A check-and-set whose version is over: nothing was written.
    Stale,
    Sums(usize),
    Fields,
}

impl Awaited {
    #[cold]
    pub fn expected(self) -> &'static str {
        match self {
            Awaited::Login | Awaited::Select | Awaited::Asking | Awaited::Status => "+OK",
            Awaited::Absent => "+OK or $-1",
            Awaited::Removed => ":1 or :0",
            Awaited::Sum => "a sum",
            Awaited::Swap => "what became of MULTI, SET and EXEC",
            Awaited::Stale => "+PONG",
            _ => "a bulk string",
        }
    }
}

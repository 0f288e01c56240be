//! What has come of the answer to an op, packet by packet, and what it says.
//!
//! The packets: <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html>.

use super::asking::Prepared;
use super::packets::{Done, ERROR, FULL, Payload, is_end, read, split_bytes};
use super::{Awaited, Mysql, PACKET_MAX};
use crate::model::op::{Fault, Reply};
use crate::protocol::Decoded;
use crate::protocol::sql::Columns;
use crate::protocol::text::garbled;

/// What has come of the answer to the op in front.
#[derive(Default)]
pub(super) struct Answer {
    /// Some packet of it has come.
    pub(super) is_begun: bool,
    /// Statements that are answered.
    statements: usize,
    stage: Stage,
    /// The number of the last packet.
    pub(super) packet: u8,
    /// The beginning of a payload that goes on in the next packet.
    payload: Vec<u8>,
    changed: u64,
    last_insert_id: u64,
    is_matched: bool,
    refusal: Option<String>,
    /// The number of a statement that is being prepared.
    id: u32,
}

/// Which part of the answer to a statement is next.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Begin,
    /// Descriptions of so many columns, and their end; of a statement that is prepared maybe twice.
    Columns(usize),
    Rows,
}

impl Answer {
    /// The columns of its rows are described, and nothing of a row waits for its end.
    pub(super) fn is_at_rows(&self) -> bool {
        self.stage == Stage::Rows && self.payload.is_empty()
    }
}

/// What one packet has come to.
pub(super) enum Step {
    /// More is to come.
    Again,
    /// What was no op.
    End(Decoded<'static>),
    /// All of an op's answer has come.
    Answered,
}

/// What was answered.
impl Mysql {
    pub(super) fn absorb(
        &mut self,
        awaited: Awaited,
        number: u8,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step, Fault> {
        if awaited == Awaited::Login {
            return Ok(match self.greeting.hear(number, payload, out)? {
                Decoded::Again => Step::Again,
                heard => Step::End(heard),
            });
        }
        let answer = &mut self.answer;
        answer.is_begun = true;
        // The first one follows the number of the last packet of the question.
        let is_first = answer.stage == Stage::Begin && answer.payload.is_empty();
        let expected = if is_first { number } else { answer.packet.wrapping_add(1) };
        if number != expected {
            return Err(garbled(&format!("packet {expected} of an answer"), &[&[number], payload].concat()));
        }
        answer.packet = number;
        if payload.len() < FULL && answer.payload.is_empty() {
            return self.absorb_payload(awaited, payload, out);
        }
        answer.payload.extend_from_slice(payload);
        if answer.payload.len() > PACKET_MAX {
            return Err(garbled("a packet of at most 1 GiB", payload));
        }
        if payload.len() == FULL {
            return Ok(Step::Again);
        }
        let whole = std::mem::take(&mut answer.payload);
        self.absorb_payload(awaited, &whole, out)
    }

    fn absorb_payload(&mut self, awaited: Awaited, payload: &[u8], out: &mut Vec<u8>) -> Result<Step, Fault> {
        match self.answer.stage {
            Stage::Begin => self.absorb_first(awaited, payload, out),
            Stage::Columns(left) => self.absorb_column(awaited, left, payload, out),
            Stage::Rows if is_end(payload) => Ok(self.statement_answered(awaited)),
            Stage::Rows => {
                // No row begins so.
                if payload.first() == Some(&ERROR) {
                    return self.absorb_first(awaited, payload, out);
                }
                let row = awaited.rows().zip(Row::of(payload));
                let absorbed = row.and_then(|(of, row)| self.gathered.absorb(of, row));
                absorbed.ok_or_else(|| garbled("a row of our own table", payload)).map(|()| Step::Again)
            }
        }
    }

    fn absorb_first(&mut self, awaited: Awaited, payload: &[u8], out: &mut Vec<u8>) -> Result<Step, Fault> {
        // It begins like the end of a command, and has the number of a statement where that has its rows.
        if let (Awaited::Prepared(statement, rows), Some(&0)) = (awaited, payload.first()) {
            return self.absorb_prepared((statement, rows), payload, out);
        }
        match read(payload)? {
            Payload::Error(error) if error.is_end() => Err(error.lost()),
            Payload::Error(error) if matches!(awaited, Awaited::Prepared(..)) => {
                Err(Fault::Refused(format!("preparing a statement: {}", error.words)))
            }
            Payload::Error(error) => {
                self.answer.refusal.get_or_insert(error.words);
                Ok(self.statement_answered(awaited))
            }
            Payload::Done(done) if awaited.columns(self.answer.statements) == 0 => {
                self.absorb_done(&done);
                Ok(self.statement_answered(awaited))
            }
            Payload::Other(&[columns]) if usize::from(columns) == awaited.columns(self.answer.statements) => {
                self.answer.stage = Stage::Columns(usize::from(columns));
                Ok(Step::Again)
            }
            _ => Err(garbled("the answer to a prepared statement", payload)),
        }
    }

    /// The number of a statement; descriptions of its parameters and columns follow.
    fn absorb_prepared(&mut self, which: Prepared, payload: &[u8], out: &mut Vec<u8>) -> Result<Step, Fault> {
        let numbers = payload.strip_prefix(b"\0").and_then(|rest| rest.first_chunk::<8>());
        let Some(&[a, b, c, d, columns, more_columns, parameters, more_parameters]) = numbers else {
            return Err(garbled("the number of a prepared statement", payload));
        };
        // Each list that is not empty has an end.
        let counted = |low: u8, high: u8| match usize::from(u16::from_le_bytes([low, high])) {
            0 => 0,
            count => count + 1,
        };
        let left = counted(columns, more_columns) + counted(parameters, more_parameters);
        self.answer.id = u32::from_le_bytes([a, b, c, d]);
        self.answer.stage = Stage::Columns(left);
        if left == 0 { Ok(self.end_of_prepared(which, out)) } else { Ok(Step::Again) }
    }

    fn end_of_prepared(&mut self, which: Prepared, out: &mut Vec<u8>) -> Step {
        self.prepared(which, self.answer.id, out);
        Step::End(Decoded::Greeted)
    }

    fn statement_answered(&mut self, awaited: Awaited) -> Step {
        let answer = &mut self.answer;
        answer.statements += 1;
        answer.stage = Stage::Begin;
        if answer.statements == awaited.answers() { Step::Answered } else { Step::Again }
    }

    fn absorb_done(&mut self, done: &Done<'_>) {
        self.answer.changed = self.answer.changed.saturating_add(done.rows);
        self.answer.last_insert_id = done.last_insert_id;
        // A row that is set to what it was counts as found here only.
        self.answer.is_matched = done.info.windows(MATCHED.len()).any(|words| words == MATCHED);
    }

    fn absorb_column(
        &mut self,
        awaited: Awaited,
        left: usize,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step, Fault> {
        match (awaited, left) {
            (Awaited::Prepared(statement, rows), 0 | 1) => return Ok(self.end_of_prepared((statement, rows), out)),
            (_, 0) if is_end(payload) => self.answer.stage = Stage::Rows,
            (_, 0) => return Err(garbled("the end of the columns", payload)),
            (_, left) => self.answer.stage = Stage::Columns(left - 1),
        }
        Ok(Step::Again)
    }

    /// What is awaited next.
    pub(super) fn end(&mut self, awaited: Awaited) {
        self.waiting.pop();
        self.answer = Answer::default();
        self.gathered.end(awaited.keys());
    }

    /// The answer, all of which has come.
    pub(super) fn answered(&mut self, awaited: Awaited) -> Decoded<'_> {
        let answer = std::mem::take(&mut self.answer);
        if let Some(words) = answer.refusal.or_else(|| self.refusal(awaited, answer.changed)) {
            self.end(awaited);
            return Decoded::Refused(words);
        }
        if let Some(of) = awaited.rows().filter(|_| awaited != Awaited::AddedNothing { is_sum: false }) {
            self.waiting.pop();
            return Decoded::Reply(self.gathered.answer(of, awaited.keys()));
        }
        self.end(awaited);
        Decoded::Reply(match awaited {
            // A row that was inserted has what was added; one that was updated counts twice, and tells its sum.
            Awaited::Sum(by) if answer.changed == 1 => Reply::Number(by),
            Awaited::Sum(_) => Reply::Number(answer.last_insert_id as i64),
            Awaited::Deleted if answer.changed == 0 => Reply::Missing,
            Awaited::Kept if answer.changed == 0 => Reply::Conflict,
            Awaited::Swapped if !answer.is_matched => Reply::Conflict,
            _ => Reply::Done,
        })
    }

    /// Why what came is no answer to the op, where it is none.
    fn refusal(&self, awaited: Awaited, changed: u64) -> Option<String> {
        match awaited {
            // Nothing has changed: what is there is a value.
            Awaited::Sum(_) | Awaited::Added if changed == 0 => Some(self.gathered.no_counter(self.store)),
            _ => self.gathered.refusal(awaited.rows()?, self.store),
        }
    }
}

/// A row in the binary format, read column by column.
struct Row<'b> {
    /// A bit for each column from the third bit on: whether it is NULL.
    nulls: u8,
    column: u8,
    rest: &'b [u8],
}

impl<'b> Row<'b> {
    /// Of at most six columns, whose bits fit into a byte.
    fn of(payload: &'b [u8]) -> Option<Row<'b>> {
        let (&nulls, rest) = payload.strip_prefix(b"\0")?.split_first()?;
        Some(Row { nulls, column: 0, rest })
    }

    fn is_null(&mut self) -> bool {
        self.column += 1;
        self.nulls & (2 << self.column) != 0
    }
}

impl<'b> Columns<'b> for Row<'b> {
    fn bytes(&mut self) -> Option<Option<&'b [u8]>> {
        if self.is_null() {
            return Some(None);
        }
        let (bytes, rest) = split_bytes(self.rest)?;
        self.rest = rest;
        Some(Some(bytes))
    }

    fn number(&mut self) -> Option<Option<i64>> {
        if self.is_null() {
            return Some(None);
        }
        let (number, rest) = self.rest.split_first_chunk::<8>()?;
        self.rest = rest;
        Some(Some(i64::from_le_bytes(*number)))
    }

    fn is_read(&self) -> bool {
        self.rest.is_empty()
    }
}

/// How the server says that an update has found its row, behind the length of what it says or not.
const MATCHED: &[u8] = b"Rows matched: 1";

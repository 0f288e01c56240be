//! The statements that ops are: prepared, so that values travel as they are (the binary format) and nothing is parsed
//! twice; but for tallies, which may have as many pairs as they like.

use rows::{RECORDS, TALLIES};

use crate::protocol::mysql::{PreparedStatement, Wording};
use crate::stores::rows;

pub fn wording() -> Wording {
    Wording {
        statement: sql,
        tally: format!("INSERT INTO {TALLIES} VALUES"),
        tally_end: " ON DUPLICATE KEY UPDATE n = n + VALUES(n)".to_string(),
    }
}

/// A value, or a counter in decimal. A value that is there is handed on untouched.
const BYTES: &str = "COALESCE(v, n)";
/// MySQL keeps no version of a row: 64 bits of a digest stand for one, reckoned by the server, so that a value does not
/// travel twice. Equal values have equal versions.
const DIGEST: &str = "CAST(CONV(LEFT(MD5(v), 16), 16, 10) AS UNSIGNED)";

fn sql(statement: PreparedStatement, rows: usize) -> String {
    let several = |one: &str| vec![one; rows].join(", ");
    match statement {
        PreparedStatement::Get => format!("SELECT {BYTES} FROM {RECORDS} WHERE k = ?"),
        PreparedStatement::GetMany => format!("SELECT k, {BYTES} FROM {RECORDS} WHERE k IN ({})", several("?")),
        PreparedStatement::Number => format!("SELECT n FROM {RECORDS} WHERE k = ?"),
        PreparedStatement::NumberMany => format!("SELECT k, n FROM {RECORDS} WHERE k IN ({})", several("?")),
        PreparedStatement::GetVersion => format!("SELECT v, {DIGEST} FROM {RECORDS} WHERE k = ?"),
        PreparedStatement::Cas => format!("UPDATE {RECORDS} SET v = ? WHERE k = ? AND {DIGEST} = ?"),
        // VALUES(v) is the value that would have been inserted; MariaDB has no other word for it.
        PreparedStatement::Set => format!(
            "INSERT INTO {RECORDS} (k, v) VALUES {} ON DUPLICATE KEY UPDATE v = VALUES(v), n = NULL",
            several("(?, ?)")
        ),
        PreparedStatement::SetIfAbsent => format!("INSERT IGNORE INTO {RECORDS} (k, v) VALUES (?, ?)"),
        PreparedStatement::Delete => format!("DELETE FROM {RECORDS} WHERE k = ?"),
        PreparedStatement::DeleteTally => format!("DELETE FROM {TALLIES} WHERE record = ?"),
        // LAST_INSERT_ID(expression) sends the sum back with the acknowledgement, without a sign; where the sum would
        // leave 64 bits, the addition fails.
        // <https://dev.mysql.com/doc/refman/8.4/en/information-functions.html>
        PreparedStatement::Increment => format!(
            "INSERT INTO {RECORDS} (k, n) VALUES (?, ?)
                ON DUPLICATE KEY UPDATE n = CAST(LAST_INSERT_ID(n + VALUES(n)) AS SIGNED)"
        ),
        // Where there is a value, n is NULL and stays so: the row does not change. VALUES(n) is the step.
        PreparedStatement::Add => format!(
            "INSERT INTO {RECORDS} (k, n) VALUES {} ON DUPLICATE KEY UPDATE n = n + VALUES(n)",
            several("(?, ?)")
        ),
        PreparedStatement::ReadTally => format!("SELECT field, n FROM {TALLIES} WHERE record = ?"),
        PreparedStatement::Scan => format!("SELECT k, {BYTES} FROM {RECORDS} WHERE k >= ? ORDER BY k LIMIT ?"),
    }
}

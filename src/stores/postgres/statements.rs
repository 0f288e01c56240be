//! The statements that ops are. Lists are sent as arrays, so that an op is one statement however long it is.

use rows::{RECORDS, TALLIES};

use crate::protocol::postgres::PreparedStatement;
use crate::stores::rows;

/// What `Get` says of a counter: its number in decimal. A value that is there is handed on untouched.
const BYTES: &str = "coalesce(v, n::text::bytea)";

pub fn sql(statement: PreparedStatement) -> String {
    // An upsert that takes a value, and leaves no number.
    let overwrite = "ON CONFLICT (k) DO UPDATE SET v = excluded.v, n = NULL";
    match statement {
        PreparedStatement::Get => format!("SELECT {BYTES} FROM {RECORDS} WHERE k = $1"),
        PreparedStatement::GetMany => format!("SELECT k, {BYTES} FROM {RECORDS} WHERE k = ANY($1)"),
        PreparedStatement::Set => format!("INSERT INTO {RECORDS} (k, v) VALUES ($1, $2) {overwrite}"),
        // In the order of the keys, so that clients do not lock crosswise; of two equal keys the last one counts,
        // because a statement may not change a row twice.
        PreparedStatement::SetMany => format!(
            "INSERT INTO {RECORDS} (k, v) SELECT DISTINCT ON (k) k, v
                FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS given (k, v, place)
                ORDER BY k, place DESC {overwrite}"
        ),
        PreparedStatement::SetIfAbsent => {
            format!("INSERT INTO {RECORDS} (k, v) VALUES ($1, $2) ON CONFLICT (k) DO NOTHING")
        }
        // A tally is looked for only where there is no record.
        PreparedStatement::Delete => format!(
            "WITH gone AS (DELETE FROM {RECORDS} WHERE k = $1 RETURNING 1),
                tallied AS (DELETE FROM {TALLIES} WHERE record = $1 AND NOT EXISTS (SELECT FROM gone) RETURNING 1)
                SELECT (EXISTS (SELECT FROM gone) OR EXISTS (SELECT FROM tallied))::int::bigint"
        ),
        // Gives no row where there is a value.
        PreparedStatement::Increment => format!(
            "INSERT INTO {RECORDS} AS old (k, n) VALUES ($1, $2)
                ON CONFLICT (k) DO UPDATE SET n = old.n + excluded.n WHERE old.v IS NULL RETURNING n"
        ),
        // Changes no row where there is a value.
        PreparedStatement::Add => format!(
            "INSERT INTO {RECORDS} AS old (k, n) VALUES ($1, $2)
                ON CONFLICT (k) DO UPDATE SET n = old.n + excluded.n WHERE old.v IS NULL"
        ),
        // In the order of the keys, so that clients do not lock crosswise.
        PreparedStatement::AddMany => format!(
            "INSERT INTO {RECORDS} AS old (k, n) SELECT k, n FROM unnest($1::bytea[], $2::bigint[]) AS given (k, n)
                ORDER BY k ON CONFLICT (k) DO UPDATE SET n = old.n + excluded.n WHERE old.v IS NULL"
        ),
        PreparedStatement::Number => format!("SELECT n FROM {RECORDS} WHERE k = $1"),
        PreparedStatement::NumberMany => format!("SELECT k, n FROM {RECORDS} WHERE k = ANY($1)"),
        // The transaction that wrote a row is its version: every op is one.
        // <https://www.postgresql.org/docs/current/ddl-system-columns.html>
        PreparedStatement::GetVersion => format!("SELECT v, xmin::text::bigint FROM {RECORDS} WHERE k = $1"),
        PreparedStatement::Cas => {
            format!("UPDATE {RECORDS} SET v = $2, n = NULL WHERE k = $1 AND xmin::text::bigint = $3")
        }
        PreparedStatement::Tally => format!(
            "INSERT INTO {TALLIES} AS old SELECT record, field, $3::bigint
                FROM unnest($1::bytea[]) AS record CROSS JOIN unnest($2::bytea[]) AS field ORDER BY 1, 2
                ON CONFLICT (record, field) DO UPDATE SET n = old.n + excluded.n"
        ),
        PreparedStatement::ReadTally => format!("SELECT field, n FROM {TALLIES} WHERE record = $1"),
        PreparedStatement::Scan => format!("SELECT k, {BYTES} FROM {RECORDS} WHERE k >= $1 ORDER BY k LIMIT $2"),
    }
}

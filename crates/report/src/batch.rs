//! Batch engines beside stores: what counting incrementally costs over a batch count.

use super::cells::Row;
use super::costs::BATCH_ENGINES;
use super::standing::Standings;
use super::versus::{in_a_sentence, versus};
use kvfair_core::record::Record;

/// "Counting incrementally in lmdb took 3.1 times as long as the batch count by duckdb.": the best store and the best
/// engine. Empty where there are no two of them.
pub fn sentence(rows: &[Row], standings: &Standings<'_>) -> String {
    let numbered = || rows.iter().filter(|row| row.numbers.is_some());
    let seconds = |row: &&Row| row.numbers.as_ref().map_or(f64::INFINITY, |numbers| numbers.seconds);
    let store = numbered().filter(|row| !row.baseline).min_by(|one, other| seconds(one).total_cmp(&seconds(other)));
    // Rows of a group are sorted by their seconds.
    let engine = numbered().find(|row| row.group == BATCH_ENGINES);
    let (Some(store), Some(engine)) = (store, engine) else { return String::new() };
    let (store, engine) = (store.target.as_str(), engine.target.as_str());
    let both = standings.by(Record::cost, |label| label == store || label == engine);
    let Some(ratio) = both.and_then(|both| both.versus(store, engine)) else { return String::new() };
    let ratio = in_a_sentence(&versus(ratio), &format!("as long as the batch count by {engine}"));
    format!("Counting incrementally in {store} took {ratio}.")
}

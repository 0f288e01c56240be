//! The posts that kvfair began with, as data: where each comes from, its table, the sentences that compare cells of it,
//! and the command that is nearest today. The files know stores by name; no code here does.

use anyhow::{Context, Result};
use kvfair_core::part::Part;
use serde::{Deserialize, Serialize};

/// Each a file; the numbers are how people name them.
const FILES: [(&str, &str); 5] = [
    ("000", include_str!("posts/000.json")),
    ("001", include_str!("posts/001.json")),
    ("002", include_str!("posts/002.json")),
    ("003", include_str!("posts/003.json")),
    ("004", include_str!("posts/004.json")),
];

const DECLINED: &str = include_str!("posts/declined.json");

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Post {
    pub number: String,
    pub title: String,
    pub author: String,
    pub date: String,
    pub address: String,
    pub machine: String,
    pub software: String,
    /// What is typed behind `kvfair`, without targets.
    pub command: Vec<String>,
    /// What the table counts, in words.
    pub about: String,
    /// What the figures of the table are.
    pub unit: Unit,
    /// What costs are compared in unless a sentence says another.
    pub measure: CostKind,
    /// How the command is not what the post did.
    pub differs: Vec<String>,
    pub panels: Vec<Panel>,
    pub sentences: Vec<Sentence>,
}

/// Cells whose ratios are of the same base.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    pub title: String,
    /// Of a sweep the part and the number of clients: its cells are of this point.
    pub part: Option<Part>,
    #[serde(default)]
    pub clients: u32,
    /// The cell that the others are in times of.
    pub base: String,
    pub cells: Vec<PostCell>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostCell {
    /// One in the post.
    pub id: String,
    /// As the post names it.
    pub name: String,
    /// What the post published, of a single run.
    pub figure: Option<f64>,
    pub target: String,
    /// What runs where the store of the post is not installed, the best first.
    #[serde(default)]
    pub stand_ins: Vec<StandIn>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandIn {
    pub target: String,
    /// What stands in for what.
    pub words: String,
    /// It is the engine in the client's process, in place of a server: comparable with engines only.
    #[serde(default)]
    pub is_engine: bool,
    /// The program that was found in place of the store's own names itself so: what is typed is the store.
    #[serde(default)]
    pub names_itself: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Seconds,
    UnitsPerS,
    RequestsPerS,
}

/// What is compared: less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CostKind {
    Seconds,
    Cpu,
    Memory,
    /// The standard deviation of the requests of whole seconds, in their mean.
    Unsteadiness,
}

/// What the post says, in short and in our words.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sentence {
    pub says: String,
    pub source: SentenceSource,
    pub cost: Option<CostKind>,
    #[serde(default)]
    pub is: Direction,
    /// The cells that are compared: the first costs less than the second, or as much.
    pub pairs: Vec<[String; 2]>,
}

/// Where a sentence comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SentenceSource {
    /// The post says it.
    Text,
    /// Its table shows it.
    Table,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    #[default]
    Less,
    Level,
}

/// What a post mentions and kvfair does not measure.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Declined {
    pub what: String,
    pub why: String,
}

/// All posts, in the order of their numbers.
pub fn posts() -> Result<Vec<Post>> {
    let read = |(number, text): &(&str, &str)| serde_json::from_str(text).with_context(|| format!("post {number}"));
    FILES.iter().map(read).collect()
}

pub fn numbers() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(number, _)| *number)
}

pub fn declined() -> Result<Vec<Declined>> {
    serde_json::from_str(DECLINED).context("what is declined")
}

impl Panel {
    /// The part and the number of clients of its point; nothing of a job without points.
    pub fn point(&self) -> Option<(Part, u32)> {
        Some((self.part?, self.clients))
    }
}

impl Post {
    pub fn cells(&self) -> impl Iterator<Item = (&Panel, &PostCell)> {
        self.panels.iter().flat_map(|panel| panel.cells.iter().map(move |cell| (panel, cell)))
    }

    pub fn cell(&self, id: &str) -> Option<(&Panel, &PostCell)> {
        self.cells().find(|(_, cell)| cell.id == id)
    }
}

impl PostCell {
    /// The store of the post, then what stands in for it.
    pub fn candidates(&self) -> impl Iterator<Item = (&str, Option<&StandIn>)> {
        let stand_ins = self.stand_ins.iter().map(|stand_in| (stand_in.target.as_str(), Some(stand_in)));
        std::iter::once((self.target.as_str(), None)).chain(stand_ins)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn sentences_and_bases_name_cells_of_the_same_point() {
        let posts = posts().expect("they can be read");
        assert_eq!(posts.iter().map(|post| post.number.as_str()).collect::<Vec<_>>(), numbers().collect::<Vec<_>>());
        for post in &posts {
            let ids: BTreeSet<&str> = post.cells().map(|(_, cell)| cell.id.as_str()).collect();
            assert_eq!(ids.len(), post.cells().count(), "{}: each id once", post.number);
            assert!(post.panels.iter().all(|panel| ids.contains(panel.base.as_str())), "{}", post.number);
            for sentence in &post.sentences {
                assert!(!sentence.pairs.is_empty() && sentence.says.ends_with('.'), "{}", sentence.says);
                for [one, other] in &sentence.pairs {
                    let of = |id: &str| post.cell(id).unwrap_or_else(|| panic!("{}: {id}", post.number)).0.point();
                    assert_eq!(of(one), of(other), "{}", sentence.says);
                }
            }
        }
        assert_eq!(declined().expect("they can be read").len(), 5);
    }

    /// What is read off a table must be in it.
    #[test]
    fn sentences_of_tables_hold_in_them() {
        for post in posts().expect("they can be read") {
            for sentence in post.sentences.iter().filter(|sentence| sentence.source == SentenceSource::Table) {
                for [one, other] in &sentence.pairs {
                    let figure = |id: &str| post.cell(id).and_then(|(_, cell)| cell.figure).expect("a figure");
                    let (one, other) = match post.unit {
                        Unit::Seconds => (figure(one), figure(other)),
                        Unit::UnitsPerS | Unit::RequestsPerS => (figure(other), figure(one)),
                    };
                    let holds = if sentence.is == Direction::Level { one == other } else { one < other };
                    assert!(holds, "{}: {}: {one} {other}", post.number, sentence.says);
                }
            }
        }
    }
}

//! People and the pages they like: reading profiles, and the recipe `likes10k`. It must not know what is counted of
//! them.

use std::io::{self, BufWriter, Write};
use std::sync::LazyLock;

use super::input::fields::{self, Wanted};
use super::lines::UnitLines;
use super::{InputFault, Source, names};
use kvfair_core::op::{KeyList, Keys};
use kvfair_core::trial::JobSettings;
use kvfair_draw::{Alias, Rng, mix, zipf};

/// The forms in which profiles are read; the first one is the recipe's. All others are turned into these.
const FORMS: &[&str] = &["jsonl", "tsv"];

/// The field of the recipe's JSON Lines.
pub const FIELD: &str = "likes";
static LIKES: LazyLock<[String; 1]> = LazyLock::new(|| [FIELD.to_string()]);

/// What a field of pages holds.
pub static LIKED: Wanted = Wanted { line: "a profile", one: "a page name", list: Some("a list of page names") };

/// The pages that one person likes: in byte order, each once.
#[derive(Default)]
pub struct Profile {
    pages: KeyList,
    /// The names as the line has them, one after another, and where each begins and ends.
    text: Vec<u8>,
    spans: Vec<(usize, usize)>,
}

impl Profile {
    pub fn pages(&self) -> Keys<'_> {
        self.pages.lend()
    }

    fn clear(&mut self) {
        self.pages.clear();
        self.text.clear();
        self.spans.clear();
    }

    fn push(&mut self, page: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(page);
        self.spans.push((start, self.text.len()));
    }

    fn sort(&mut self) {
        let text = &self.text;
        self.spans.sort_unstable_by(|a, b| text[a.0..a.1].cmp(&text[b.0..b.1]));
        self.spans.dedup_by(|a, b| text[a.0..a.1] == text[b.0..b.1]);
        self.spans.iter().for_each(|span| self.pages.push(&text[span.0..span.1]));
    }
}

/// The profiles of one input, in its order.
pub struct Profiles {
    lines: UnitLines,
    form: fn(&str, &mut Profile) -> Result<(), String>,
}

impl Profiles {
    pub fn open(settings: &JobSettings, source: &dyn Source) -> io::Result<Profiles> {
        let form = match settings.format.as_str() {
            "jsonl" => read_json,
            "tsv" => read_tabs,
            other => {
                let what = format!("'{other}' is no form of profiles: {}", FORMS.join(" or "));
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
        };
        Ok(Profiles { lines: UnitLines::open("profile", settings, source)?, form })
    }

    /// Puts the next profile in place of what `profile` held; false when there are no more.
    pub fn read(&mut self, profile: &mut Profile) -> Result<bool, InputFault> {
        let form = self.form;
        self.lines.read(|line| {
            profile.clear();
            if line.is_empty() {
                return Err("an empty line".to_string());
            }
            let text =
                str::from_utf8(line).map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to() + 1))?;
            form(text, profile)?;
            if profile.spans.iter().any(|(start, end)| start == end) {
                return Err("an empty page name".to_string());
            }
            profile.sort();
            Ok(())
        })
    }

    /// Bad lines passed over so far.
    pub fn skipped(&self) -> u64 {
        self.lines.skipped()
    }
}

/// `user<TAB>page<TAB>page`: a user alone is an empty profile.
fn read_tabs(line: &str, profile: &mut Profile) -> Result<(), String> {
    let mut start = memchr::memchr(b'\t', line.as_bytes());
    while let Some(tab) = start {
        let rest = &line.as_bytes()[tab + 1..];
        let end = memchr::memchr(b'\t', rest);
        profile.push(&rest[..end.unwrap_or(rest.len())]);
        start = end.map(|end| tab + 1 + end);
    }
    Ok(())
}

/// `{"user": "...", "likes": ["page", "page"]}`: other fields are ignored.
fn read_json(line: &str, profile: &mut Profile) -> Result<(), String> {
    fields::each_in(line, &*LIKES, &LIKED, |page| profile.push(page))
}

/// The seed of the default data: its most liked page has 406 fans and shares at most 22 of them with another, as in
/// the post.
pub const LIKES10K_SEED: u64 = 797;

/// The post's two pages stand where the default seed has such a pair.
const POSTED: [(u32, &str); 2] = [(1, "Michael Jackson"), (3, "Green Bay Packers")];

/// Likes of one person: the median and the sigma of a lognormal law, rounded and held between 1 and 300.
const LIKES_MEDIAN: f64 = 9.71;
const LIKES_SIGMA: f64 = 0.8;
const LIKES_MAX: u32 = 300;
/// Pages are liked by rank^-0.6.
const PAGE_EXPONENT: f64 = 0.6;
/// People and pages belong to communities, whose sizes go by rank^-0.5.
const COMMUNITIES: u32 = 200;
const COMMUNITY_EXPONENT: f64 = 0.5;
/// Puts the most liked page into a community of middling size: in a large one it would have 550 fans.
const COMMUNITY_SALT: u64 = 14 << 32;

/// The recipe `likes10k`: `users` profiles as JSON Lines. The same seed gives the same bytes everywhere, and the first
/// profiles of a longer file are those of a shorter one.
pub fn likes10k(seed: u64, users: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    let names: Vec<String> = (1..=names::COUNT).map(page_name).collect();
    let mut crowd = Crowd::new(seed);
    let mut likes = Vec::new();
    for user in 1..=users {
        crowd.next(&mut likes);
        write!(out, "{{\"user\": \"user{user:05}\", \"likes\": [")?;
        for (index, rank) in likes.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(out, "{comma}\"{}\"", names[*rank as usize - 1])?;
        }
        out.write_all(b"]}\n")?;
    }
    out.flush()
}

/// The name of the page of that rank. None holds anything that JSON would escape.
fn page_name(rank: u32) -> String {
    let mut name = String::new();
    match POSTED.iter().find(|(posted, _)| *posted == rank) {
        Some((_, posted)) => name.push_str(posted),
        None => names::write(rank, &mut name),
    }
    name
}

/// People without end, as the seed has them.
struct Crowd {
    rng: Rng,
    counts: Alias,
    pages: Alias,
    communities: Alias,
    homes: Vec<Home>,
}

/// One community's pages, by rank, and how they are drawn.
struct Home {
    ranks: Vec<u32>,
    pages: Alias,
}

impl Crowd {
    fn new(seed: u64) -> Crowd {
        let weights = zipf(names::COUNT, PAGE_EXPONENT, 0.0);
        let communities = Alias::new(zipf(COMMUNITIES, COMMUNITY_EXPONENT, 0.0));
        let mut ranks = vec![Vec::new(); COMMUNITIES as usize];
        (1..=names::COUNT).for_each(|rank| ranks[communities.pick(mix(COMMUNITY_SALT + u64::from(rank)))].push(rank));
        let homes = ranks.into_iter().map(|ranks| Home {
            pages: Alias::new(ranks.iter().map(|rank| weights[*rank as usize - 1]).collect()),
            ranks,
        });
        Crowd {
            rng: Rng::new(seed),
            counts: Alias::new(like_counts()),
            homes: homes.collect(),
            pages: Alias::new(weights),
            communities,
        }
    }

    /// The ranks that the next person likes. A page that is drawn again is drawn anew, with a new toss of whether it
    /// comes from the person's own community: half of the draws are from 50,000 pages, so that a small community never
    /// holds a person up.
    fn next(&mut self, likes: &mut Vec<u32>) {
        let rng = &mut self.rng;
        let home = &self.homes[self.communities.pick(rng.draw())];
        let count = 1 + self.counts.pick(rng.draw());
        likes.clear();
        while likes.len() < count {
            let rank = match rng.once_in(1) {
                true => home.ranks[home.pages.pick(rng.draw())],
                false => 1 + self.pages.pick(rng.draw()) as u32,
            };
            if !likes.contains(&rank) {
                likes.push(rank);
            }
        }
    }
}

/// The probabilities of 1, 2, ... likes: what of the lognormal law is rounded to each, and to the two ends all that
/// lies beyond.
fn like_counts() -> Vec<f64> {
    let below = |likes: f64| {
        let deviations = (libm::log(likes) - libm::log(LIKES_MEDIAN)) / LIKES_SIGMA;
        0.5 * libm::erfc(-deviations / std::f64::consts::SQRT_2)
    };
    let share = |likes| {
        let from = if likes == 1 { 0.0 } else { below(f64::from(likes) - 0.5) };
        let to = if likes == LIKES_MAX { 1.0 } else { below(f64::from(likes) + 0.5) };
        to - from
    };
    (1..=LIKES_MAX).map(share).collect()
}

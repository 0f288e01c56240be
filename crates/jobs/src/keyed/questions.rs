//! Which keys are asked for: drawn by each client anew, the same for the same seed, so that whoever checks can draw
//! them again.

use std::io::{self, Write};
use std::sync::Arc;

use super::keytext::KeyText;
use super::writer::Writer;
use crate::{Part, find};
use kvfair_core::load::{At, Keys, Load, SCANNED_MAX, ZIPF_THOUSANDTHS};
use kvfair_core::trial::JobSettings;
use kvfair_draw::{Alias, Rng, mix, zipf};

/// What is asked next, and about which key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// The key's number.
    pub record: u64,
    pub set: bool,
}

/// The questions of one client in one part, in their order. They follow from their count (splitmix64: Steele, Lea,
/// Flood 2014), so that whoever hears or checks draws them once more instead of keeping them, and can begin anywhere.
#[derive(Clone)]
pub struct Questions {
    count: u64,
    begin: u64,
    keys: Chosen,
    sets: Sets,
    /// Where each key has one writer: whose questions these are.
    writer: Option<Writer>,
}

/// How a count becomes a key.
#[derive(Clone)]
enum Chosen {
    /// One after another, each client its own.
    InTurn {
        first: u64,
        step: u64,
        records: u64,
    },
    Uniform {
        records: u64,
    },
    /// The first keys by so much of 2^32 of the questions.
    Hotspot {
        hot: u64,
        share: u64,
        records: u64,
    },
    /// In proportion to weights.
    Weighted(Arc<Alias>),
    /// Drawn beforehand, since drawing takes long; who asks more begins again.
    Listed(Arc<[u32]>),
}

/// Which questions are sets.
#[derive(Clone, Copy, PartialEq)]
enum Sets {
    All,
    None,
    /// So much of 2^32.
    Share(u64),
}

/// splitmix64's step: the golden ratio in 64 bits, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// Makes a second number of a question's, for what must not depend on its key.
const OTHER: u64 = 0x6a09_e667_f3bc_c909;
const LENGTH: u64 = 0xbb67_ae85_84ca_a73b;
/// What is drawn by weights has a table of 8 bytes a key.
pub const WEIGHTED_MAX: u64 = 1 << 24;

impl Questions {
    /// The loading: client `index` of `of` sets its share of all keys.
    pub fn loading(of: u32, index: u32) -> Questions {
        let keys = Chosen::InTurn { first: index.into(), step: of.into(), records: u64::MAX };
        Questions { count: 0, begin: 0, keys, sets: Sets::All, writer: None }
    }

    /// How many were drawn or passed over.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Goes on behind so many questions from the beginning.
    pub fn pass_to(&mut self, count: u64) {
        self.count = count;
    }

    /// Passes over so many.
    #[inline(always)]
    pub fn pass(&mut self, count: u32) {
        self.count += u64::from(count);
    }

    #[inline(always)]
    pub fn sets_only(&self) -> bool {
        self.sets == Sets::All
    }

    #[inline(always)]
    pub fn gets_only(&self) -> bool {
        self.sets == Sets::None
    }

    /// Draws so many, of which only the keys matter.
    #[inline(always)]
    pub fn draw_records(&mut self, count: u32, mut each: impl FnMut(u64)) {
        // What is asked most is drawn without looking at what it is for each anew.
        let (&Chosen::Uniform { records }, None) = (&self.keys, self.writer) else {
            return (0..count).for_each(|_| each(self.draw().record));
        };
        let (begin, first) = (self.begin, self.count);
        self.count += u64::from(count);
        (first..self.count).for_each(|count| each(part_of(random_of(begin, count), records)));
    }

    #[inline(always)]
    pub fn draw(&mut self) -> Question {
        let count = self.count;
        self.count += 1;
        let random = random_of(self.begin, count);
        let record = match &self.keys {
            Chosen::Uniform { records } => part_of(random, *records),
            Chosen::InTurn { first, step, records } => (first + count * step) % records,
            Chosen::Hotspot { hot, share, records } => {
                let is_hot = mix(random ^ !OTHER) >> 32 < *share;
                if is_hot { part_of(random, *hot) } else { hot + part_of(random, records - hot) }
            }
            Chosen::Weighted(alias) => alias.pick(random) as u64,
            Chosen::Listed(records) => records[count as usize % records.len()].into(),
        };
        let set = match self.sets {
            Sets::All => true,
            Sets::None => false,
            Sets::Share(share) => mix(random ^ OTHER) >> 32 < share,
        };
        let record = match self.writer {
            Some(writer) if set => writer.own_key(record),
            _ => record,
        };
        Question { record, set }
    }

    /// How many records the question that was drawn last scans: YCSB's default, 1 to 100, all as often.
    pub fn length(&self) -> u32 {
        let random = mix(self.begin.wrapping_add(self.count.wrapping_mul(STEP)) ^ LENGTH);
        1 + part_of(random, u64::from(SCANNED_MAX)) as u32
    }
}

/// A key out of 64 random bits as YCSB's ScrambledZipfianGenerator chooses one: a rank among 10^10 by Gray's formula
/// ("Quickly generating billion-record synthetic databases", SIGMOD 1994) with YCSB's own zeta of that many, hashed by
/// FNV-1a over its 8 bytes and folded onto the records.
fn ycsb_zipfian(random: u64, records: u64) -> u64 {
    const THETA: f64 = 0.99;
    const RANKS: f64 = 1e10 + 1.0;
    const ZETA: f64 = 26.469_028_201_783_02;
    let uniform = (random >> 11) as f64 / (1_u64 << 53) as f64;
    let zeta_of_two = 1.0 + libm::pow(0.5, THETA);
    let eta = (1.0 - libm::pow(2.0 / RANKS, 1.0 - THETA)) / (1.0 - zeta_of_two / ZETA);
    let rank = match uniform * ZETA {
        reached if reached < 1.0 => 0,
        reached if reached < zeta_of_two => 1,
        _ => (RANKS * libm::pow(eta * uniform - eta + 1.0, 1.0 / (1.0 - THETA))) as u64,
    };
    let hash = rank
        .to_le_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    hash.cast_signed().unsigned_abs() % records
}

/// The random bits of a question.
#[inline(always)]
fn random_of(begin: u64, count: u64) -> u64 {
    mix(begin.wrapping_add(count.wrapping_mul(STEP)))
}

/// A number below `whole` out of 64 random bits: the high part of a product (Lemire, "Fast random integer generation in
/// an interval", 2019; its bias is below 2^-32 here and the same for every store).
#[inline(always)]
fn part_of(random: u64, whole: u64) -> u64 {
    ((u128::from(random) * u128::from(whole)) >> 64) as u64
}

/// All questions of a job: who asks, who loads and who checks draw them from here.
pub struct Asked {
    seed: u64,
    pub load: Load,
    alias: Option<Arc<Alias>>,
}

impl Asked {
    pub fn of(settings: &JobSettings) -> Asked {
        Asked::of_load(load_of(settings), settings.seed())
    }

    pub fn of_load(load: Load, seed: u64) -> Asked {
        let records = load.records as u32;
        let weighted = |weights: Vec<f64>| Some(Arc::new(Alias::new(weights)));
        let alias = match load.keys {
            Keys::Zipf { thousandths } => {
                let mut weights = zipf(records, f64::from(thousandths) / 1000.0, 0.0);
                shuffle(&mut weights, seed);
                weighted(weights)
            }
            Keys::Latest => {
                let mut weights = zipf(records, f64::from(ZIPF_THOUSANDTHS) / 1000.0, 0.0);
                weights.reverse();
                weighted(weights)
            }
            Keys::Uniform | Keys::Sequential | Keys::Hotspot { .. } | Keys::YcsbZipfian => None,
        };
        Asked { seed, load, alias }
    }

    /// What client `index` asks in a part of a point. Points that differ in their rate alone ask differently, or the
    /// later one would write what the earlier one has written.
    pub fn questions(&self, part: Part, at: At, index: u32) -> Questions {
        let round = if at.rate.is_some() { at.number - 1 } else { 0 };
        let who = (part as u64) << 56 | u64::from(at.clients) << 28 | u64::from(round) << 14 | u64::from(index);
        let Load { records, keys, reads, writes, .. } = self.load;
        let begin = mix(self.seed ^ mix(who));
        let keys = match (keys, &self.alias) {
            (_, Some(alias)) => Chosen::Weighted(alias.clone()),
            (Keys::YcsbZipfian, _) => {
                let random = |count: u64| mix(begin.wrapping_add(count.wrapping_mul(STEP)));
                let counts = 0..self.share(part, at, index).max(1);
                Chosen::Listed(counts.map(|count| ycsb_zipfian(random(count), records) as u32).collect())
            }
            (Keys::Sequential, _) => Chosen::InTurn { first: index.into(), step: at.clients.into(), records },
            (Keys::Hotspot { keys, requests }, _) => {
                let hot = (records * u64::from(keys) / 100).clamp(1, records - u64::from(records > 1));
                Chosen::Hotspot { hot, share: (u64::from(requests) << 32) / 100, records }
            }
            _ => Chosen::Uniform { records },
        };
        let sets = match part {
            Part::Set | Part::Load => Sets::All,
            Part::Get | Part::Ask | Part::FinalFlush => Sets::None,
            Part::Run => Sets::Share((u64::from(writes) << 32) / u64::from((reads + writes).max(1))),
        };
        let (index, of) = (index.into(), at.clients.into());
        let writer = self.load.one_writer.then_some(Writer { index, of, records });
        Questions { count: 0, begin, keys, sets, writer }
    }

    /// How many questions client `index` asks in a part of a point, if all are asked and shared out evenly.
    pub fn share(&self, part: Part, at: At, index: u32) -> u64 {
        share(if part == Part::Load { self.load.records } else { at.requests }, index, at.clients)
    }

    /// The first questions of a single client, a line each: `set key:000000012345`.
    pub fn write(&self, units: u64, parts: &[Part], out: &mut dyn Write) -> io::Result<()> {
        let mut key = KeyText::default();
        for &part in parts.iter().filter(|&&part| part != Part::Load) {
            let mut questions = self.questions(part, At::closed(1, units), 0);
            for _ in 0..units {
                let Question { record, set } = questions.draw();
                out.write_all(if set { b"set " } else { b"get " })?;
                out.write_all(key.of(record))?;
                out.write_all(b"\n")?;
            }
        }
        Ok(())
    }
}

/// Fisher and Yates' shuffle, from the end: which key has which rank.
fn shuffle(weights: &mut [f64], seed: u64) {
    let mut random = Rng::new(seed);
    for last in (1..weights.len()).rev() {
        weights.swap(last, part_of(random.draw(), last as u64 + 1) as usize);
    }
}

/// What a job of requests is asked; always there, since the command line fills it in.
pub fn load_of(settings: &JobSettings) -> Load {
    settings.load.clone().unwrap_or_default()
}

/// The points of a job of requests, in the order in which they were named. What nobody gave a number of requests has
/// the job's own, or what its rate asks for.
pub fn points_of(settings: &JobSettings) -> Vec<At> {
    let load = load_of(settings);
    let own = || find(&settings.name).map_or(0, |job| job.default_units);
    load.points(settings.units, own())
}

/// How many of `all` fall to client `index` of `of`.
fn share(all: u64, index: u32, of: u32) -> u64 {
    let (index, of) = (u64::from(index), u64::from(of));
    all / of + u64::from(index < all % of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_shared_out_is_all_there_is() {
        for (all, of) in [(100, 1), (100, 7), (3, 10), (0, 4)] {
            assert_eq!((0..of).map(|index| share(all, index, of)).sum::<u64>(), all);
        }
    }

    /// Three gets to a set.
    fn asked(keys: &str, records: u64) -> Asked {
        let load = Load { records, keys: keys.parse().unwrap(), reads: 3, writes: 1, ..Load::default() };
        let settings = JobSettings {
            name: "mixed".to_string(),
            data: kvfair_core::trial::Data::Recipe { name: String::new(), seed: 1 },
            format: String::new(),
            read_as: None,
            units: None,
            skip_bad: 0,
            via: Default::default(),
            split: Default::default(),
            load: Some(load),
            replay_percent: None,
            ngrams: Default::default(),
            lookup: Default::default(),
            fans: Default::default(),
        };
        Asked::of(&settings)
    }

    /// How often each record is asked for by two clients.
    fn counts(asked: &Asked, part: Part, requests: u64) -> Vec<u64> {
        let two = At::closed(2, requests);
        let mut counts = vec![0; asked.load.records as usize];
        for index in 0..2 {
            let mut questions = asked.questions(part, two, index);
            (0..asked.share(part, two, index)).for_each(|_| counts[questions.draw().record as usize] += 1);
        }
        counts
    }

    #[test]
    fn keys_are_chosen_as_their_names_say() {
        const REQUESTS: u64 = 1_000_000;
        let near = |found: u64, share: f64| {
            let expected = share * REQUESTS as f64;
            assert!((found as f64 - expected).abs() < 6.0 * expected.sqrt(), "{found} for {expected}");
        };
        let counted = |keys| counts(&asked(keys, 1_000), Part::Get, REQUESTS);
        counted("uniform").iter().for_each(|&count| near(count, 1e-3));
        assert!(counted("sequential").iter().all(|&count| count == REQUESTS / 1_000));
        let hot = counted("hotspot:10/70");
        near(hot[..100].iter().sum(), 0.7);
        hot[..100].iter().for_each(|&count| near(count, 7e-3));
        hot[100..].iter().for_each(|&count| near(count, 0.3 / 900.0));
        // The sum of rank^-0.99 over 1,000 ranks is 7.7290.
        let shares = |rank: u32| f64::from(rank).powf(-0.99) / 7.7290;
        let latest = counted("latest");
        (1..=1_000).for_each(|rank| near(latest[1_000 - rank as usize], shares(rank)));
        let mut zipf = counted("zipf:0.99");
        assert!(zipf[0] != *zipf.iter().max().unwrap(), "the first key is not the first rank");
        zipf.sort_unstable_by(|one, other| other.cmp(one));
        (1..=20).for_each(|rank| near(zipf[rank as usize - 1], shares(rank)));
    }

    /// The shares that YCSB's own generator has, measured over a million keys: 3.78 % for the first key, 11.8 % for
    /// ten, 40.0 % for a hundredth, and nearly every key touched.
    #[test]
    fn ycsbs_choice_is_as_even_as_ycsbs() {
        const DRAWS: u64 = 10_000_000;
        let mut counts = vec![0_u64; 1_000_000];
        (0..DRAWS).for_each(|draw| counts[ycsb_zipfian(mix(draw.wrapping_mul(STEP)), 1_000_000) as usize] += 1);
        counts.sort_unstable_by(|one, other| other.cmp(one));
        let share = |keys: usize| counts[..keys].iter().sum::<u64>() as f64 / DRAWS as f64;
        assert!((share(1) - 0.0378).abs() < 0.0003, "{}", share(1));
        assert!((share(10) - 0.118).abs() < 0.001, "{}", share(10));
        assert!((share(10_000) - 0.400).abs() < 0.002, "{}", share(10_000));
        assert!((share(200_000) - 0.646).abs() < 0.002, "{}", share(200_000));
        let touched = counts.iter().filter(|&&count| count > 0).count();
        assert!(touched > 985_000, "{touched}");
    }

    #[test]
    fn every_client_and_part_has_questions_of_its_own() {
        let asked = asked("uniform", u64::MAX);
        let first = |part, of, index| asked.questions(part, At::closed(of, 10), index).draw().record;
        let all = [first(Part::Set, 2, 0), first(Part::Set, 2, 1), first(Part::Set, 3, 0), first(Part::Get, 2, 0)];
        assert!((0..4).all(|one| (0..one).all(|other| all[one] != all[other])));
    }

    #[test]
    fn sets_come_among_gets_as_often_as_said_and_to_any_key() {
        let asked = asked("zipf:1.2", 10);
        let mut questions = asked.questions(Part::Run, At::closed(1, 1_000_000), 0);
        let (mut sets, mut all) = ([0_u32; 10], [0_u32; 10]);
        for _ in 0..1_000_000 {
            let question = questions.draw();
            all[question.record as usize] += 1;
            sets[question.record as usize] += u32::from(question.set);
        }
        for (sets, all) in sets.into_iter().zip(all) {
            assert!((f64::from(sets) / f64::from(all) - 0.25).abs() < 0.01, "{sets} of {all}");
        }
    }

    #[test]
    fn every_rate_has_questions_of_its_own_and_the_first_those_of_no_rate() {
        let asked = asked("uniform", u64::MAX);
        let first = |number, rate| asked.questions(Part::Set, At { number, rate, ..At::closed(2, 10) }, 1).draw();
        assert_eq!(first(1, None), first(1, Some(100)));
        assert_eq!(first(3, None), first(1, None));
        assert_ne!(first(2, Some(100)), first(1, Some(100)));
    }

    #[test]
    fn questions_can_be_passed_over() {
        let (asked, five) = (asked("latest", 1_000), At::closed(5, 1_000));
        let (mut all, mut rest) = (asked.questions(Part::Run, five, 4), asked.questions(Part::Run, five, 4));
        all.pass(77);
        rest.pass_to(77);
        assert!((0..100).all(|_| all.draw() == rest.draw()));
    }

    #[test]
    fn clients_load_every_key_once() {
        let asked = asked("zipf", 100);
        let mut loaded: Vec<u64> = (0..7)
            .flat_map(|index| {
                let mut questions = Questions::loading(7, index);
                (0..asked.share(Part::Load, At::closed(7, 10), index)).map(move |_| questions.draw().record)
            })
            .collect();
        loaded.sort_unstable();
        assert_eq!(loaded, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn the_stream_is_what_it_always_was() {
        let mut text = Vec::new();
        for keys in ["uniform", "zipf:0.99", "hotspot"] {
            asked(keys, 100_000).write(2, &[Part::Set, Part::Run], &mut text).unwrap();
        }
        let expected = [
            "set key:000000020239",
            "set key:000000090097",
            "set key:000000089555",
            "get key:000000005481",
            "set key:000000010651",
            "set key:000000093026",
            "set key:000000089555",
            "get key:000000006373",
            "set key:000000004047",
            "set key:000000018019",
            "set key:000000017911",
            "get key:000000024385",
        ];
        assert_eq!(String::from_utf8(text).unwrap().lines().collect::<Vec<_>>(), expected);
    }
}

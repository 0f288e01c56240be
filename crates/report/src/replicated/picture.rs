//! What each machine says to each claim, as a picture: a claim with a row a run.

use super::PageRun;
use super::judge::{ClaimAcross, JudgedClaim, Judgement};
use crate::chart::marks::{MarkKind, MarkShape};
use crate::chart::palette::LINES;
use crate::chart::rows::{PictureRow, RowMark, RowPicture, RowSection, caption};
use crate::versus::{Versus, versus};

/// More of them are no picture that can be read at a glance; the table has all.
const CLAIMS_MAX: usize = 20;
const RUNS_MAX: usize = 12;

const HOLDS: MarkKind = MarkKind::new(MarkShape::Dot, LINES[0], "reproduced");
const HOLDS_UNCERTAIN: MarkKind = MarkKind::new(MarkShape::HollowDot, LINES[0], "reproduced, uncertain").thin(true);
const OPPOSITE: MarkKind = MarkKind::new(MarkShape::Dot, LINES[5], "contradicted");
const OPPOSITE_UNCERTAIN: MarkKind =
    MarkKind::new(MarkShape::HollowDot, LINES[5], "contradicted, uncertain").thin(true);

/// Nothing where no claim has a ratio.
pub fn picture(rows: &[ClaimAcross<'_>], runs: &[&PageRun]) -> Option<RowPicture> {
    let with_ratio: Vec<&ClaimAcross<'_>> =
        rows.iter().filter(|row| row.by_run.iter().any(|one| one.seen.is_some())).collect();
    let drawn = &with_ratio[..with_ratio.len().min(CLAIMS_MAX)];
    let section = |claim: &&ClaimAcross<'_>| {
        let runs = claim.by_run.iter().zip(runs).take(RUNS_MAX).enumerate();
        RowSection::new(&claim.words, runs.map(|(place, (one, run))| row(place, one, run)).collect())
    };
    let title = "Claims by machine".to_string();
    let across = "times as much as the first target of the claim".to_string();
    let mut picture = RowPicture::new(title, across, drawn.iter().map(section).collect());
    let (all, shown) = (with_ratio.len(), drawn.len());
    let is_uncertain = drawn.iter().flat_map(|claim| &claim.by_run).any(|one| one.seen.is_some_and(|seen| seen.noisy));
    picture.caption = caption(&[
        (true, "Logarithmic axis. Right of 1x a run says what the claim says; left of 1x it says the opposite."),
        (is_uncertain, "Uncertain: of a noisy run only the end of an interval nearest to 1x is claimed."),
        (shown < all, &format!("{shown} of {all} claims are drawn, contradicted ones first; the table has more.")),
        (runs.len() > RUNS_MAX, &format!("The first {RUNS_MAX} of {} runs are drawn; the table has all.", runs.len())),
    ]);
    (shown > 0).then_some(picture)
}

/// Machines have no names: "run 2: AMD EPYC 7B13".
fn row(place: usize, one: &JudgedClaim, run: &PageRun) -> PictureRow {
    let name = format!("run {}: {}", place + 1, run.machine.cpu);
    let marks = one.seen.map(|seen| RowMark {
        kind: match (one.judgement, seen.noisy) {
            (Judgement::Contradicted, false) => OPPOSITE,
            (Judgement::Contradicted, true) => OPPOSITE_UNCERTAIN,
            (_, false) => HOLDS,
            (_, true) => HOLDS_UNCERTAIN,
        },
        at: seen.ratio,
        span: seen.span.map(|[low, high]| (low, high)),
        each: Vec::new(),
    });
    PictureRow {
        name: name.trim_end_matches(": ").to_string(),
        is_muted: one.seen.is_none(),
        marks: marks.into_iter().collect(),
        reason: one.words.clone(),
        numbers: vec![numbers(one)],
        ..PictureRow::default()
    }
}

/// "1.29x [1.23-1.34]", "contradicted: 0.78x", "cannot be told".
fn numbers(one: &JudgedClaim) -> String {
    match (one.judgement, one.seen) {
        (Judgement::Reproduced, _) => one.words.clone(),
        (other, Some(seen)) => {
            let plain = Versus { ratio: seen.ratio, low: None, high: None, preliminary: false };
            format!("{}: {}", other.in_words(), versus(plain))
        }
        (other, None) => other.in_words().to_string(),
    }
}

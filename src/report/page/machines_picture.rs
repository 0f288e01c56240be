//! What each machine says to each claim, as SVG: a row a claim with a line a run, on the logarithmic axis of ratios
//! that the page of one run has.

use maud::{Markup, html};

use super::marks::{
    self, AXIS, DrawMark, LETTERS, Legend, MARGIN, RatioAxis, WIDTH, bar, cut, dot, line, reason, said, text,
};
use crate::report::chart::palette::{GREY, GRID, LINES, PAPER, Stroke, TEXT, hex};
use crate::report::chart::plot::{letters_in, px};
use crate::report::replicated::PageRun;
use crate::report::replicated::judge::{ClaimAcross, JudgedClaim, Judgement, SeenRatio};
use crate::report::versus::{Versus, versus};

// Lengths in the picture's own pixels.
/// Where names, the plot and the numbers begin.
const NAMES: f64 = 24.0;
const PLOT: f64 = 284.0;
const PLOT_END: f64 = 652.0;
const NUMBERS: f64 = 676.0;
const CLAIM: f64 = 28.0;
const LANE: f64 = 22.0;
/// A row ends with so much room.
const ROOM: f64 = 6.0;
/// More of them are no picture that can be read at a glance; the table has all.
const CLAIMS_MAX: usize = 20;
const RUNS_MAX: usize = 12;

/// The picture with its caption; nothing where no claim has a ratio.
pub fn figure(rows: &[ClaimAcross<'_>], runs: &[&PageRun]) -> Markup {
    let with_ratio = rows.iter().filter(|row| row.by_run.iter().any(|one| one.seen.is_some()));
    let with_ratio: Vec<&ClaimAcross<'_>> = with_ratio.collect();
    if with_ratio.is_empty() {
        return html! {};
    }
    let claims = &with_ratio[..with_ratio.len().min(CLAIMS_MAX)];
    let picture = Picture { claims, runs: &runs[..runs.len().min(RUNS_MAX)] };
    let (height, drawn) = picture.drawn();
    let (all, shown) = (with_ratio.len(), claims.len());
    let more_claims = format!("{shown} of {all} claims are drawn, contradicted ones first; the table has more.");
    let more_runs = format!("The first {RUNS_MAX} of {} runs are drawn; the table has all.", runs.len());
    let caption = said(&[
        (true, "Logarithmic axis. Right of 1x a run says what the claim says; left of 1x it says the opposite."),
        (
            picture.any(|seen| seen.noisy),
            "Uncertain: of a noisy run only the end of an interval nearest to 1x is claimed.",
        ),
        (shown < all, &more_claims),
        (picture.runs.len() < runs.len(), &more_runs),
    ]);
    marks::figure("Claims by machine", height, &drawn, &caption)
}

struct Picture<'a> {
    claims: &'a [&'a ClaimAcross<'a>],
    runs: &'a [&'a PageRun],
}

impl Picture<'_> {
    fn lanes<'a>(&self, claim: &'a ClaimAcross<'_>) -> &'a [JudgedClaim] {
        &claim.by_run[..claim.by_run.len().min(self.runs.len())]
    }

    fn seen(&self) -> impl Iterator<Item = SeenRatio> {
        self.claims.iter().flat_map(|claim| self.lanes(claim)).filter_map(|one| one.seen)
    }

    fn any(&self, is: impl Fn(SeenRatio) -> bool) -> bool {
        self.seen().any(is)
    }

    /// How high it is, and what is in it.
    fn drawn(&self) -> (f64, Markup) {
        let ends = self.seen().flat_map(|seen| seen.span.into_iter().flatten().chain([seen.ratio]));
        let axis = RatioAxis::around(ends, (PLOT, PLOT_END));
        let legend = self.legend();
        let top = legend.bottom();
        let row = |claim: &ClaimAcross<'_>| CLAIM + self.lanes(claim).len() as f64 * LANE + ROOM;
        let mut bottom = top;
        let placed: Vec<(f64, &ClaimAcross<'_>)> = self
            .claims
            .iter()
            .map(|claim| {
                let this = bottom;
                bottom += row(claim);
                (this, *claim)
            })
            .collect();
        let height = bottom + AXIS;
        let drawn = html! {
            title { (self.summary()) }
            rect width=(px(WIDTH)) height=(px(height)) fill=(hex(PAPER.light)) {}
            (legend.drawn())
            (axis.drawn(top, bottom, "times as much as the first target of the claim"))
            @for (top, claim) in placed { (self.drawn_claim(claim, top, &axis)) }
        };
        (height, drawn)
    }

    fn drawn_claim(&self, claim: &ClaimAcross<'_>, top: f64, axis: &RatioAxis) -> Markup {
        let words = cut(&claim.words, letters_in(WIDTH - 2.0 * MARGIN, LETTERS));
        let middle = |place: usize| top + CLAIM + (place as f64 + 0.5) * LANE;
        html! {
            // No line of the axis goes through the words.
            rect y=(px(top)) width=(px(WIDTH)) height=(px(CLAIM)) fill=(hex(PAPER.light)) {}
            (line((MARGIN, top + 1.0), (WIDTH - MARGIN, top + 1.0), GRID))
            (text(MARGIN, top + 19.0, &words, TEXT, "start"))
            @for (place, (one, run)) in self.lanes(claim).iter().zip(self.runs).enumerate() {
                (drawn_lane(&name(place, run), one, middle(place), axis))
            }
        }
    }

    /// What the picture shows, for who does not see it.
    fn summary(&self) -> String {
        let each = self.claims.iter().map(|claim| {
            let lanes = self.lanes(claim).iter().enumerate();
            let lanes = lanes.map(|(place, one)| format!("run {} {}", place + 1, numbers(one)));
            format!("{}: {}", claim.words, lanes.collect::<Vec<_>>().join(", "))
        });
        format!("Claims by machine. {}", each.collect::<Vec<_>>().join(". "))
    }

    /// The marks that occur.
    fn legend(&self) -> Legend {
        let is = |judgement, noisy: bool| {
            let all = self.claims.iter().flat_map(|claim| self.lanes(claim));
            all.filter(|one| one.judgement == judgement).filter_map(|one| one.seen).any(|seen| seen.noisy == noisy)
        };
        let marks: [(DrawMark, _, _); 5] = [
            (|x, y| dot(x + 16.0, y, HOLDS, false), "reproduced", is(Judgement::Reproduced, false)),
            (|x, y| dot(x + 16.0, y, HOLDS, true), "reproduced, uncertain", is(Judgement::Reproduced, true)),
            (|x, y| dot(x + 16.0, y, OPPOSITE, false), "contradicted", is(Judgement::Contradicted, false)),
            (|x, y| dot(x + 16.0, y, OPPOSITE, true), "contradicted, uncertain", is(Judgement::Contradicted, true)),
            (|x, y| bar(x, x + 32.0, y, GREY, false), "95 % interval", self.any(|seen| seen.span.is_some())),
        ];
        Legend::of(&marks)
    }
}

const HOLDS: Stroke = LINES[0];
const OPPOSITE: Stroke = LINES[5];

/// "run 2: AMD EPYC 7B13": by its number, since machines have no names.
fn name(place: usize, run: &PageRun) -> String {
    let words = format!("run {}: {}", place + 1, run.machine.cpu);
    cut(words.trim_end_matches(": "), letters_in(PLOT - NAMES - MARGIN, LETTERS))
}

fn drawn_lane(name: &str, one: &JudgedClaim, y: f64, axis: &RatioAxis) -> Markup {
    let stroke = if one.judgement == Judgement::Contradicted { OPPOSITE } else { HOLDS };
    html! {
        (text(NAMES, y + 4.5, name, GREY, "start"))
        @match one.seen {
            Some(seen) => {
                @if let Some([low, high]) = seen.span.filter(|[low, high]| low < high) {
                    (bar(axis.x(low), axis.x(high), y, stroke, seen.noisy))
                }
                (dot(axis.x(seen.ratio), y, stroke, seen.noisy))
            }
            None => (reason(PLOT, y + 4.5, &cut(&one.words, letters_in(PLOT_END - PLOT, LETTERS)))),
        }
        (text(NUMBERS, y + 4.5, &numbers(one), if one.seen.is_some() { TEXT } else { GREY }, "start"))
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

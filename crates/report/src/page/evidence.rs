//! Each claim of a page, folded: what it rests on, and the command that would refute it.

use maud::{Markup, html};

use super::PageInput;
use crate::replicated::PageRun;
use crate::replicated::findings::{self, PageFinding};
use crate::replicated::judge::{evidence, in_words};
use crate::replicated::refute;
use kvfair_core::noise::percent;
use kvfair_core::shell;
use kvfair_core::units;

/// So many are told at the most: the manifest has them all.
const TOLD: usize = 60;

/// Nothing where nothing is claimed.
pub fn claims(input: &PageInput<'_>, run: &PageRun) -> Markup {
    if findings::kind(run).is_some() {
        return found(run);
    }
    let all = run.claims.len();
    if all == 0 || input.levers.is_some() {
        return html! {};
    }
    let heads = ["claim", "evidence", "noise floor", "would refute it"];
    html! {
        details {
            summary { "Claims (" (units::thousands(all as u64)) ")" }
            p.grey {
                (rests_on(run)) ". A run of the command refutes the claim where it names the other target "
                "as the one that costs less. " code { "kvfair rerun PAGE" } " runs all of this page again on another "
                "machine, and adds that machine to it."
            }
            div.scroll tabindex="0" role="region" aria-label="Claims" {
                table {
                    thead { tr { @for head in heads { th.left scope="col" { (head) } } } }
                    tbody {
                        @for claim in run.claims.iter().take(TOLD) {
                            tr.row {
                                th scope="row" { (in_words(claim, &run.targets)) }
                                td.left { (evidence(claim)) }
                                td { (claim.noise_floor.map_or_else(String::new, percent)) }
                                td.left { code { (refute::command(run, claim)) } }
                            }
                        }
                    }
                }
            }
            @if all > TOLD { p.grey { "The other claims are in the page's manifest." } }
        }
    }
}

/// What a search or a set of levers found.
fn found(run: &PageRun) -> Markup {
    let claims: Vec<&PageFinding> = run.findings.iter().filter(|finding| finding.is_claim()).collect();
    let all = claims.len();
    html! {
        @if all > 0 {
            details {
                summary { "Claims (" (units::thousands(all as u64)) "): evidence, and what would refute them" }
                ul { @for one in claims.iter().take(TOLD) { li { (one.words) ": " (one.evidence) } } }
                @if all > TOLD { p.grey { "The other claims are in the page's manifest." } }
                p { "Would refute them: " code.command { (shell::command(refute::typed(run))) } }
                p.grey { code { "kvfair rerun PAGE" } " runs it again on another machine, and judges each claim." }
            }
        }
    }
}

/// "10 blocks count, 7 were disturbed; seed 797 of the order".
pub fn rests_on(run: &PageRun) -> String {
    let counts = if run.blocks == 1 { "block counts" } else { "blocks count" };
    let disturbed = match run.discarded_blocks {
        0 => String::new(),
        1 => ", 1 was disturbed".to_string(),
        many => format!(", {} were disturbed", units::thousands(many as u64)),
    };
    format!("{} {counts}{disturbed}; seed {} of the order", units::thousands(run.blocks as u64), run.seeds.order)
}

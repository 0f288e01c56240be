//! What a check found: a headline for each target, what was wrong, its limits, and what was not asked.

use anyhow::Result;

use super::columns::{Column, exported, exported_wide, value};
use super::exit::{Exit, worst};
use super::render::csv::csv;
use super::render::json;
use super::render::{Block, Medium, Shown};
use kvfair_core::check::{Checked, Reached, WrongKind};
use kvfair_core::op::readable;

/// All targets that were checked.
pub struct CheckReport {
    /// What was typed behind `kvfair`.
    pub command: Vec<String>,
    pub targets: Vec<Checked>,
}

const COLUMNS: &[Column<Checked>] = &[
    exported("target", |checked| checked.target.as_str().into()),
    exported("version", |checked| checked.version.as_str().into()),
    exported("client_library", |checked| checked.client_library.as_str().into()),
    exported("status", |checked| status(checked).into()),
    exported("reason", |checked| value(reason(checked))),
    exported("probes", |checked| checked.probes.into()),
    exported("probes_wrong", |checked| checked.probes_wrong(WrongKind::Answer).into()),
    exported("probes_garbled", |checked| checked.probes_wrong(WrongKind::Garbled).into()),
    exported("took_s", |checked| checked.took_s.into()),
    exported_wide("wrong", |checked| json::nested(&checked.wrong)),
    exported_wide("limits", |checked| json::nested(&checked.limits)),
    exported_wide("not_asked", |checked| json::nested(&checked.not_offered)),
];

impl Shown for CheckReport {
    fn exit(&self) -> Exit {
        worst(self.targets.iter().map(exit_of))
    }

    fn blocks(&self, _: Medium) -> Result<Vec<Block>> {
        Ok(self.targets.iter().map(block).collect())
    }

    fn csv(&self) -> Result<String> {
        Ok(csv(COLUMNS, &self.targets, false))
    }

    fn json(&self, exit: Exit) -> Result<String> {
        json::of_rows(&self.command, exit, COLUMNS, &self.targets)
    }
}

fn exit_of(checked: &Checked) -> Exit {
    match checked.reached {
        _ if !checked.wrong.is_empty() => Exit::WrongAnswers,
        Reached::Missing { .. } => Exit::Missing,
        Reached::Failed { .. } => Exit::Error,
        Reached::Probed => Exit::Ok,
    }
}

fn status(checked: &Checked) -> &'static str {
    match checked.reached {
        _ if !checked.wrong.is_empty() => "wrong",
        Reached::Missing { .. } => "missing",
        Reached::Failed { .. } => "failed",
        Reached::Probed => "right",
    }
}

fn reason(checked: &Checked) -> Option<&str> {
    match &checked.reached {
        Reached::Missing { reason, .. } | Reached::Failed { reason } => Some(reason),
        Reached::Probed => None,
    }
}

/// A store's words may be long and strange: so much of them is shown.
const WORDS_SHOWN: usize = 300;

/// So many probes of one cause are named besides the first.
const NAMED: usize = 5;

fn block(checked: &Checked) -> Block {
    let wrong = checked.wrong.iter().map(|finding| {
        let (sent, came) = (plain(&finding.sent), plain(&finding.came));
        let (word, others) = (finding.kind.word(), others(&finding.others));
        format!("{word} {}: sent {sent}; came {came}{others}", finding.probe)
    });
    let limits = checked.limits.iter().map(|limit| format!("limit: {}", plain(limit)));
    let not_asked: Vec<String> = checked.not_offered.iter().map(|what| plain(what)).collect();
    let not_asked = (!not_asked.is_empty()).then(|| format!("not asked: {}", not_asked.join("; ")));
    Block::Subject(headline(checked), wrong.chain(limits).chain(not_asked).collect())
}

/// " ... and 2 more: delete, then get; keys of 250 bytes": probes that met the same.
fn others(probes: &[String]) -> String {
    let mut named: Vec<String> = probes.iter().take(NAMED).cloned().collect();
    if probes.len() > NAMED {
        named.push(format!("and {} others", probes.len() - NAMED));
    }
    if named.is_empty() { named.concat() } else { format!(" ... and {} more: {}", probes.len(), named.join("; ")) }
}

/// "redis 7.0.15 by resp: 45 probes, all right (3.1 s)".
fn headline(checked: &Checked) -> String {
    let Checked { target, version, client_library, probes, .. } = checked;
    let by = if version.is_empty() { target.clone() } else { format!("{target} {version} by {client_library}") };
    match &checked.reached {
        Reached::Missing { reason, get_it } if get_it.is_empty() => format!("{by}: {}", plain(reason)),
        Reached::Missing { reason, get_it } => format!("{by}: {}; get it: {get_it}", plain(reason)),
        Reached::Failed { reason } if *probes == 0 && checked.wrong.is_empty() => {
            format!("{by}: could not be checked: {}", plain(reason))
        }
        Reached::Failed { reason } => {
            format!("{by}: {}; the others could not be asked: {}", probed(checked), plain(reason))
        }
        Reached::Probed => format!("{by}: {}", probed(checked)),
    }
}

/// "45 probes, all right (3.1 s)".
fn probed(checked: &Checked) -> String {
    let Checked { probes, took_s, .. } = checked;
    let wrong = WrongKind::ALL.map(|kind| (checked.probes_wrong(kind), kind.word()));
    let wrong = wrong.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    let wrong = wrong.collect::<Vec<_>>().join(", ");
    let wrong = if wrong.is_empty() { "all right" } else { &wrong };
    format!("{probes} probes, {wrong} ({took_s:.1} s)")
}

/// Safe for a terminal, whatever a server said. What was escaped before stays as it is.
fn plain(words: &str) -> String {
    readable(words.as_bytes(), WORDS_SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{OutputForm, printed};
    use kvfair_core::check::ProbeWrong;

    fn lines(checked: &Checked) -> String {
        let report = CheckReport { command: Vec::new(), targets: vec![checked.clone()] };
        printed(&report, Exit::Ok, OutputForm::Text, 100).expect("text")
    }

    #[test]
    fn a_target_is_a_headline_and_a_line_for_each_thing_to_know() {
        let right = Checked {
            target: "redis".to_string(),
            version: "7.0.15".to_string(),
            client_library: "resp".to_string(),
            probes: 45,
            limits: vec!["values of 10 bytes, the largest that was tried".to_string()],
            not_offered: vec!["redis has no scan".to_string(), "the empty key: it may have an owner".to_string()],
            took_s: 3.12,
            ..Checked::default()
        };
        assert_eq!(
            lines(&right),
            "redis 7.0.15 by resp: 45 probes, all right (3.1 s)\n  limit: values of 10 bytes, the largest that was \
             tried\n  not asked: redis has no scan; the empty key: it may have an owner\n"
        );
        let met = |came: &str, cause: Option<&str>| ProbeWrong {
            sent: "get \"k\"".to_string(),
            came: came.to_string(),
            cause: cause.map(str::to_string),
            ..ProbeWrong::default()
        };
        let mut wrong = Checked { limits: vec![], not_offered: vec![], ..right };
        wrong.note("a probe", met("\u{1b}[2J", None));
        assert_eq!(
            lines(&wrong),
            "redis 7.0.15 by resp: 45 probes, 1 WRONG (3.1 s)\n  WRONG a probe: sent get \"k\"; came \\u{1b}[2J\n"
        );
        // One cause is one line; what has no cause in common with others is a line each.
        let mut many = Checked { wrong: vec![], ..wrong };
        for probe in ["a", "b", "c"] {
            many.note(probe, met("refused: ERR down", Some("refused: ERR down")));
            many.note(probe, met("an answer after 7.0 s", None));
        }
        many.note(
            "d",
            ProbeWrong { step: Some("set".to_string()), ..met("refused: ERR full", Some("refused: ERR full")) },
        );
        let told = lines(&many);
        assert!(told.contains("45 probes, 7 WRONG"), "{told}");
        assert!(told.contains("WRONG a: sent get \"k\"; came refused: ERR down ... and 2 more: b; c\n"), "{told}");
        assert_eq!(told.matches("ERR down").count(), 1, "{told}");
        assert_eq!(told.matches("an answer after").count(), 3, "{told}");
        let probes: Vec<String> = (1..=7).map(|number| number.to_string()).collect();
        assert_eq!(others(&probes), " ... and 7 more: 1; 2; 3; 4; 5; and 2 others");
        assert_eq!(others(&probes[..1]), " ... and 1 more: 1");
        assert!(told.contains("WRONG set, needed by d: sent"), "{told}");
        many.note("e", ProbeWrong { kind: WrongKind::Garbled, ..met("garbled answer: $x", None) });
        let told = lines(&many);
        assert!(told.contains("45 probes, 7 WRONG, 1 GARBLED") && told.contains("\n  GARBLED e: sent"), "{told}");
    }
}

//! What stands below the tables on a terminal: at most three lines, each of what changes the conclusion or goes beyond
//! it. `--wide` has all of it.

use super::cells::Row;
use super::claims;
use super::render::{Block, OneLine};
use super::standing::Standings;
use super::warn::Warning;

/// So many lines are read.
const LINES: usize = 3;

/// A thing to know, and what it is called where it is not shown.
pub struct Fact {
    name: &'static str,
    line: OneLine,
}

impl Fact {
    pub fn new(name: &'static str, text: String) -> Fact {
        Fact { name, line: OneLine { text, more: String::new() } }
    }

    pub fn text(self) -> String {
        self.line.text
    }

    fn of(warning: &Warning) -> Fact {
        Fact { name: warning.id, line: warning.line() }
    }
}

/// The weightiest first: what was lost or wrong, warnings without which the conclusion stands otherwise, what is
/// claimed, and other warnings.
pub fn block(lost: Vec<Fact>, warnings: &[Warning], claims: Vec<Fact>) -> Block {
    let (weighty, others): (Vec<_>, Vec<_>) = warnings.iter().partition(|warning| warning.weighty);
    let of = |warnings: Vec<&Warning>| warnings.into_iter().map(Fact::of).collect::<Vec<_>>();
    let all = [lost, of(weighty), claims, of(others)].into_iter().flatten();
    Block::Lines(lines(all.filter(|fact| !fact.line.text.is_empty()).collect()))
}

/// What is claimed beside the time, which the answer and the ranks tell; where nothing may be ranked, why.
pub fn claimed_beside_time(rows: &[Row], standings: &Standings<'_>) -> Vec<String> {
    if let Some(refused) = &standings.refused {
        return vec![refused.in_words()];
    }
    let numbered = claims::numbered(rows);
    if claims::is_wrong(rows) || numbered.is_empty() || claims::no_claims(&numbered, standings).is_some() {
        return Vec::new();
    }
    claims::CLAIMED.iter().map(|cost| cost.sentence(rows, standings)).filter(|sentence| !sentence.is_empty()).collect()
}

/// All of them where they are so few, else the first ones and the names of the others.
fn lines(mut facts: Vec<Fact>) -> Vec<OneLine> {
    let rest = if facts.len() > LINES { facts.split_off(LINES - 1) } else { Vec::new() };
    let mut names: Vec<&str> = Vec::new();
    for fact in &rest {
        if !names.contains(&fact.name) {
            names.push(fact.name);
        }
    }
    let named = (!names.is_empty()).then(|| Fact::new("", format!("more (--wide): {}", names.join(", "))));
    facts.into_iter().chain(named).map(|fact| fact.line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(block: Block) -> Vec<String> {
        let Block::Lines(lines) = block else { panic!("lines") };
        lines.iter().map(OneLine::whole).collect()
    }

    fn warned(id: &'static str, weighty: bool) -> Warning {
        Warning {
            id,
            evidence: format!("{id} is so; and so"),
            brief: format!("{id} is so"),
            fix: "do this".into(),
            weighty,
        }
    }

    #[test]
    fn three_lines_stand_there_and_the_rest_is_named() {
        let facts = || vec![Fact::new("claims", "lmdb uses less CPU.".to_string())];
        let all = [warned("noise", false), warned("short", false), warned("drift", true), warned("drift", true)];
        let said = texts(block(Vec::new(), &all[..1], facts()));
        assert_eq!(said, ["lmdb uses less CPU.", "warning (noise): noise is so: do this"]);
        let said = texts(block(vec![Fact::new("answers", "lost".to_string())], &all, facts()));
        assert_eq!(
            said,
            ["lost", "warning (drift): drift is so: do this", "more (--wide): drift, claims, noise, short"]
        );
        let said = texts(block(Vec::new(), &all[1..3], facts()));
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].starts_with("warning (drift)") && said[2].starts_with("warning (short)"), "{said:?}");
        assert!(texts(block(vec![Fact::new("answers", String::new())], &[], Vec::new())).is_empty());
    }
}

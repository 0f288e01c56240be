//! Each target beside every other one: what stands in a table's column of ratios where readers choose another base than
//! the best. The page's script exchanges the cells; all of their text is made here.

use anyhow::Result;
use serde::Serialize;

use super::PageInput;
use crate::cells::{self, Row};
use crate::standing::Standing;
use crate::versus::{Versus, versus};
use kvfair_core::effort::CLAIM_BLOCKS;

/// Of more targets the pairs would be most of the page, and there is no choice.
const BASES_MAX: usize = 40;

/// A column with the cells that it has beside each base.
#[derive(Serialize)]
struct BaseColumn<'a> {
    /// The picture that has these ratios.
    measure: &'static str,
    /// The heading in tables that compare with the best.
    heading: &'static str,
    /// What stands before the base's name where readers chose one.
    before: &'static str,
    /// Those that may be a base come first.
    targets: Vec<&'a str>,
    /// The text by base and target.
    cells: Vec<Vec<String>>,
}

/// As a text that may stand in an element `script`; nothing where there is no choice.
pub fn json(input: &PageInput<'_>) -> Result<Option<String>> {
    let [part] = input.parts.as_slice() else { return Ok(None) };
    let (rows, standings) = (&part.report.rows, &part.report.standings);
    let (bases, others): (Vec<&Row>, Vec<&Row>) =
        rows.iter().filter(|row| row.numbers.is_some()).partition(|row| !row.baseline);
    if !part.report.points.is_empty() || !(2..=BASES_MAX).contains(&bases.len()) {
        return Ok(None);
    }
    let targets: Vec<&Row> = bases.iter().chain(&others).copied().collect();
    let cpu = standings.cpu();
    let claims_cpu = standings.blocks() >= CLAIM_BLOCKS as usize && cpu.as_ref().is_some_and(Standing::has_controls);
    let seconds = |base: &Row, target: &Row| match standings.groups.get(&base.group).filter(|_| !target.baseline) {
        Some(group) => {
            let is_best = cells::best_of(rows, &base.group).is_some_and(|best| best.target == base.target);
            let in_table = target.numbers.as_ref().and_then(|numbers| numbers.vs_best).filter(|_| is_best);
            cell(group, (base, target), in_table, standings.may_rank().then_some(["slower", "faster"]))
        }
        // As in the table.
        None => String::new(),
    };
    let by_cpu = |base: &Row, target: &Row| match &cpu {
        Some(cpu) => {
            let is_least = cells::least_cpu(rows).is_some_and(|least| least.target == base.target);
            let in_table = target.numbers.as_ref().and_then(|numbers| numbers.cpu_vs_least).filter(|_| is_least);
            cell(cpu, (base, target), in_table, claims_cpu.then_some(["more", "less"]))
        }
        None => String::new(),
    };
    let column = |(measure, heading, before), text: &dyn Fn(&Row, &Row) -> String| BaseColumn {
        measure,
        heading,
        before,
        targets: targets.iter().map(|row| row.target.as_str()).collect(),
        cells: bases.iter().map(|base| targets.iter().map(|target| text(base, target)).collect()).collect(),
    };
    let columns = [column(("time", "vs best", "vs"), &seconds), column(("cpu", "CPU vs least", "CPU vs"), &by_cpu)];
    Ok(Some(serde_json::to_string(&columns)?.replace('<', "\\u003c")))
}

/// "1.18x [1.14-1.27], slower": what the column of the table says where the base is its best, else the ratio of the two,
/// and what may be claimed where anything may be. A dash for what is ranked apart.
fn cell(
    standing: &Standing<'_>,
    (base, target): (&Row, &Row),
    in_table: Option<Versus>,
    claims: Option<[&str; 2]>,
) -> String {
    let seen = in_table.or_else(|| standing.versus(&target.target, &base.target));
    let Some(seen) = seen else { return "-".to_string() };
    let Some([costs_more, costs_less]) = claims.filter(|_| base.target != target.target) else { return versus(seen) };
    let claim = match () {
        () if standing.is_less(&base.target, &target.target) => costs_more,
        () if standing.is_less(&target.target, &base.target) => costs_less,
        () => "no claim",
    };
    format!("{}, {claim}", versus(seen))
}

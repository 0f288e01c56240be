//! The warning of CONTRIBUTING.md, compiled where it would stand.

use super::super::Rule;
use super::*;

const _: (&[(&str, &str)], &[Rule]) = (&[("few-ops", "a target had fewer than 1,000 ops a trial")], &[few_ops]);

/// Below this, a p99 is one of the ten slowest ops.
const FEW_OPS: u64 = 1_000;

fn few_ops(report: &RunReport<'_>) -> Vec<Warning> {
    let mut found = Vec::new();
    for row in report.rows.iter().filter(|row| !row.baseline && !row.of_program) {
        let Some(numbers) = row.numbers.as_ref().filter(|numbers| numbers.run.ops < FEW_OPS) else { continue };
        let evidence = format!("{} had {} ops a trial", row.target, units::thousands(numbers.run.ops));
        found.push(warning("few-ops", false, evidence, "a larger job"));
    }
    found
}

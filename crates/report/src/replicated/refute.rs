//! The command that would refute a claim: that of the run, with the two targets of the claim alone.

use super::{PageClaim, PageRun};
use kvfair_core::shell;

/// Options that say where results go, and how they are shown. Those of the first list have a value.
const ELSEWHERE: [&str; 6] = ["--output", "-o", "--html", "--keep", "--svg", "--no-warn"];
const SHOWN: [&str; 6] = ["--json", "--csv", "--markdown", "--wide", "--all", "--list"];

/// What was typed behind `kvfair`, without where results went and how they were shown.
pub fn typed(run: &PageRun) -> Vec<String> {
    let (mut words, mut typed) = (Vec::new(), run.command.iter());
    while let Some(word) = typed.next() {
        if ELSEWHERE.contains(&word.as_str()) {
            typed.next();
            continue;
        }
        let is_elsewhere = ELSEWHERE.iter().any(|option| option.len() > 2 && word.starts_with(&format!("{option}=")));
        if !is_elsewhere && !SHOWN.contains(&word.as_str()) {
            words.push(word.clone());
        }
    }
    words
}

/// As it is typed in a shell, with `kvfair` before it.
pub fn command(run: &PageRun, claim: &PageClaim) -> String {
    let named = |label: &str| run.targets.iter().any(|target| target.target == label);
    let is_other = |word: &String| named(word) && *word != claim.less && *word != claim.more;
    let mut words: Vec<String> = typed(run).into_iter().filter(|word| !is_other(word)).collect();
    if words.is_empty() {
        words = vec!["run".to_string(), run.job.name.clone()];
    }
    for target in [&claim.less, &claim.more] {
        let is_typed = words.iter().any(|word| word == target || word.contains(&format!("name={target}")));
        if !is_typed {
            words.push(target.clone());
        }
    }
    let option = format!("--{}s", run.job.unit);
    if let Some(size) = run.job.units.filter(|_| !words.iter().any(|word| word.starts_with(&option))) {
        words.extend([option, size.to_string()]);
    }
    shell::command(words)
}

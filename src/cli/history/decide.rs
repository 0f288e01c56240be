//! The command that decides on a change: both versions in the same blocks where both programs are known.

use clap::ArgAction;

use super::super::args;
use super::super::target::managed_name;
use crate::harness::serve::PROGRAM;
use crate::model::record::Record;
use crate::model::shell;
use crate::report::history::Sides;
use crate::stores;

/// Options of `run` that a paired run has no use for, or that name what is there already.
const DROPPED: [&str; 8] = ["output", "html", "keep", "list", "json", "csv", "markdown", "all"];

pub fn command(sides: &Sides<'_>) -> String {
    let words = match programs(sides) {
        Some([base, head]) => {
            let asked = options(&sides.after.run.command);
            let job = sides.after.job.name.clone();
            ["compare".to_string(), job, "--base".to_string(), base, "--head".to_string(), head]
                .into_iter()
                .chain(asked)
                .collect()
        }
        // Without another version it is the machine, or kvfair itself, that may have changed.
        None => ["compare"].into_iter().chain(sides.paths).map(str::to_string).collect::<Vec<String>>(),
    };
    shell::command(words)
}

/// Both targets, where the store told two versions and a server was started. A program that was replaced in its place
/// is to be named by who has it.
fn programs(sides: &Sides<'_>) -> Option<[String; 2]> {
    let of = |record: &Record| {
        let facts = record.store.as_ref()?;
        Some((facts.version.clone(), facts.command.first()?.clone()))
    };
    let ((old, before), (new, after)) = (of(sides.before)?, of(sides.after)?);
    if old == new || sides.before.job.program().is_some() {
        return None;
    }
    let before = if before == after { format!("PROGRAM-OF-{old}") } else { before };
    Some([with_program(sides.before, &before)?, with_program(sides.after, &after)?])
}

/// The target with that program, whatever it was called.
fn with_program(record: &Record, program: &str) -> Option<String> {
    let target = &record.target;
    let adapter = stores::find(&target.store)?;
    if target.cache.is_some() {
        return None;
    }
    let settings = target.settings.iter().filter(|(name, _)| *name != PROGRAM);
    let settings = settings.map(|(name, value)| format!("&{name}={value}")).collect::<String>();
    Some(format!("{}?{PROGRAM}={program}{settings}", managed_name(adapter, target.transport)))
}

/// The options of a run as they were typed, without its job and its targets.
fn options(command: &[String]) -> Vec<String> {
    let all = args::command();
    let Some(run) = all.find_subcommand("run").filter(|_| command.first().is_some_and(|name| name == "run")) else {
        return Vec::new();
    };
    let named = |word: &str| {
        let bare = word.split('=').next().unwrap_or(word);
        run.get_arguments().find(|argument| {
            let long = bare.strip_prefix("--").is_some_and(|name| argument.get_long() == Some(name));
            let short =
                bare.strip_prefix('-').filter(|name| !name.starts_with('-')).and_then(|name| name.chars().next());
            long || (short.is_some() && argument.get_short() == short)
        })
    };
    let (mut options, mut words) = (Vec::new(), command.iter().skip(1).peekable());
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        let Some(argument) = word.starts_with('-').then(|| named(word)).flatten() else { continue };
        let is_short = !word.starts_with("--");
        let takes = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
        let is_apart = takes && !word.contains('=') && (!is_short || word.len() == 2);
        let value = if is_apart { words.next() } else { None };
        if !DROPPED.contains(&argument.get_id().as_str()) {
            options.extend([word.clone()].into_iter().chain(value.cloned()));
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_string).collect()
    }

    #[test]
    fn options_are_kept_and_targets_left_out() {
        let typed = words("run fans redis --profiles 2000 null --effort=normal -o out.jsonl --pin --html=p.html lmdb");
        assert_eq!(options(&typed).join(" "), "--profiles 2000 --effort=normal --pin");
        assert_eq!(options(&words("find-max mixed redis --step 10")), [""; 0]);
        assert_eq!(options(&words("run fans -c 4 -- redis --profiles")).join(" "), "-c 4");
    }
}

//! How help is laid out, and which of the options that commands share one of them refuses: tables, applied to what the
//! types in this room say.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

/// What `-h` shows of `run`, `find-max` and `compare`, in one screen: each in one line.
const COMMON: &[(&str, &str)] = &[
    ("job", "The job: fans, ngrams, getset, mixed, ... (`kvfair jobs`)"),
    ("targets", "Stores by name (`redis+unix`) or URL [default: all here]"),
    ("store", "The store by name, as it is now: `redis`"),
    ("levers", "Only these, as in transport,via [default: all]"),
    ("what", "Two results files, or the job for --base and --head"),
    ("base", "The target as it was"),
    ("head", "The target as it is"),
    ("fail_if", "Exit with 5 where it takes more, as in slower:3%"),
    ("slo", "The promise, as in p99:1ms"),
    ("step", "Seconds that each rate is kept"),
    ("exec", "Run a program of your own in place of a job"),
    ("input", "Your own data instead of made data"),
    ("profiles", "Size of `fans` (others: --messages, --requests)"),
    ("clients", "Clients at once; of requests a list, as in 1,10,50"),
    ("rate", "Requests a second, as in 20k or 20%,50%,80%"),
    ("via", "How the job asks: portable, batch, native, cas"),
    ("durability", "What must survive of writes: none, crash, power"),
    ("effort", "How sure: quick (2 minutes), normal (15), careful"),
    ("budget", "The time that the run has, as in 90s or 5m"),
    ("output", "Write the records to this file"),
    ("wide", "All columns and warnings (others: --json, --csv)"),
];

/// What stands there of one command in place of that.
const OF_ONE: &[(&str, &str, &str)] = &[
    ("find-max", "job", "The job: getset, mixed, ycsb-a, ... (`kvfair jobs`)"),
    ("find-max", "clients", "Clients who share the rate: one number"),
    ("find-max", "budget", "The time that the search has, as in 90s or 5m"),
    ("find-max", "json", "Print what was found as JSON"),
    ("advise", "budget", "The time that it has [default: 2m]"),
    ("history", "what", "A job and versions; or results files [default: all]"),
    ("history", "measure", "Over time: ratio (to a baseline), seconds or cpu"),
    ("history", "svg", "Write the picture into this file"),
    ("history", "wide", "All columns, warnings (others: --json, --markdown)"),
    ("history", "clients", "Clients at once: one number"),
    ("levers", "job", "The job: fans, ngrams, ... (`kvfair jobs`)"),
    ("levers", "profiles", "Size of `fans` (others: --messages, --requests)"),
    ("levers", "clients", "Clients at once: one number"),
    ("levers", "via", "How the job asks now; other ways are levers"),
    ("levers", "budget", "The time that it has [default: 15m]"),
    ("compare", "wide", "All columns, warnings (others: --json, --markdown)"),
];

/// What `--help` shows under headings. The common options stand in none of them and come first.
const SECTIONS: &[(&str, &[&str])] = &[
    ("Data", &["format", "columns", "field", "skip_bad", "order", "unit", "messages", "requests", "seed"]),
    (
        "Requests (getset, mixed, ycsb-*, trace)",
        &[
            "arrivals",
            "records",
            "values",
            "compressible",
            "keys",
            "reads",
            "writes",
            "only",
            "batch",
            "depth",
            "replay",
            "reconnect",
            "read_only",
        ],
    ),
    ("Agents (getset, mixed, ycsb-*, ngrams)", &["agents", "launch", "hosts"]),
    ("Blocks and time", &["blocks", "timeout", "no_aa", "pin", "rtt", "accept_noise", "list"]),
    (
        "Stores and answers",
        &[
            "split",
            "encoding",
            "queries",
            "cold",
            "readers",
            "configuration",
            "verify",
            "answers_only",
            "keep",
            "accept_unchecked",
            "answer",
        ],
    ),
    ("Output", &["json", "csv", "markdown", "html", "stat", "all", "no_warn"]),
];

/// Options of `run` that a command refuses, and why.
const REFUSED: &[(&str, &[&str], &str)] = &[
    (
        "find-max",
        &["rate", "requests", "blocks", "effort", "no_aa", "keep", "answers_only", "list"],
        "it chooses rates and trials by itself",
    ),
    ("find-max", &["depth", "batch"], "at a rate each request is sent when it is due"),
    (
        "find-max",
        &[
            "profiles", "messages", "input", "format", "columns", "field", "skip_bad", "order", "unit", "cold",
            "readers", "via", "encoding", "queries", "split", "replay",
        ],
        "only jobs of requests have a rate",
    ),
    ("find-max", &["exec", "answer"], "a program has no rate"),
    ("find-max", &["csv", "markdown", "all", "wide", "stat", "no_warn"], "it prints one table, or --json"),
    ("levers", &["rate", "arrivals", "replay"], "levers are compared as fast as they go"),
    ("levers", &["queries", "encoding"], "it compares what building takes, with records in JSON"),
    ("levers", &["rtt"], "levers are compared without a network"),
    ("levers", &["agents", "launch", "hosts"], "it starts stores and clients on this machine"),
    ("levers", &["read_only"], "it changes stores that are started here"),
    ("levers", &["keep", "answers_only", "list", "no_aa"], "it chooses trials by itself"),
    ("levers", &["csv", "markdown", "all", "wide", "stat", "no_warn"], "`kvfair show` has it"),
    ("history", &["rate", "arrivals", "replay"], "versions are compared as fast as they go"),
    ("history", &["agents", "launch", "hosts"], "it starts stores and clients on this machine"),
    ("history", &["keep", "answers_only", "list", "read_only"], "it compares what versions take"),
    ("history", &["csv", "all"], "it prints a table, --markdown or --json"),
    ("compare", &["csv", "all"], "it prints a table, --markdown or --json"),
    ("compare", &["list"], "`kvfair run` has it"),
];

/// The commands whose options are many.
const LONG: [&str; 6] = ["run", "find-max", "compare", "levers", "advise", "history"];

/// Whether what is said of one command holds for another: `advise` is the short form of `levers`.
fn holds_for(of: &str, command: &str) -> bool {
    of == command || (of, command) == ("levers", "advise")
}

/// The same commands, their help laid out. A negative number is a value that is out of range, and no option.
pub fn laid_out(commands: Command) -> Command {
    commands.mut_subcommands(|command| {
        let name = command.get_name().to_string();
        let command = command.mut_args(|argument| match argument.is_positional() {
            false if argument.get_action().takes_values() => argument.allow_negative_numbers(true),
            _ => argument,
        });
        if !LONG.contains(&name.as_str()) {
            return command;
        }
        let command = command.mut_args(|argument| placed(argument, &name));
        command.after_help("`--help` tells of all options, with examples.")
    })
}

/// With its heading and the words that `-h` has for it; hidden where the command refuses it.
fn placed(argument: Arg, command: &str) -> Arg {
    let id = argument.get_id().to_string();
    let is_refused = REFUSED.iter().any(|(of, ids, _)| holds_for(of, command) && ids.contains(&id.as_str()));
    let section = SECTIONS.iter().find(|(_, ids)| ids.contains(&id.as_str())).map(|(heading, _)| *heading);
    let argument = argument.help_heading(section).hide(is_refused);
    let of_one = OF_ONE.iter().find(|(of, common, _)| holds_for(of, command) && *common == id).map(|(.., short)| short);
    let of_all = || COMMON.iter().find(|(common, _)| *common == id).map(|(_, short)| short);
    let Some(short) = of_one.or_else(of_all) else {
        return argument.hide_short_help(true);
    };
    let mut long = argument.get_long_help().or(argument.get_help()).cloned().unwrap_or_default().to_string();
    let is_short = argument.get_action().takes_values() && !argument.is_positional();
    // In one line there is no room for it.
    if let (true, [default]) = (is_short, argument.get_default_values()) {
        long += &format!(" [default: {}]", default.to_string_lossy());
    }
    let argument = argument.help(*short).long_help(long);
    if is_short { argument.hide_default_value(true) } else { argument }
}

/// The mistake of an option that was typed and that its command refuses.
pub fn refused(typed: &ArgMatches) -> Option<String> {
    let (name, typed) = typed.subcommand()?;
    let is_typed = |id: &&&str| typed.value_source(id) == Some(ValueSource::CommandLine);
    let of_command = REFUSED.iter().filter(|(command, ..)| holds_for(command, name));
    let found = of_command.filter_map(|(_, ids, why)| Some((ids.iter().find(is_typed)?, why))).next();
    found.map(|(id, why)| format!("--{} is no option of {name}: {why}", id.replace('_', "-")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::command;

    #[test]
    fn every_name_in_the_tables_is_an_option() {
        let commands = command();
        let run = commands.find_subcommand("run").expect("a command");
        let all: Vec<&str> = LONG
            .iter()
            .flat_map(|name| commands.find_subcommand(name).expect("a command").get_arguments())
            .map(|argument| argument.get_id().as_str())
            .collect();
        let named = COMMON
            .iter()
            .map(|(id, _)| id)
            .chain(OF_ONE.iter().map(|(_, id, _)| id))
            .chain(SECTIONS.iter().flat_map(|(_, ids)| *ids));
        for id in named.chain(REFUSED.iter().flat_map(|(_, ids, _)| *ids)) {
            assert!(all.contains(id) || ["columns", "field"].contains(id), "{id}");
        }
        let headings = run.get_arguments().filter(|argument| argument.get_help_heading().is_some()).count();
        assert!(headings > 25, "{headings}");
    }

    #[test]
    fn short_help_fits_on_a_screen_of_24_lines_and_80_columns() {
        let all = command();
        for name in all.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name) {
            let mut command = all.find_subcommand(name).expect("a command").clone().term_width(80);
            let text = command.render_help().to_string();
            assert!(text.lines().count() <= 24, "{name}: {}\n{text}", text.lines().count());
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{name}:\n{text}");
        }
        for name in LONG {
            let long = all.find_subcommand(name).expect("a command").clone().render_long_help().to_string();
            assert!(long.contains("Examples:") && long.contains("--budget"), "{name}: {long}");
        }
    }

    /// By their names, with dashes: short help names options in its words too.
    fn options_in(help: &str) -> Vec<String> {
        let words = help.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
        words.filter_map(|word| word.strip_prefix("--")).map(str::to_string).collect()
    }

    /// What is told as an option is one: also what short help names in passing.
    #[test]
    fn what_help_names_is_taken() {
        for name in LONG {
            let mut command = command().find_subcommand(name).expect("a command").clone();
            let of = |id: &str| REFUSED.iter().any(|(of, ids, _)| holds_for(of, name) && ids.contains(&id));
            let refused: Vec<String> = command
                .get_arguments()
                .filter(|argument| of(argument.get_id().as_str()))
                .map(|argument| argument.get_long().expect("it has a name").to_string())
                .collect();
            assert_eq!(refused.is_empty(), name == "run");
            let short = command.render_help().to_string();
            let told = options_in(&short);
            assert!(told.iter().any(|told| told == "budget"), "{short}");
            assert_eq!(refused.iter().find(|refused| told.contains(refused)), None, "{short}");
            let long = command.render_long_help().to_string();
            let is_listed = |refused: &&String| {
                let listed = long.lines().filter(|line| line.trim_start().starts_with('-'));
                listed.flat_map(options_in).any(|told| told == **refused)
            };
            assert_eq!(refused.iter().find(is_listed), None, "{long}");
        }
    }
}

//! How help is laid out, and which of the options that commands share one of them refuses: tables, applied to what the
//! types in this room say.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command};

use super::run::{How, Look};
use crate::jobs::ngrams::NGRAMS;
use crate::jobs::{self, JobKind};

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
    ("find-max", "json", "Print what was found as JSON (others: --csv)"),
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
            "strict",
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
            "skip_missing",
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
            "readers", "via", "encoding", "queries", "split", "replay", "strict",
        ],
        "only jobs of requests have a rate",
    ),
    ("find-max", &["exec", "answer"], "a program has no rate"),
    ("find-max", &["all", "wide", "stat", "no_warn"], "it prints one table"),
    ("levers", &["rate", "arrivals", "replay", "strict"], "levers are compared as fast as they go"),
    ("levers", &["queries", "encoding"], "it compares what building takes, with records in JSON"),
    ("levers", &["rtt"], "levers are compared without a network"),
    ("levers", &["agents", "launch", "hosts"], "it starts stores and clients on this machine"),
    ("levers", &["read_only"], "it changes stores that are started here"),
    ("levers", &["keep", "answers_only", "list", "no_aa"], "it chooses trials by itself"),
    ("levers", &["all", "wide", "stat", "no_warn"], "`kvfair show` has it"),
    ("history", &["rate", "arrivals", "replay", "strict"], "versions are compared as fast as they go"),
    ("history", &["agents", "launch", "hosts"], "it starts stores and clients on this machine"),
    ("history", &["keep", "answers_only", "list", "read_only"], "it compares what versions take"),
    ("history", &["all"], "it prints a line for each version or target"),
    ("compare", &["all"], "it prints a line for each comparison"),
    ("compare", &["list"], "`kvfair run` has it"),
    ("compare", &["skip_missing"], "it needs both targets"),
    ("history", &["skip_missing"], "it needs all versions"),
    ("levers", &["skip_missing"], "it needs its store"),
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
        let command = command.mut_args(|argument| of_few_jobs_hidden(placed(argument, &name), &name));
        let more = format!("Options of one job: `kvfair help {name} JOB`, as in `kvfair help {name} mixed`.");
        let examples = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        let short = format!("`--help` has more; `kvfair help {name} mixed` has the options of that job.");
        command.after_help(short).after_long_help(format!("{more}\n\n{examples}"))
    })
}

/// The options of single jobs. This is asked of each option of each command whenever kvfair starts.
static OF_SOME_JOBS: LazyLock<BTreeSet<&str>> =
    LazyLock::new(|| jobs::ALL.iter().flat_map(|job| options_of(job)).collect());

/// Whether a job has that option. Options of all jobs are no options of a job.
fn is_of_job(argument: &Arg, kind: &JobKind) -> bool {
    let Some(name) = argument.get_long().map(|name| format!("--{name}")) else { return true };
    match name.as_str() {
        "--format" | "--columns" | "--field" | "--skip-bad" | "--input" => kind.recognise.is_some(),
        "--profiles" | "--messages" | "--requests" => name == format!("--{}", kind.scale),
        "--replay" => kind.recipe.is_empty(),
        "--via" => kind.ways.len() > 1,
        "--rate" => kind.requests.is_some(),
        "--agents" | "--launch" | "--hosts" => kind.requests.is_some() || kind.name == NGRAMS.name,
        name => !OF_SOME_JOBS.contains(name) || options_of(kind).any(|option| option == name),
    }
}

fn options_of(kind: &JobKind) -> impl Iterator<Item = &'static str> {
    kind.options.iter().chain(kind.requests.iter().flat_map(|requests| requests.options)).copied()
}

/// `kvfair help run JOB`: the options that the job has, and none of other jobs; nothing where something else was typed.
pub fn of_a_job(commands: Command, words: &[String]) -> Option<String> {
    let [help, command, job] = words else { return None };
    let kind = jobs::find(job).filter(|_| help == "help" && LONG.contains(&command.as_str()))?;
    let mut commands = laid_out(commands).mut_subcommand(command, |command| {
        let shown = |argument: Arg| {
            let is_shown = is_of_job(&argument, kind);
            argument.hide_long_help(!is_shown)
        };
        command.mut_args(shown)
    });
    commands.build();
    let found = commands.find_subcommand_mut(command).expect("it is a command");
    Some(format!("{}: {}\n\n{}", kind.name, kind.about, found.render_long_help()))
}

/// Without the options of single jobs, but for the common ones: `find-max` has jobs of requests only.
fn of_few_jobs_hidden(argument: Arg, command: &str) -> Arg {
    let is_common = COMMON.iter().any(|(id, _)| argument.get_id() == id) || command == "find-max";
    let is_of_all = jobs::ALL.iter().all(|kind| is_of_job(&argument, kind));
    argument.hide_long_help(!is_common && !is_of_all)
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
    let found = found.map(|(id, why)| format!("--{} is no option of {name}: {why}", id.replace('_', "-")));
    found.or_else(|| of_files(name, typed))
}

/// The same of `kvfair compare FILE FILE`, which runs nothing.
fn of_files(name: &str, typed: &ArgMatches) -> Option<String> {
    let are_files = || typed.get_many::<String>("what").is_some_and(|what| what.len() == 2);
    if name != "compare" || typed.contains_id("base") || typed.contains_id("head") || !are_files() {
        return None;
    }
    let (of_runs, shown) = (How::augment_args(Command::new("")), Look::augment_args(Command::new("")));
    let is_typed = |id: &str| typed.value_source(id) == Some(ValueSource::CommandLine);
    let is_shown = |argument: &&Arg| shown.get_arguments().any(|one| one.get_id() == argument.get_id());
    let mut all = of_runs.get_arguments().filter(|argument| !is_shown(argument));
    let option = all.find(|argument| is_typed(argument.get_id().as_str()))?.get_long()?;
    Some(format!(
        "--{option} is an option of runs, and results files are only read\nhint: leave it out; two targets in one run \
         are `kvfair compare JOB --base TARGET --head TARGET`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    use crate::cli::args::{Cli, command};

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

    #[test]
    fn a_command_that_lists_its_exit_codes_lists_that_of_a_missing_store() {
        let all = command();
        let long = |command: &Command| command.clone().render_long_help().to_string();
        let listed: Vec<String> =
            all.get_subcommands().map(long).filter(|help| help.contains("Exit codes: ")).collect();
        assert!(listed.len() > 5, "{listed:?}");
        for help in listed {
            let codes = help.split_once("Exit codes: ").expect("they are listed").1;
            assert!(codes.contains(" 3 "), "{codes}");
        }
    }

    #[test]
    fn each_option_of_run_is_in_its_help_or_in_that_of_a_job() {
        let all = command();
        let run = all.find_subcommand("run").expect("a command").clone();
        let long = run.clone().term_width(80).render_long_help().to_string();
        assert!(long.lines().count() < 260, "{}", long.lines().count());
        let of = |job: &str| {
            let words = ["help", "run", job].map(str::to_string);
            of_a_job(Cli::command(), &words).expect("help of a job")
        };
        let of_jobs: Vec<String> = jobs::ALL.iter().map(|kind| of(kind.name)).collect();
        for argument in run.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let Some(name) = argument.get_long().map(|name| format!("--{name}")) else { continue };
            let is_listed = |help: &String| options_in_lines(help).contains(&name);
            assert!(is_listed(&long) || of_jobs.iter().any(is_listed), "{name}");
        }
        let mixed = options_in_lines(&of("mixed"));
        assert!(mixed.contains(&"--reads".to_string()) && mixed.contains(&"--budget".to_string()), "{mixed:?}");
        for other in ["--profiles", "--queries", "--columns", "--replay", "--strict", "--order"] {
            assert!(!mixed.contains(&other.to_string()), "{other}");
        }
        assert!(!options_in_lines(&long).contains(&"--reads".to_string()), "{long}");
        assert_eq!(of_a_job(Cli::command(), &["help", "run"].map(str::to_string)), None);
    }

    /// The options that stand at the beginnings of lines.
    fn options_in_lines(help: &str) -> Vec<String> {
        let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
        lines
            .filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")))
            .map(str::to_string)
            .collect()
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

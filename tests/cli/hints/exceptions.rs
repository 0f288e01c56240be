//! Hints that no row of the table can have printed.

/// The file, how the hint begins there, and why it has no row.
pub const EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "src/cli/again.rs",
        "run, compare --base --head, ",
        "needs a page with a claim: tests/cli/bundles.rs has it refused",
    ),
    ("src/cli/again.rs", "--input FILE, whose SHA-256", "needs a page with a claim: tests/cli/reruns.rs mends it"),
    ("src/cli/clean.rs", "{wrote}", "where the run wrote: a row has it, and tests/cli/clean.rs"),
    ("src/cli/crash.rs", "`kvfair crash --forget {}`", "needs a loss that another try does not see"),
    ("src/cli/failover.rs", "all servers are on this machine", "needs a failover that loses nothing, which is chance"),
    ("src/cli/growth.rs", "--budget {", "what pilots took: tests/cli/growth.rs has it refused"),
    ("src/cli/levers/pilots.rs", "--budget {", "what pilots took: tests/cli/levers.rs has it refused"),
    ("src/cli/reproduce.rs", "{}", "how to get each store: tests/cli/reproduce.rs has it refused"),
    ("src/cli/rerun.rs", "its answer was unclear", "needs a search that ends unclear, which is chance"),
    ("src/cli/site.rs", "make several sites", "needs thousands of results"),
    ("src/cli/site.rs", "nothing in it can be shown", "what is wrong, not what to do"),
    ("src/cli/target.rs", "{}", "a build without some stores, and ports: tests/cli/bare.rs and rows have them"),
    ("src/harness/agents/mod.rs", "fewer agents a machine", "needs agents that begin apart, which is chance"),
    (
        "src/harness/bundle.rs",
        "use a kvfair of that version",
        "needs a bundle packed anew: tests/cli/bundles.rs makes one",
    ),
    ("src/harness/child.rs", "start the run again", "needs a program that is replaced: tests/cli/gone.rs does so"),
    ("src/harness/clean/mod.rs", "put the same data in its place", "needs a killed run: tests/cli/clean.rs kills one"),
    ("src/harness/dataset.rs", "this is an error of kvfair", "an error of kvfair itself"),
    ("src/harness/dataset.rs", ", as the kernel does", "what happened, not what to do"),
    ("src/harness/kept_data.rs", "{}", "needs a program that goes away after it was looked for"),
    ("src/harness/message_range.rs", "an agent on another machine", "needs a file that another machine has not"),
    ("src/scheduler/findmax.rs", "a longer --budget", "needs a search that its time ends between two steps"),
    ("src/scheduler/gated.rs", "stop other programs", "needs a machine that other programs disturb"),
    ("src/protocol/postgres/greeting.rs", ": name one that is there", "it ends a sentence of the server's"),
];

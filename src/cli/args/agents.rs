//! What may be typed of agents: processes that share the clients of a run.

use std::path::PathBuf;

use clap::Args;

/// Who drives the clients.
#[derive(Clone, Debug, Default, Args)]
pub struct AgentArgs {
    /// Drive the clients of a job of requests, or of `ngrams`, from N processes, the agents, which share them
    ///
    /// Each has at least one client, and its part of the rates or messages. They begin at one moment, and their results
    /// are added up exactly. A lost agent is named and leaves no number. Without --launch all run on this machine. See
    /// docs/agents.md.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub agents: Option<u32>,
    /// The command that starts one agent elsewhere and connects its standard input and output: `ssh {host} kvfair
    /// agent`, `ip netns exec {host} kvfair agent`; {host} and {rank} are filled in, and `sh -c` runs it
    ///
    /// What each agent needs to know, a password too, goes through its standard input. Targets are then stores by URL
    /// that all agents reach.
    #[arg(long, value_name = "CMD", requires = "agents")]
    pub launch: Option<String>,
    /// The hosts of --launch, one a line: the first N of them get an agent each; `#` begins a comment
    #[arg(long, value_name = "FILE", requires = "launch")]
    pub hosts: Option<PathBuf>,
}

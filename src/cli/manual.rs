//! The hidden command `manual`: man pages and completions, from the options themselves. `./package` ships them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;

use super::{Exit, args};

pub fn manual(directory: &Path) -> Result<Exit> {
    write(directory).with_context(|| format!("cannot write the manual into {}", directory.display()))?;
    Ok(Exit::Ok)
}

fn write(directory: &Path) -> Result<()> {
    let (man, completions) = (directory.join("man"), directory.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(args::command(), &man)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut without_hidden(&args::command()), "kvfair", &completions)?;
    }
    Ok(())
}

/// Completions would offer hidden commands too.
fn without_hidden(all: &Command) -> Command {
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new("kvfair").args(all.get_arguments().cloned()).subcommands(shown)
}

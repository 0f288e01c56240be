//! What may be typed of a program of the user's that is run in the place of a job.

use std::path::PathBuf;

use clap::Args;

use crate::model::trial::Answer;

/// A program of the user's in the place of a job.
#[derive(Debug, Default, Args)]
pub struct Exec {
    /// Run a program of your own as the trial, in place of a job: all names are targets then
    ///
    /// `sh -c CMD` is run here, for each target in each block, beside a fresh server of the target's (none for an
    /// embedded store, which the program opens in {dir}). {host}, {port}, {socket}, {url} and {dir} (an empty
    /// directory) stand for where the target is, and are in the environment as KVFAIR_HOST and so on, with
    /// KVFAIR_TARGET; a URL's password is in KVFAIR_URL alone. Time, CPU and memory are of the program and all that it
    /// starts; what still runs at its end is killed. A server that is dead then, or was started again, fails the trial.
    /// A store by URL must be empty, and the program must leave it so. Records hold CMD without logins.
    #[arg(long, value_name = "CMD")]
    pub exec: Option<String>,
    /// What must be the same from every target of --exec, by its digest: stdout, a FILE that the program writes (as in
    /// {dir}/answer), or none [default: stdout]
    #[arg(long, value_name = "WHAT", requires = "exec", value_parser = answer)]
    pub answer: Option<Answer>,
}

fn answer(text: &str) -> Result<Answer, String> {
    match text {
        "" => Err("stdout, a file or none".to_string()),
        "stdout" => Ok(Answer::Stdout),
        "none" => Ok(Answer::None),
        file => Ok(Answer::File(PathBuf::from(file))),
    }
}

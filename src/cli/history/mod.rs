//! `kvfair history`: versions of a store in the same blocks, or the results files of a directory over time.

use std::path::Path;

use anyhow::{Result, anyhow};

use super::args::History;
use super::{Exit, Usage, nearest, paged};
use crate::harness::save;
use crate::jobs;

mod decide;
mod over_time;
mod versions;

/// A job is known by its name, unless a file has that name.
pub fn history(args: History) -> Result<Exit> {
    paged::is_to_be_new(args.how.look.forms.html.as_deref())?;
    args.svg.as_deref().map_or(Ok(()), save::is_to_be_new)?;
    match args.what.split_first() {
        Some((job, targets)) if jobs::find(job).is_some() && !Path::new(job).exists() => {
            let (job, targets) = (job.clone(), targets.to_vec());
            versions::versions(args, &job, targets)
        }
        Some((first, _)) if !Path::new(first).exists() => Err(neither(first)),
        _ => over_time::over_time(&args),
    }
}

fn neither(what: &str) -> anyhow::Error {
    let near = nearest(what, jobs::ALL.iter().map(|job| job.name));
    let hint = near.map_or_else(
        || "`kvfair jobs` lists the jobs; results files end in .jsonl".to_string(),
        |near| format!("did you mean `{near}`?"),
    );
    anyhow!(Usage(format!("'{what}' is no job and no file\nhint: {hint}")))
}

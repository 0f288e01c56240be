//! `kvfair site`: pages of several runs in a directory, with an index.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use super::args::SiteArgs;
use super::shown::NothingShown;
use super::{Exit, complain, paged};
use crate::harness::load::NoRun;
use crate::harness::site;
use crate::model::units;
use crate::report::page::{self, IndexEntry, PageFacts};

/// A page of 10,000 records takes less than a megabyte.
const PAGE_BYTES_MAX: u64 = 8 << 20;
const INDEX: &str = "index.html";
const INDEX_BYTES_MAX: usize = 300_000;

pub fn site(args: &SiteArgs) -> Result<Exit> {
    let mut named: BTreeMap<String, &PathBuf> = BTreeMap::new();
    for path in &args.results {
        let name = name_of(path)?;
        if name == INDEX {
            bail!("{}: {INDEX} is the name of the index\nhint: give the file another name", path.display());
        }
        if let Some(before) = named.insert(name.clone(), path) {
            let both = format!("{} and {}", before.display(), path.display());
            bail!("{both}: the page of each would be {name}\nhint: give one of them another name");
        }
    }
    let (mut files, mut entries, mut passed) = (BTreeMap::new(), Vec::new(), Vec::new());
    for (name, path) in named {
        let (text, facts) = match page_of(path) {
            Err(error) if error.is::<NothingShown>() || error.is::<NoRun>() => {
                passed.push(format!("{error:#}"));
                continue;
            }
            page => page?,
        };
        files.insert(name.clone(), text.into_bytes());
        entries.push(IndexEntry { file: name, facts });
    }
    passed.iter().for_each(|why| complain(&format!("kvfair: skipped {why}")));
    if entries.is_empty() {
        return Err(anyhow!(NothingShown("no site is written: none of the files has results to show".to_string())));
    }
    let index = page::index(&entries);
    if index.len() > INDEX_BYTES_MAX {
        let (count, bytes) = (entries.len(), index.len());
        bail!(
            "the index of {count} results would have {bytes} bytes, at most {INDEX_BYTES_MAX}\nhint: make several sites"
        );
    }
    files.insert(INDEX.to_string(), index.into_bytes());
    site::write(&args.directory, &files)?;
    let pages = units::counted(entries.len() as u64, "page");
    complain(&format!("site: {} ({pages})", args.directory.join(INDEX).display()));
    Ok(Exit::Ok)
}

/// "fans.html", of "results/fans.jsonl" and of "pages/fans.html".
fn name_of(path: &Path) -> Result<String> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).map(|stem| format!("{stem}.html"));
    stem.filter(|name| site::is_name(name)).with_context(|| {
        let shown = path.display();
        format!("{shown}: no page can have that name\nhint: use a name of letters and digits, as in fans.jsonl")
    })
}

fn page_of(path: &Path) -> Result<(String, PageFacts)> {
    let is_page = path.extension().is_some_and(|end| end == "html");
    let text = if is_page { text_of(path)? } else { paged::of_file(path)? };
    let facts = page::facts(&text).map_err(|why| {
        let (why, hint) = match is_page {
            true => (why, "`kvfair show RESULTS --html PAGE` writes one"),
            // Its page says so, and has no manifest.
            false => ("nothing in it can be shown".to_string(), "`kvfair show` tells more"),
        };
        let hint = if why.contains("\nhint: ") { String::new() } else { format!("\nhint: {hint}") };
        let what = format!("{}: {why}{hint}", path.display());
        if is_page { anyhow!(what) } else { anyhow!(NothingShown(what)) }
    })?;
    if facts.has_other_script {
        let shown = path.display();
        complain(&format!(
            "kvfair: {shown}: its script is not that of this kvfair's pages: look at it before you publish it"
        ));
    }
    Ok((text, facts))
}

fn text_of(path: &Path) -> Result<String> {
    let bytes = site::read_at_most(path, PAGE_BYTES_MAX)?;
    String::from_utf8(bytes).map_err(|_| anyhow!("{} is no text", path.display()))
}

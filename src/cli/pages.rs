//! Pages of one job, joined: `kvfair show A.html B.html --html OUT.html`, and the page that `kvfair rerun` writes.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};

use super::args::Look;
use super::{Exit, Usage, complain, print};
use crate::harness::{save, site};
use crate::report::page::machines_page;
use crate::report::replicated::judge::across;
use crate::report::replicated::{PageRun, merged, parse};

/// No page of kvfair's own has so many bytes.
const PAGE_BYTES_MAX: u64 = 128 << 20;

/// By its name: results files end otherwise.
pub fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("html") || end.eq_ignore_ascii_case("htm"))
}

/// The runs of a page, checked.
pub fn read(path: &Path) -> Result<PageRun> {
    let text = String::from_utf8(site::read_at_most(path, PAGE_BYTES_MAX)?)
        .map_err(|_| anyhow!("{} is no page: it is no text", path.display()))?;
    parse(&text).map_err(|what| anyhow!("{}: {what}", path.display()))
}

/// Joins pages of the same job into one.
pub fn join(paths: &[PathBuf], look: &Look) -> Result<Exit> {
    let usage = |what: &str| Err(anyhow!(Usage(what.to_string())));
    if let Some(other) = paths.iter().find(|path| !is_page(path)) {
        return usage(&format!("{} is no page, and pages are joined with pages alone", other.display()));
    }
    let Some(out) = &look.forms.html else {
        return usage("pages are joined into a page\nhint: kvfair show A.html B.html --html OUT.html");
    };
    let pages: Vec<PageRun> = paths.iter().map(|path| read(path)).collect::<Result<_>>()?;
    let page = merged(pages).map_err(|what| anyhow!("these pages do not belong together: {what}"))?;
    print(&summary(&page))?;
    write(&page, out)?;
    Ok(Exit::Ok)
}

/// A line for each claim: on how many machines it held.
fn summary(page: &PageRun) -> String {
    let runs = page.all();
    across(&runs).iter().map(|row| format!("{}: {}\n", row.words, row.held(&runs))).collect()
}

/// The page of these runs, to a file that is new.
pub fn write(page: &PageRun, out: &Path) -> Result<()> {
    save::write_new(&[(out.to_path_buf(), machines_page(page)?)])?;
    complain(&format!("page: {}", out.display()));
    Ok(())
}

/// Where the page with one more run goes: `report-2.html` beside `report.html`, or the next number that is free.
pub fn beside(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut numbered = (2..).map(|number| path.with_file_name(format!("{stem}-{number}.html")));
    numbered.find(|path| path.symlink_metadata().is_err()).expect("numbers do not run out")
}

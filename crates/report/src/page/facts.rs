//! What a page tells of itself, read back from its text: for an index of pages. The text may come from anybody.

use super::style::{self, POLICY};
use crate::replicated::{self, PageTarget};
use kvfair_core::trial::Transport;

/// What an index tells of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct PageFacts {
    /// Its heading.
    pub sentence: String,
    pub job: String,
    pub stores: Vec<String>,
    pub machine: String,
    /// When its run began, as records have it.
    pub began: String,
    pub method: u32,
    /// Of each store of its largest size: whether it is a server, and its seconds in times of the shortest.
    pub ratios: Vec<(bool, f64)>,
    /// Its script is not that of this kvfair's pages.
    pub has_other_script: bool,
}

/// How each page begins, before its policy.
const BEGINNING: &str = "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" content=\"";

/// Why a text is no page, where it is none. A page without the policy could send a reader anywhere.
pub fn facts(page: &str) -> Result<PageFacts, String> {
    let no_page = "no page of kvfair: it does not begin with the policy of one";
    let rest = page.strip_prefix(BEGINNING).and_then(|rest| rest.strip_prefix(POLICY[0])).ok_or(no_page)?;
    let (digest, rest) = rest.split_once('\'').ok_or(no_page)?;
    let is_base64 = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '/' | '=');
    let ends = POLICY[1].strip_prefix('\'').expect("it ends the digest");
    if !digest.chars().all(is_base64) || !rest.starts_with(&format!("{ends}\">")) {
        return Err(no_page.to_string());
    }
    let run = replicated::parse(page)?;
    let ratios = ratios(&run.targets);
    let mut stores: Vec<String> = run.targets.into_iter().map(|target| target.store).collect();
    stores.sort();
    stores.dedup();
    Ok(PageFacts {
        sentence: text(between(page, "<h1>", "</h1>").ok_or("it has no heading")?),
        job: run.job.name,
        stores,
        machine: between(page, "<dt>machine</dt><dd>", "</dd>").map_or_else(|| "unknown".to_string(), text),
        began: run.began,
        method: run.method,
        ratios,
        has_other_script: digest != style::digest(style::SCRIPT),
    })
}

fn ratios(targets: &[PageTarget]) -> Vec<(bool, f64)> {
    let largest = targets.iter().map(|target| target.units).max();
    let is_ranked = |target: &&PageTarget| Some(target.units) == largest && target.rank.is_some();
    let timed = targets.iter().filter(is_ranked).filter_map(|target| Some((target.transport, target.seconds?)));
    let timed: Vec<(Transport, f64)> = timed.filter(|(_, seconds)| seconds.is_finite() && *seconds > 0.0).collect();
    let least = timed.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
    timed.into_iter().map(|(transport, seconds)| (transport != Transport::InProcess, seconds / least)).collect()
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    Some(text.split_once(before)?.1.split_once(after)?.0)
}

/// The text of an element that holds none but a part of a heading, without the escapes of HTML.
fn text(html: &str) -> String {
    let html = html.replace("<span>", "").replace("</span>", "");
    let text = html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::replicated::BEGINS;
    use super::*;

    /// The manifest of a page of those stores.
    fn manifest(stores: &[&str]) -> String {
        let target = |store: &&str| {
            json!({"target": store, "store": store, "transport": "tcp", "version": "7", "client_library": "",
                "units": 9, "status": "right", "trials": 6, "rank": null, "seconds": 1.0})
        };
        let run = json!({
            "form": 2, "kvfair": "0.2.0", "method": 2, "debug_build": false, "began": "20261122T032606Z", "command": [],
            "seeds": {"order": 1}, "blocks": 6, "discarded_blocks": 0, "durability": "none",
            "configuration": "matched", "clients": 1,
            "job": {"name": "fans", "unit": "profile", "sizes": [9], "ops": 9, "via": "portable", "split": "pages"},
            "data": {"recipe": "likes10k", "seed": 1, "sha256": "0".repeat(64)},
            "machine": {"cpu": "x", "cpus": 2, "memory_bytes": 1, "kernel": "", "os": "", "filesystem": ""},
            "targets": stores.iter().map(target).collect::<Vec<_>>(), "claims": [], "sentence": "x"
        });
        run.to_string()
    }

    fn page(manifest: &str) -> String {
        let body = format!(
            "<h1>a &lt; <span>b &amp;amp;</span></h1><dl><div><dt>machine</dt><dd>x86, 2 processors</dd></div></dl>\
             {BEGINS}{manifest}</script>"
        );
        style::document("kvfair", &body)
    }

    #[test]
    fn a_page_tells_what_it_is_of() {
        let of_a_page = page(&manifest(&["redis", "lmdb", "redis"]));
        let expected = PageFacts {
            sentence: "a < b &amp;".to_string(),
            job: "fans".to_string(),
            stores: vec!["lmdb".to_string(), "redis".to_string()],
            machine: "x86, 2 processors".to_string(),
            began: "20261122T032606Z".to_string(),
            ratios: Vec::new(),
            method: 2,
            has_other_script: false,
        };
        assert_eq!(facts(&of_a_page), Ok(expected));
        let other = of_a_page.replacen("sha256-", "sha256-A", 1);
        assert!(facts(&other).expect("a page").has_other_script);
    }

    #[test]
    fn what_is_no_page_of_results_is_refused() {
        let good = page(&manifest(&["redis"]));
        let of = |text: &str| facts(text).expect_err("no page of results");
        assert!(of("").contains("policy") && of("<!DOCTYPE html><html>").contains("policy"));
        assert!(of(&good.replacen("default-src 'none'", "default-src *", 1)).contains("policy"));
        assert!(
            of(&good.replacen("form-action 'none'\">", "form-action 'none'; script-src *\">", 1)).contains("policy")
        );
        assert!(of(&good.replacen("sha256-", "sha256-x' 'unsafe-inline", 1)).contains("policy"));
        assert!(of(&style::document("kvfair", "<h1>x</h1>")).contains("no manifest"));
        assert!(of(&good.replacen(BEGINS, &format!("{BEGINS}</script>{BEGINS}"), 1)).contains("two manifests"));
        assert!(of(&page("{}")).starts_with("its manifest cannot be read: missing field"));
        assert!(of(&page("[")).starts_with("its manifest cannot be read: "));
        assert!(of(&page(&manifest(&["redis"]).replace("\"form\":2", "\"form\":99"))).contains("form 99"));
        assert!(of(&good.replace("h1>", "h2>")).contains("no heading"));
    }
}

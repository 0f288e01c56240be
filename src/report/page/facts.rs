//! What a page tells of itself, read back from its text: for an index of pages. The text may come from anybody.

use serde::Deserialize;

use super::style::{self, POLICY};
use crate::report::replicated::FORM;

/// What an index tells of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFacts {
    /// Its heading.
    pub sentence: String,
    pub job: String,
    pub stores: Vec<String>,
    pub machine: String,
    /// When its run began, as records have it.
    pub began: String,
    pub method: u32,
    /// Its script is not that of this kvfair's pages.
    pub has_other_script: bool,
}

/// Of the manifest, what is read here.
#[derive(Deserialize)]
struct Manifest {
    form: u32,
    method: u32,
    began: String,
    job: Job,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Job {
    name: String,
}

#[derive(Deserialize)]
struct Target {
    store: String,
}

/// How each page begins, before its policy.
const BEGINNING: &str = "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" content=\"";
const MANIFEST: &str = "<script type=\"application/json\" id=\"manifest\">";

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
    match page.matches(MANIFEST).count() {
        1 => {}
        0 => return Err("it has no manifest, so it is no page of results".to_string()),
        _ => return Err("it has several manifests".to_string()),
    }
    let manifest = between(page, MANIFEST, "</script>").unwrap_or_default();
    let manifest: Manifest = serde_json::from_str(manifest).map_err(|error| format!("its manifest: {error}"))?;
    if manifest.form != FORM {
        let (its, ours) = (manifest.form, FORM);
        return Err(format!("its manifest is of form {its}, and this kvfair reads form {ours}"));
    }
    let mut stores: Vec<String> = manifest.targets.into_iter().map(|target| target.store).collect();
    stores.sort();
    stores.dedup();
    Ok(PageFacts {
        sentence: text(between(page, "<h1>", "</h1>").ok_or("it has no heading")?),
        job: manifest.job.name,
        stores,
        machine: between(page, "<dt>machine</dt><dd>", "</dd>").map_or_else(|| "unknown".to_string(), text),
        began: manifest.began,
        method: manifest.method,
        has_other_script: digest != style::digest(style::SCRIPT),
    })
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
    use super::*;

    const OF_A_PAGE: &str = r#"{"form":2,"method":2,"began":"20261122T032606Z","job":{"name":"fans"},
        "targets":[{"store":"redis","rank":null},{"store":"lmdb"},{"store":"redis"}],"sentence":"x"}"#;

    fn page(manifest: &str) -> String {
        let body = format!(
            "<h1>a &lt; <span>b &amp;amp;</span></h1><dl><div><dt>machine</dt><dd>x86, 2 processors</dd></div></dl>\
             {MANIFEST}{manifest}</script>"
        );
        style::document("kvfair", &body)
    }

    #[test]
    fn a_page_tells_what_it_is_of() {
        let expected = PageFacts {
            sentence: "a < b &amp;".to_string(),
            job: "fans".to_string(),
            stores: vec!["lmdb".to_string(), "redis".to_string()],
            machine: "x86, 2 processors".to_string(),
            began: "20261122T032606Z".to_string(),
            method: 2,
            has_other_script: false,
        };
        assert_eq!(facts(&page(OF_A_PAGE)), Ok(expected));
        let other = page(OF_A_PAGE).replacen("sha256-", "sha256-A", 1);
        assert!(facts(&other).expect("a page").has_other_script);
    }

    #[test]
    fn what_is_no_page_of_results_is_refused() {
        let good = page(OF_A_PAGE);
        let of = |text: &str| facts(text).expect_err("no page of results");
        assert!(of("").contains("policy") && of("<!DOCTYPE html><html>").contains("policy"));
        assert!(of(&good.replacen("default-src 'none'", "default-src *", 1)).contains("policy"));
        assert!(
            of(&good.replacen("form-action 'none'\">", "form-action 'none'; script-src *\">", 1)).contains("policy")
        );
        assert!(of(&good.replacen("sha256-", "sha256-x' 'unsafe-inline", 1)).contains("policy"));
        assert!(of(&style::document("kvfair", "<h1>x</h1>")).contains("no manifest"));
        assert!(
            of(&good.replacen(MANIFEST, &format!("{MANIFEST}</script>{MANIFEST}"), 1)).contains("several manifests")
        );
        assert!(of(&page("{}")).starts_with("its manifest: missing field"));
        assert!(of(&page("[")).starts_with("its manifest: "));
        assert!(of(&page(&OF_A_PAGE.replace("\"form\":2", "\"form\":99"))).contains("of form 99"));
        assert!(of(&good.replace("h1>", "h2>")).contains("no heading"));
    }
}

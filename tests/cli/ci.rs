//! `examples/ci/compare.sh`, which is the work of action.yml, with real servers; and that the two files of CI say what
//! the script takes. The services themselves are not here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::desk::{Desk, Said, Started, real};
use crate::common::needs::{Need, needs, tools};
use crate::common::slower::slower_redis;

const SCRIPT: &str = "examples/ci/compare.sh";
const PREFIX: &str = "KVFAIR_CI_";

fn text(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file))
        .unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The script with these settings, as a service runs it.
fn script(desk: &Desk, settings: &[(&str, &str)]) -> Said {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(SCRIPT);
    let mut command = desk.command(&path.display().to_string(), &[]);
    let small = "--only set --clients 1 --requests 500 --records 100 --blocks 6";
    command.envs([
        ("KVFAIR_CI_KVFAIR", env!("CARGO_BIN_EXE_kvfair")),
        ("KVFAIR_CI_JOB", "getset"),
        ("KVFAIR_CI_STORE", "redis+unix"),
        ("KVFAIR_CI_OPTIONS", small),
    ]);
    command.env("GITHUB_STEP_SUMMARY", desk.home().join("summary.md")).env("GITHUB_OUTPUT", desk.home().join("output"));
    command.envs(settings.iter().map(|(name, value)| (format!("{PREFIX}{name}"), value)));
    Started::new(command).wait()
}

fn left(desk: &Desk, file: &str) -> String {
    fs::read_to_string(desk.home().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn redis() -> String {
    real("redis-server").display().to_string()
}

/// 200 us of CPU more a write is many times what a write takes: noise hides that from times at the most.
#[cfg(target_os = "linux")]
#[test]
fn a_planted_regression_fails_with_5_and_leaves_its_page() {
    let desk = Desk::new();
    slower_redis(&desk, 200);
    let redis = redis();
    let build = "printf built > built.txt";
    let said = script(
        &desk,
        &[("BASE", &redis), ("HEAD", "./slower-redis"), ("FAIL_IF", "slower:5% cpu:10%"), ("BUILD_HEAD", build)],
    );
    said.exits(5)
        .shows("**Regression**: ")
        .shows("cpu:10% is exceeded: <code>head</code> against <code>base</code> uses ");
    said.complains("kvfair: cpu:10% is exceeded").complains("kvfair: slower:5%").complains("builds head: printf built");
    assert_eq!(left(&desk, "built.txt"), "built");
    let comment = left(&desk, "kvfair-compare/comment.md");
    assert_eq!((&comment, &left(&desk, "summary.md")), (&said.out, &said.out));
    assert_eq!(left(&desk, "output"), "verdict=regression\nexit-code=5\n");
    assert!(left(&desk, "kvfair-compare/page.html").contains("head against base"));
    desk.run(&["show", "kvfair-compare/results.jsonl"]).exits(0).shows("head");

    // The other way round it is none.
    let better = [("BASE", "./slower-redis"), ("HEAD", &*redis), ("DIRECTORY", "better"), ("FAIL_IF", "cpu:10%")];
    script(&desk, &better).exits(0).shows("**No regression**: cpu:10% is kept");
}

#[cfg(target_os = "linux")]
#[test]
fn the_inputs_decide_whether_an_unclear_end_fails() {
    let desk = Desk::new();
    let redis = redis();
    let short = "--only set --clients 1 --requests 200 --records 100 --blocks 2";
    let with = |is_failure: &str, directory: &str| {
        let both = [("BASE", redis.as_str()), ("HEAD", redis.as_str()), ("OPTIONS", short)];
        let more = [("FAIL_IF_UNCLEAR", is_failure), ("DIRECTORY", directory)];
        script(&desk, &[&both[..], &more[..]].concat())
    };
    with("true", "one").exits(6).shows("**Unclear**: slower:5%: ").complains("hold the same bytes");
    with("false", "two")
        .exits(0)
        .shows("**Unclear**: ")
        .complains("exit code 6, nothing can be said, does not fail here");
    assert!(left(&desk, "output").ends_with("verdict=unclear\nexit-code=6\n"));
}

#[test]
fn settings_that_cannot_be_right_are_named_before_anything_is_measured() {
    let desk = Desk::new();
    let ls = real("ls").display().to_string();
    let good = [("BASE", ls.as_str()), ("HEAD", ls.as_str())];
    let with = |more: &[(&str, &str)]| script(&desk, &[&good[..], more].concat());
    desk.file("a&b", "");
    desk.file("plain", "");
    fs::create_dir(desk.home().join("old")).expect("a directory");
    with(&[("BASE", "")]).exits(2).complains("no program as it was is named").complains("hint: ");
    with(&[("HEAD", "")]).exits(2).complains("no program as it is is named");
    with(&[("HEAD", "nowhere")]).exits(2).complains("head: nowhere is no program").complains("build-head");
    with(&[("BASE", "plain")]).exits(2).complains("base: plain is no program");
    with(&[("BASE", "a&b")]).exits(2).complains("letters that a target cannot hold");
    with(&[("DIRECTORY", "old")]).exits(2).complains("old is there already");
    with(&[("FAIL_IF_UNCLEAR", "maybe")]).exits(2).complains("neither true nor false");
    with(&[("FAIL_IF", " ")]).exits(2).complains("is blank");
    with(&[("BUILD_BASE", "exit 7")]).exits(1).complains("the command that builds base ended with 7");
    // kvfair's own words of what it refuses, and a comment that says so.
    let said = with(&[("FAIL_IF", "memory:3%")]);
    said.exits(2).complains("'memory'").shows("**Not compared**: kvfair ended with exit code 2");
    assert_eq!(left(&desk, "output"), "verdict=failed\nexit-code=2\n");
}

/// The names behind the prefix in a text.
fn variables(text: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let named = text.split(PREFIX).skip(1).map(|rest| rest.split(|letter| !is_part(letter)).next().expect("a name"));
    named.map(str::to_string).collect()
}

/// The keys of a mapping below a line of a YAML file that has nothing else.
fn keys(text: &str, heading: &str) -> Vec<String> {
    let mut lines = text.lines().skip_while(|line| line.trim() != heading);
    let indent = |line: &str| line.len() - line.trim_start().len();
    let Some(outer) = lines.next().map(indent) else { return Vec::new() };
    let inside: Vec<&str> = lines.take_while(|line| indent(line) > outer).collect();
    let inner = inside.first().map_or(0, |line| indent(line));
    let of_it = inside.iter().filter(|line| indent(line) == inner);
    of_it.filter_map(|line| Some(line.trim().split_once(':')?.0.to_string())).collect()
}

#[test]
fn the_action_and_the_script_take_the_same() {
    let (action, script) = (text("action.yml"), text(SCRIPT));
    let inputs = keys(&action, "inputs:");
    assert!(inputs.len() > 8 && inputs.contains(&"fail-if".to_string()), "{inputs:?}");
    let variable = |input: &String| input.to_uppercase().replace('-', "_");
    let of_inputs: BTreeSet<String> = inputs.iter().map(variable).collect();
    assert_eq!(of_inputs, variables(&action), "each input is handed on");
    assert_eq!(of_inputs, variables(&script), "and the script reads it");
    let code = script.split_once("set -euo pipefail").expect("the code").1;
    let read: BTreeSet<String> =
        variables(code).into_iter().filter(|name| code.contains(&format!("${{{PREFIX}{name}:-"))).collect();
    assert_eq!(of_inputs, read, "by a name with a default");
    for input in &inputs {
        assert!(action.contains(&format!("{PREFIX}{}: ${{{{ inputs.{input} }}}}", variable(input))), "{input}");
    }
    for output in ["verdict", "exit-code"] {
        assert!(keys(&action, "outputs:").contains(&output.to_string()) && script.contains(&format!("{output}=%s")));
    }
    // What a change holds is never a part of a command.
    assert!(action.lines().filter(|line| line.contains("run:")).all(|line| !line.contains("${{")), "{action}");
    let gitlab = variables(&text("examples/ci/gitlab-ci.yml"));
    assert!(gitlab.len() > 5 && gitlab.is_subset(&of_inputs), "{gitlab:?}");
}

/// By Python's parser.
#[test]
fn the_files_of_ci_are_yaml() {
    let parse = "import sys, yaml\nfor name in sys.argv[1:]: print(sorted(map(str, yaml.safe_load(open(name)))))";
    let files =
        ["action.yml", "examples/ci/gitlab-ci.yml"].map(|file| Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
    for file in &files {
        let text = fs::read_to_string(file).expect("a file");
        assert!(!text.contains('\t') && text.ends_with('\n'), "{}", file.display());
    }
    needs!(Need::tool("python/yaml"));
    let mut python = Command::new("python3");
    let done = python.env("PYTHONPATH", tools().join("python")).arg("-c").arg(parse).args(&files).output();
    let done = done.expect("python3");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(
        said.contains("['description', 'inputs', 'name', 'outputs', 'runs']") && said.contains("['compare']"),
        "{said}"
    );
}

//! Files that need each other in a circle cannot be understood one at a time: at most two may.
//!
//! At each level the modules of one folder are looked at, each with all that lies below it. A module and its parent's
//! own file are at different levels.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module as its names from the crate on: `["report", "cells"]`.
type Module = Vec<String>;

/// All modules with their code, without comments and tests.
fn modules() -> BTreeMap<Module, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeMap::new();
    collect(&root, &mut Vec::new(), &mut found);
    for entry in fs::read_dir(root.with_file_name("crates")).expect("the folder of crates") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_str().expect("text").to_string();
        let mut modules = BTreeMap::new();
        collect(&path.join("src"), &mut vec![name.clone()], &mut modules);
        // A path from the crate on begins with the crate's name here.
        let named = |code: String| code.replace("crate::", &format!("crate::{name}::"));
        found.extend(modules.into_iter().map(|(module, code)| (module, named(code))));
    }
    found
}

fn collect(folder: &Path, names: &mut Module, found: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_str().expect("text").to_string();
        if path.is_dir() {
            names.push(name);
            collect(&path, names, found);
            names.pop();
        } else if path.extension().is_some_and(|end| end == "rs") && !["lib", "main"].contains(&name.as_str()) {
            let module = if name == "mod" { names.clone() } else { [names.as_slice(), &[name]].concat() };
            found.insert(module, code(&fs::read_to_string(&path).expect("a source")));
        }
    }
}

fn code(text: &str) -> String {
    let end = text.find("\n#[cfg(test)]\nmod ").unwrap_or(text.len());
    text[..end].lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The paths that code names, lists in braces taken apart one level deep.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let is_whole = code[..at]
                .chars()
                .next_back()
                .is_none_or(|before| !before.is_alphanumeric() && before != ':' && before != '_');
            if is_whole {
                expand(&code[at..], &mut found);
            }
        }
    }
    found
}

fn expand(from: &str, found: &mut Vec<Vec<String>>) {
    let mut path: Vec<String> = Vec::new();
    let mut rest = from;
    loop {
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
        if end > 0 {
            path.push(rest[..end].to_string());
            rest = &rest[end..];
        }
        let Some(next) = rest.strip_prefix("::") else { return found.push(path) };
        if let Some(list) = next.strip_prefix('{') {
            return names(list).into_iter().for_each(|name| found.push([path.as_slice(), &name].concat()));
        }
        if !next.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_') {
            return found.push(path);
        }
        rest = next;
    }
}

/// The paths of a list, up to its closing brace; of lists within it the beginnings.
fn names(list: &str) -> Vec<Vec<String>> {
    let (mut depth, mut found, mut piece) = (1, Vec::new(), String::new());
    for letter in list.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => found.push(std::mem::take(&mut piece)),
            _ if depth == 1 => piece.push(letter),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    found.push(piece);
    let split = |piece: String| -> Vec<String> {
        let path = piece.split_whitespace().next().unwrap_or_default();
        path.split("::").filter(|name| !name.is_empty()).map(str::to_string).collect()
    };
    found.into_iter().map(split).filter(|path| !path.is_empty()).collect()
}

/// The module that a path leads to, as seen from another one.
fn target(from: &Module, path: &[String], all: &BTreeMap<Module, String>) -> Option<Module> {
    let mut place = from.clone();
    let mut rest = path;
    while let [first, others @ ..] = rest {
        match first.as_str() {
            "crate" => place.clear(),
            "super" => drop(place.pop()),
            "self" => {}
            _ => break,
        }
        rest = others;
    }
    for name in rest {
        let next = [place.as_slice(), std::slice::from_ref(name)].concat();
        if !all.contains_key(&next) {
            break;
        }
        place = next;
    }
    (!place.is_empty() && place != *from).then_some(place)
}

type Needs = BTreeMap<Module, BTreeSet<Module>>;

/// What the modules of each folder need of each other.
fn levels(all: &BTreeMap<Module, String>) -> BTreeMap<Module, Needs> {
    let mut levels: BTreeMap<Module, Needs> = BTreeMap::new();
    for (module, code) in all {
        for needed in paths(code).iter().filter_map(|path| target(module, path, all)) {
            let common = module.iter().zip(&needed).take_while(|(one, other)| one == other).count();
            if common < module.len() && common < needed.len() {
                let level = levels.entry(module[..common].to_vec()).or_default();
                level.entry(module[..=common].to_vec()).or_default().insert(needed[..=common].to_vec());
            }
        }
    }
    levels
}

/// All modules that can be reached from one.
fn reached(from: &Module, needs: &Needs) -> BTreeSet<Module> {
    let mut found = BTreeSet::new();
    let mut next = vec![from.clone()];
    while let Some(module) = next.pop() {
        for needed in needs.get(&module).into_iter().flatten() {
            if found.insert(needed.clone()) {
                next.push(needed.clone());
            }
        }
    }
    found
}

/// The circles of a level, each once.
fn circles(needs: &Needs) -> BTreeSet<BTreeSet<Module>> {
    let all: BTreeMap<&Module, BTreeSet<Module>> =
        needs.keys().map(|module| (module, reached(module, needs))).collect();
    let circle = |module: &&Module| -> BTreeSet<Module> {
        let back = all[module].iter().filter(|other| all.get(other).is_some_and(|reached| reached.contains(*module)));
        back.cloned().collect()
    };
    all.keys().map(circle).filter(|circle| !circle.is_empty()).collect()
}

#[test]
fn no_circle_has_more_than_two_files() {
    let all = modules();
    assert!(all.len() > 200, "only {} modules were found", all.len());
    let mut faults = Vec::new();
    for (level, needs) in levels(&all) {
        for circle in circles(&needs).into_iter().filter(|circle| circle.len() > 2) {
            let names: Vec<&str> = circle.iter().map(|module| module.last().expect("a name").as_str()).collect();
            faults.push(format!("{}: {}", level.join("/"), names.join(", ")));
        }
    }
    assert!(faults.is_empty(), "in a circle:\n{}", faults.join("\n"));
}

#[test]
fn the_checker_sees_circles() {
    let module = |name: &str| name.split('/').map(str::to_string).collect::<Module>();
    let all: BTreeMap<Module, String> = [
        ("a", "use crate::b::{c::Thing, self};"),
        ("b", ""),
        ("b/c", "use super::d;"),
        ("b/d", "fn f() { super::e::g() }"),
        ("b/e", "use super::{c::x, f};"),
    ]
    .map(|(name, code)| (module(name), code.to_string()))
    .into();
    let levels = levels(&all);
    assert!(circles(&levels[&module("b")]).contains(&["b/c", "b/d", "b/e"].map(module).into()));
    assert!(circles(levels.get(&Vec::new()).expect("the crate's own level")).is_empty(), "a needs b, b needs nothing");
}

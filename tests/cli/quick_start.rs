//! The commands of README's quick start, at a small size: what a newcomer types first works.

use crate::common::desk::Desk;

#[test]
fn the_quick_start_works() {
    let readme = include_str!("../../README.md");
    let (_, rest) = readme.split_once("## Quick start").expect("the section");
    let section = rest.split("\n## ").next().expect("its end");
    let commands: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("$ kvfair ")).collect();
    assert!(!commands.is_empty(), "{section}");
    for command in commands {
        let mut words: Vec<&str> = command.split_whitespace().collect();
        let size = words.iter().position(|word| *word == "--profiles").expect("a size");
        words[size + 1] = "30";
        let said = Desk::new().run(&[&words[..], &["--blocks", "1"]].concat());
        said.exits(0).shows("fans, 30 profiles").shows(" answers right");
    }
}

//! What a terminal shows: as wide as it is, with one line of what is not here, and with what is under way in words.

use std::fs::File;
use std::process::Stdio;

use crate::cli::forms::results;
use crate::common::desk::{Desk, LIMIT};

/// Runs kvfair on a terminal of so many columns, to its end; all that was shown, without the marks of lines redrawn.
fn shown(desk: &Desk, columns: u32, arguments: &str) -> String {
    shown_on(desk, (50, columns), &[], arguments)
}

/// The same on a terminal of so many lines and columns, with this in the environment.
fn shown_on(desk: &Desk, (lines, columns): (u32, u32), environment: &[(&str, &str)], arguments: &str) -> String {
    let command = format!("stty rows {lines} cols {columns}; {} {arguments}", env!("CARGO_BIN_EXE_kvfair"));
    let screen = desk.home().join("screen");
    let mut script = desk.command("/usr/bin/script", &["-qec", &command, "/dev/null"]);
    script.env("PATH", format!("{}:/usr/bin:/bin", desk.path())).env("TERM", "xterm").env("SHELL", "/bin/sh");
    script.env_remove("NO_COLOR").envs(environment.iter().copied());
    script.stdin(Stdio::null()).stdout(File::create(&screen).expect("a file"));
    let mut child = script.spawn().expect("script");
    let began = std::time::Instant::now();
    while child.try_wait().expect("our own child").is_none() {
        assert!(began.elapsed() < LIMIT, "it hangs");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::fs::read_to_string(screen).expect("what was shown").replace('\r', "\n")
}

/// Green, red, yellow and their end.
const COLOURS: [&str; 4] = ["\u{1b}[32m", "\u{1b}[31m", "\u{1b}[33m", "\u{1b}[0m"];

fn is_coloured(text: &str) -> bool {
    COLOURS.iter().any(|colour| text.contains(colour))
}

fn without_colours(text: &str) -> String {
    COLOURS.iter().fold(text.to_string(), |text, colour| text.replace(colour, ""))
}

/// The lines behind the last mark of the bar: the result.
fn result(shown: &str) -> Vec<&str> {
    shown.lines().rev().take_while(|line| !line.contains('\u{1b}')).collect()
}

/// Lines of the bar, and of the table above it where its headings are, in which a word is cut at the terminal's edge:
/// what is drawn fills its lines with blanks, and a line that is too long goes on in the next one.
fn cut_at(columns: usize, shown: &str) -> Vec<String> {
    let drawn = shown.split(['\n', '\u{1b}']).filter(|part| part.contains(" of ") || part.contains("seconds"));
    // Behind the escape, `[2K` and the like.
    let lines = drawn.map(|part| part.trim_start_matches(['[', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']));
    let is_cut = |line: &&str| {
        let letters: Vec<char> = line.trim_start_matches(['A', 'B', 'K']).chars().collect();
        (columns..letters.len()).step_by(columns).any(|at| letters[at - 1] != ' ' && letters[at] != ' ')
    };
    lines.filter(is_cut).map(str::to_string).collect()
}

#[test]
fn text_and_tables_are_as_wide_as_the_terminal_from_60_columns_on() {
    let desk = Desk::new();
    let run = "run fans ram lmdb redis+unix --profiles 60 --blocks 4";
    let all = without_colours(&shown(&desk, 60, run));
    let lines = result(&all);
    // Whoever copies the next command or a digest of the answer has it in one line.
    let is_one = |line: &str| line.starts_with("next: kvfair ") || line.starts_with(" sha256 ");
    let too_long = |line: &&&str| line.chars().count() > 60 && !is_one(line);
    assert_eq!(lines.iter().find(too_long), None, "{all}");
    assert!(crate::common::desk::one_line(&all).contains(" answers right"), "{all}");
    assert!(all.contains("block 2 of 4, "), "{all}");
    assert_eq!(cut_at(60, &all), Vec::<String>::new(), "{all}");
    assert!(lines.iter().any(|line| line.contains("no room for: ")), "{all}");
    let whole = shown(&desk, 100, "show");
    assert!(whole.contains("waiting    CPU us/op") && !whole.contains("no room for"), "{whole}");
    assert!(whole.lines().any(|line| line.chars().count() > 80), "{whole}");
    let narrowest = shown(&desk, 20, "show");
    assert!(narrowest.lines().any(|line| (50..=60).contains(&line.chars().count())), "{narrowest}");
}

#[test]
fn what_is_under_way_is_named_in_words() {
    let desk = Desk::new();
    let all = shown(&desk, 100, "run fans ram redis+unix --profiles 300 --blocks 4");
    assert!(all.contains("warm-up, 1 of 2: ") && all.contains("block 4 of 4, "), "{all}");
    assert!(!all.contains("block 0"), "{all}");
    assert!(!all.contains("until intervals are narrow"), "so many blocks were asked for: {all}");
    // Blocks of a run that has done its least go on until intervals are narrow, and the time that they have is told.
    // A server over a socket is never that even after six blocks.
    let all = shown(&desk, 100, "run fans ram redis+unix --profiles 40 --effort normal --budget 90s");
    assert!(all.contains(", until intervals are narrow, at most "), "{all}");
    assert!(!all.contains("about 0 seconds left") && !all.contains("at most 0 seconds"), "{all}");
}

/// Results may go elsewhere than what is under way.
#[test]
fn what_is_under_way_is_as_wide_as_the_terminal_where_results_go_to_a_file() {
    let desk = Desk::new();
    let all = shown(&desk, 60, "run mixed ram lmdb redis+unix --records 50 --requests 500 --clients 2 --blocks 2 >out");
    assert!(all.contains("block 2 of 2, "), "{all}");
    assert_eq!(cut_at(60, &all), Vec::<String>::new(), "{all}");
}

#[test]
fn what_is_not_here_is_one_line_on_a_terminal_where_no_target_was_named() {
    let desk = Desk::with_only(&["redis-server"]);
    let run = "run ngrams --messages 20 --blocks 1";
    let all = shown(&desk, 100, run);
    let absent: Vec<&str> = all.lines().filter(|line| line.contains("not here: ")).collect();
    assert!(absent.len() == 1 && absent[0].contains("memcached") && !absent[0].contains("redis"), "{all}");
    let before = |what: &str| all.find(what).unwrap_or_else(|| panic!("no '{what}' in {all}"));
    assert!(before("not here: ") < before("ngrams, 20 messages"), "{all}");
    assert!(!shown(&desk, 100, &format!("{run} ram")).contains("not here: "));
    assert!(!desk.run(&["run", "ngrams", "--messages", "20", "--blocks", "1"]).err.contains("not here: "));
}

#[test]
fn a_terminal_has_colours_unless_it_is_told_otherwise() {
    let desk = Desk::with_only(&[]);
    desk.file("fans.jsonl", results("fans"));
    let show = |environment: &[(&str, &str)], options: &str| {
        shown_on(&desk, (50, 100), environment, &format!("show fans.jsonl {options}"))
    };
    let all = show(&[], "");
    assert!(all.contains("\u{1b}[32m 1     redis+unix ") && all.contains("\u{1b}[33mwarning (discarded):"), "{all}");
    assert!(is_coloured(&show(&[("NO_COLOR", "")], "")), "an empty NO_COLOR says nothing");
    for (environment, options) in
        [(&[("NO_COLOR", "1")][..], ""), (&[], "--color never"), (&[("TERM", "dumb")], ""), (&[], "--markdown")]
    {
        let all = show(environment, options);
        assert!(!is_coloured(&all) && all.contains("redis+unix"), "{environment:?} {options}: {all}");
    }
    assert!(is_coloured(&show(&[("NO_COLOR", "1")], "--color always")), "what is typed counts");
    // Elsewhere than on a terminal.
    assert!(!is_coloured(&desk.run(&["show", "fans.jsonl"]).out));
    let said = desk.run(&["show", "fans.jsonl", "--color", "always"]);
    assert!(is_coloured(&said.out), "{}", said.out);
    assert!(!is_coloured(&desk.run(&["show", "fans.jsonl", "--json", "--color", "always"]).out), "programs read JSON");
    desk.run(&["show", "fans.jsonl", "--color", "red"]).exits(2).complains("[possible values: auto, always, never]");
}

#[test]
fn a_label_brings_no_colour_of_its_own() {
    let desk = Desk::with_only(&[]);
    let labelled = results("fans").replace("\"label\":\"redis\"", "\"label\":\"\\u001b[31mred\\u001b[5m\"");
    desk.file("fans.jsonl", labelled);
    let all = shown(&desk, 100, "show fans.jsonl");
    assert!(all.contains("red") && is_coloured(&all), "{all}");
    assert!(!all.contains("\u{1b}[31m") && !all.contains("\u{1b}[5m"), "{all}");
}

/// Rows stand in order while a run goes on, and the screen is clear of them before the result comes.
#[test]
fn a_low_or_a_plain_terminal_gets_what_it_can_show() {
    let desk = Desk::new();
    let run = "run fans null ram lmdb redb fjall sqlite --profiles 40 --blocks 2";
    let low = shown_on(&desk, (10, 80), &[], run);
    assert!(low.contains(" more lines") && low.contains("block 2 of 2, "), "{low}");
    let dumb = shown_on(&desk, (24, 80), &[("TERM", "dumb")], run);
    assert!(dumb.contains("block 1 of 2 done\n") && !dumb.contains("working"), "a line a block: {dumb}");
    assert!(!dumb.contains('\u{1b}'), "{dumb}");
}

/// A line that the terminal wraps would be drawn again below itself.
#[test]
fn a_line_of_the_table_is_cut_where_a_narrow_terminal_ends() {
    let desk = Desk::new();
    let all = without_colours(&shown(&desk, 40, "run fans null ram lmdb sqlite --profiles 1000 --blocks 2"));
    // Each line that is drawn fills the screen's with blanks.
    let drawn = all.split(['\n', '\u{1b}']).find(|part| part.contains("A target "));
    let (_, table) = drawn.and_then(|part| part.split_once('A')).unwrap_or_else(|| panic!("{all}"));
    let first: String = table.chars().take(40).collect();
    assert!(first.trim_end().ends_with('…') && first.trim_end().chars().count() == 39, "{first:?} of {all}");
}

/// Behind a pipe there is no terminal: `COLUMNS=80 kvfair show | less`.
#[test]
fn behind_a_pipe_columns_of_the_environment_are_the_width() {
    let desk = Desk::with_only(&[]);
    let widest = |columns: &str| {
        desk.file("getset.jsonl", results("getset"));
        let mut kvfair = desk.kvfair(&["show", "getset.jsonl"]);
        kvfair.env("COLUMNS", columns);
        let said = crate::common::desk::Started::new(kvfair).wait();
        said.exits(0).out.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    };
    for (columns, least) in [("80", 70), ("60", 50), ("100", 90), ("1000", 90)] {
        let (widest, most) = (widest(columns), columns.parse::<usize>().expect("a number").min(100));
        assert!((least..=most).contains(&widest), "{columns}: {widest}");
    }
    assert!(widest("no number") <= 100);
}

//! What a terminal shows: as wide as it is, with one line of what is not here, and with what is under way in words.

use std::fs::File;
use std::process::Stdio;

use crate::desk::{Desk, LIMIT};

/// Runs kvfair on a terminal of so many columns, to its end; all that was shown, without the marks of lines redrawn.
fn shown(desk: &Desk, columns: u32, arguments: &str) -> String {
    let command = format!("stty rows 50 cols {columns}; {} {arguments}", env!("CARGO_BIN_EXE_kvfair"));
    let screen = desk.home().join("screen");
    let mut script = desk.command("/usr/bin/script", &["-qec", &command, "/dev/null"]);
    script.env("PATH", format!("{}:/usr/bin:/bin", desk.path())).env("TERM", "xterm").env("SHELL", "/bin/sh");
    script.stdin(Stdio::null()).stdout(File::create(&screen).expect("a file"));
    let mut child = script.spawn().expect("script");
    let began = std::time::Instant::now();
    while child.try_wait().expect("our own child").is_none() {
        assert!(began.elapsed() < LIMIT, "it hangs");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::fs::read_to_string(screen).expect("what was shown").replace('\r', "\n")
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
    let all = shown(&desk, 60, run);
    let lines = result(&all);
    // Whoever copies the next command or a digest of the answer has it in one line.
    let is_one = |line: &str| line.starts_with("next: kvfair ") || line.starts_with(" sha256 ");
    let too_long = |line: &&&str| line.chars().count() > 60 && !is_one(line);
    assert_eq!(lines.iter().find(too_long), None, "{all}");
    assert!(lines.iter().any(|line| line.starts_with("data: ")), "{all}");
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
    let all = shown(&desk, 100, "run fans ram lmdb --profiles 40 --effort normal --budget 15s");
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

//! The only place that writes to standard output, standard error or the terminal. All text is made plain here, wherever
//! it came from: servers, files, pages and arguments may hold escape sequences.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, anyhow};
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use nix::sys::termios::{self, LocalFlags, SetArg, Termios};
use terminal_size::{Height, Width, terminal_size_of};

use super::color;
use crate::harness::timing::End;
use crate::model::plain;
use crate::report::table;

/// Prints a result. A reader that has gone away wanted no more.
pub fn print(text: &str) -> Result<()> {
    written(|out| out.write_all(plain::text(text).as_bytes()))
}

/// Prints what people read of a run, in colours where they are wanted.
pub fn print_table(text: &str) -> Result<()> {
    let plain = plain::text(text);
    let is_painted = color::is_wanted(io::stdout().is_terminal());
    let shown = if is_painted { color::painted(&plain) } else { plain.into_owned() };
    written(|out| out.write_all(shown.as_bytes()))
}

/// Prints what `write` hands over, byte by byte as it is where nobody looks on.
pub fn print_data(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let is_watched = io::stdout().is_terminal();
    written(|out| {
        let mut out = BufWriter::with_capacity(1 << 16, out);
        if is_watched {
            let mut plain = Plain { out: &mut out, line: Vec::new() };
            write(&mut plain).and_then(|()| plain.end())?;
        } else {
            write(&mut out)?;
        }
        out.flush()
    })
}

/// Not through the standard library's own handle: that one passes over a standard output that cannot be written.
fn written(write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
    let out = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    match out.and_then(|mut out| write(&mut out)) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| anyhow!("cannot write to standard output: {error}")),
    }
}

/// Says something that is no result. If even that cannot be said, no process is there to hear.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", plain::text(text));
}

/// Whether somebody sees what is said.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Asks a question, and hears one line.
pub fn ask(question: &str) -> io::Result<String> {
    let mut answer = String::new();
    write!(io::stderr().lock(), "{}", plain::text(question))?;
    io::stdin().read_line(&mut answer)?;
    Ok(answer)
}

/// While it lives the terminal shows nothing of what is typed, also before the question for a password.
pub struct Silence(Option<Termios>);

impl Silence {
    pub fn begin() -> Silence {
        let before = termios::tcgetattr(io::stdin()).ok();
        if let Some(mut silent) = before.clone() {
            silent.local_flags.remove(LocalFlags::ECHO);
            let _ = termios::tcsetattr(io::stdin(), SetArg::TCSANOW, &silent);
        }
        Silence(before)
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = termios::tcsetattr(io::stdin(), SetArg::TCSANOW, before);
        }
    }
}

/// Asks for a password, which is not shown.
pub fn ask_for_password(question: &str) -> io::Result<String> {
    rpassword::prompt_password(plain::text(question).as_ref())
}

/// Help, or what is wrong with what was typed: in colours where there is nothing to be made plain.
pub fn tell_usage(error: &clap::Error) -> Result<()> {
    let text = error.render().to_string();
    let is_plain = matches!(plain::text(&text), std::borrow::Cow::Borrowed(_));
    let coloured = || error.render().ansi().to_string();
    if error.use_stderr() {
        let shown =
            if is_plain && color::is_wanted(is_watched()) { coloured() } else { plain::text(&text).into_owned() };
        let _ = io::stderr().lock().write_all(shown.as_bytes());
        return Ok(());
    }
    let shown = if is_plain && color::is_wanted(io::stdout().is_terminal()) {
        coloured()
    } else {
        plain::text(&text).into_owned()
    };
    written(|out| out.write_all(shown.as_bytes()))
}

/// How wide the terminal is that results go to, in columns. Behind a pipe COLUMNS says it, if it is set.
pub fn columns() -> Option<u16> {
    let of_terminal = terminal_size_of(io::stdout()).map(|(Width(columns), _)| columns);
    of_terminal.or_else(|| std::env::var("COLUMNS").ok()?.parse().ok()).filter(|columns| *columns > 0)
}

/// How wide text is printed, in columns.
pub fn width() -> usize {
    columns().map_or(table::WIDTH, table::on_columns)
}

/// The height in lines of the terminal that standard error goes to; none where it goes elsewhere.
pub fn lines_of_screen() -> Option<u16> {
    terminal_size_of(io::stderr()).map(|(_, Height(lines))| lines)
}

/// How wide the terminal is that shows what is under way; none where nobody looks on.
pub fn columns_of_screen() -> Option<u16> {
    terminal_size_of(io::stderr()).map(|(Width(columns), _)| columns)
}

/// Lines as long as a screen of so many columns shows them. What a terminal wraps, it cannot draw again in place.
fn cut(text: &str, columns: Option<u16>) -> String {
    let most = columns.map_or(usize::MAX, |columns| usize::from(columns.max(2)) - 1);
    let line = |line: &str| match line.char_indices().nth(most) {
        Some(_) => format!("{}…", line.chars().take(most - 1).collect::<String>()),
        None => line.to_string(),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// The bar itself, in columns.
const BAR: usize = 16;

/// A line that shows how far something is, below what there is so far.
pub struct ProgressLine {
    bar: ProgressBar,
    /// What is under way.
    what: Arc<Mutex<String>>,
}

impl ProgressLine {
    /// For so many steps, and after them `until` something, or `end` at the latest; nothing where nobody sees it.
    pub fn new(steps: u64, until: Option<&'static str>, end: Option<End>) -> Option<ProgressLine> {
        (is_watched() && !color::is_dumb()).then(|| {
            let (bar, what) = (ProgressBar::new(steps), Arc::<Mutex<String>>::default());
            let style = ProgressStyle::with_template("{msg}{far}").expect("the template is valid");
            let told = Arc::clone(&what);
            let far = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                let is_past = state.pos() >= state.len().unwrap_or(0);
                let left = match is_past {
                    true => until.map_or_else(String::new, |until| more_in_words(until, end.map(|end| end.left()))),
                    false => left_in_words(state.eta()),
                };
                let what = told.lock().expect("no thread panics while telling");
                let columns = columns_of_screen().map_or(usize::MAX, usize::from);
                let _ = out.write_str(&far_in_words(&what, state.fraction(), &left, columns));
            };
            bar.set_style(style.with_key("far", far));
            ProgressLine { bar, what }
        })
    }

    pub fn set_length(&self, steps: u64) {
        self.bar.set_length(steps);
    }

    pub fn set_position(&self, step: u64) {
        self.bar.set_position(step);
    }

    /// What is under way.
    pub fn set_prefix(&self, text: &str) {
        *self.what.lock().expect("no thread panics while telling") = plain::line(text).into_owned();
        self.bar.tick();
    }

    /// What stands above it.
    pub fn set_message(&self, text: &str) {
        let plain = cut(&plain::text(text), columns_of_screen());
        let shown = if color::is_wanted(is_watched()) { color::painted(&plain) } else { plain };
        self.bar.set_message(shown);
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// "block 1 of 6, 2 of 4: redis, working [====>   ] 40 %, about 2 minutes left": in one line where there is room, else
/// in several, without the bar where that has none.
fn far_in_words(what: &str, share: f32, left: &str, columns: usize) -> String {
    let done = (BAR as f32 * share.clamp(0.0, 1.0)) as usize;
    let head = if done < BAR { ">" } else { "" };
    let bar = format!("{:<BAR$}", format!("{}{head}", "=".repeat(done)));
    let percent = format!("{:.0} %{left}", (share * 100.0).floor());
    let fits = |line: &String| line.chars().count() <= columns;
    let room = columns.saturating_sub(1);
    let lines = || [table::wrap(what, room), table::wrap(&percent, room)].concat().join("\n");
    Some(format!("{what} {bar} {percent}")).filter(fits).unwrap_or_else(lines)
}

/// ", about 2 minutes left"; before the first step has ended nothing is known.
fn left_in_words(eta: Duration) -> String {
    if eta < Duration::from_secs(1) { String::new() } else { format!(", about {} left", HumanDuration(eta)) }
}

/// Once the least blocks are run: what is waited for, and how long at the most, if the time has an end.
fn more_in_words(until: &str, left: Option<Duration>) -> String {
    match left {
        Some(left) if left < Duration::from_secs(1) => ", its time is over".to_string(),
        Some(left) => format!(", {until}, at most {}", HumanDuration(left)),
        None => format!(", {until}"),
    }
}

/// Makes lines plain as they come.
struct Plain<'a, W: Write> {
    out: &'a mut W,
    line: Vec<u8>,
}

impl<W: Write> Plain<'_, W> {
    fn end(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        self.out.write_all(plain::text(&String::from_utf8_lossy(&line)).as_bytes())
    }
}

impl<W: Write> Write for Plain<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.end()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_told_before_it_is_known_nor_when_it_is_over() {
        assert_eq!(left_in_words(Duration::ZERO), "");
        assert_eq!(left_in_words(Duration::from_secs(120)), ", about 2 minutes left");
        let more = |left| more_in_words("until intervals are narrow", left);
        assert_eq!(more(Some(Duration::from_secs(5))), ", until intervals are narrow, at most 5 seconds");
        assert_eq!(more(Some(Duration::from_millis(400))), ", its time is over");
        assert_eq!(more(None), ", until intervals are narrow");
    }

    #[test]
    fn the_bar_goes_where_there_is_no_room_and_the_rest_is_wrapped() {
        let (what, left) = ("block 3 of 6 to 10, 2 of 4: memcached+unix, checking answers", ", about 2 minutes left");
        let whole = far_in_words(what, 0.46, left, 110);
        assert_eq!(whole, format!("{what} =======>         46 %{left}"));
        assert!(far_in_words(what, 1.0, "", 110).ends_with(" ================ 100 %"));
        let narrow = far_in_words(what, 0.46, left, 59);
        assert_eq!(narrow, format!("{}\n46 %{left}", what.replace(" answers", "\nanswers")));
    }
}

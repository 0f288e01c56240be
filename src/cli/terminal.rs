//! The only place that writes to standard output, standard error or the terminal. All text is made plain here, wherever
//! it came from: servers, files, pages and arguments may hold escape sequences.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::{Result, anyhow};
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use terminal_size::{Width, terminal_size_of};

use crate::lab::timing::End;
use crate::words::plain;

/// Prints a result. A reader that has gone away wanted no more.
pub fn print(text: &str) -> Result<()> {
    written(|out| out.write_all(plain::text(text).as_bytes()))
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

/// Says something that is no result. If even that cannot be said, nobody is there to hear.
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
        let shown = if is_plain && is_watched() { coloured() } else { plain::text(&text).into_owned() };
        let _ = io::stderr().lock().write_all(shown.as_bytes());
        return Ok(());
    }
    let shown = if is_plain && io::stdout().is_terminal() { coloured() } else { plain::text(&text).into_owned() };
    written(|out| out.write_all(shown.as_bytes()))
}

/// How wide the terminal is that results go to, in columns; none where they go elsewhere.
pub fn columns() -> Option<u16> {
    terminal_size_of(io::stdout()).map(|(Width(columns), _)| columns)
}

/// Of a bar, in columns: a narrow terminal has room for what is under way too.
const BAR: &str = "{msg}{prefix} {bar:16} {percent} %{left}";

/// A line that shows how far something is, below what there is so far.
pub struct Bar(ProgressBar);

impl Bar {
    /// For so many steps, until `end` at the latest; nothing where nobody sees it.
    pub fn new(steps: u64, end: Option<End>) -> Option<Bar> {
        is_watched().then(|| {
            let bar = ProgressBar::new(steps);
            let style = ProgressStyle::with_template(BAR).expect("the template is valid");
            let left = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                let more = (state.pos() >= state.len().unwrap_or(0)).then(|| end.map(|end| end.left()));
                let _ = out.write_str(&left_in_words(more, state.eta()));
            };
            bar.set_style(style.with_key("left", left).progress_chars("=> "));
            Bar(bar)
        })
    }

    pub fn set_length(&self, steps: u64) {
        self.0.set_length(steps);
    }

    pub fn set_position(&self, step: u64) {
        self.0.set_position(step);
    }

    /// What is under way.
    pub fn set_prefix(&self, text: &str) {
        self.0.set_prefix(plain::line(text).into_owned());
    }

    /// What stands above it.
    pub fn set_message(&self, text: &str) {
        self.0.set_message(plain::text(text).into_owned());
    }

    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// ", about 2 minutes left"; once the least blocks are run, the `more` that intervals may take to become narrow, if
/// the time has an end.
fn left_in_words(more: Option<Option<Duration>>, eta: Duration) -> String {
    match more {
        // Before the first step has ended nothing is known.
        None if eta < Duration::from_secs(1) => String::new(),
        None => format!(", about {} left", HumanDuration(eta)),
        Some(Some(left)) => format!(", until intervals are narrow, at most {}", HumanDuration(left)),
        Some(None) => ", until intervals are narrow".to_string(),
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
    fn no_time_is_told_before_it_is_known() {
        assert_eq!(left_in_words(None, Duration::ZERO), "");
        assert_eq!(left_in_words(None, Duration::from_secs(120)), ", about 2 minutes left");
        let narrow = left_in_words(Some(Some(Duration::from_secs(5))), Duration::ZERO);
        assert_eq!(narrow, ", until intervals are narrow, at most 5 seconds");
    }
}

//! What is written where: data to stdout, everything else to stderr, text from a file escaped.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stderr, StdoutLock, Write};

use weigh::format::text::escaped;

use crate::args::Color;
use crate::session::is_closed_pipe;

/// The data stream.
pub(crate) type Data = BufWriter<Stream>;

/// Where data goes.
#[derive(Debug)]
pub(crate) enum Stream {
    Stdout(StdoutLock<'static>),
    /// Where stdout has something else. Nothing can be done when it is closed.
    Stderr(Stderr),
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::Stderr(stderr) => Ok(stderr.write(bytes).unwrap_or(bytes.len())),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::Stderr(_) => Ok(()),
        }
    }
}

/// The two streams.
#[derive(Debug)]
pub(crate) struct Output {
    out: Data,
    /// Whether stdout takes colour.
    pub(crate) color: bool,
    error_color: bool,
    /// Whether stdout is a terminal.
    pub(crate) is_terminal: bool,
    /// Columns of the terminal that stdout is, if it is one.
    pub(crate) width: Option<usize>,
}

/// A colour or weight of text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Style {
    Bold,
    Dim,
    Red,
    Yellow,
    Green,
    Cyan,
}

impl Output {
    pub(crate) fn new(color: Color) -> Self {
        let wanted = |is_terminal: bool| match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                is_terminal && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty())
            }
        };
        let is_terminal = io::stdout().is_terminal();
        Self {
            out: buffered(Stream::Stdout(io::stdout().lock())),
            color: wanted(is_terminal),
            error_color: wanted(io::stderr().is_terminal()),
            is_terminal,
            width: is_terminal.then(terminal_width).flatten(),
        }
    }

    /// The data stream.
    pub(crate) fn data(&mut self) -> &mut Data {
        &mut self.out
    }

    /// From now on data goes to stderr: stdout has something else. What stdout did not take is dropped.
    pub(crate) fn leave_stdout(&mut self) {
        let left = std::mem::replace(&mut self.out, buffered(Stream::Stderr(io::stderr())));
        drop(left.into_parts());
        self.color = self.error_color;
    }

    /// What goes before and after text in a style; nothing if stdout takes no colour.
    pub(crate) fn paint(&self, style: Style) -> Paint {
        if self.color { style.paint() } else { Paint::NONE }
    }

    /// Text in a style, if stdout takes colour.
    pub(crate) fn styled(&self, style: Style, text: impl Display) -> String {
        paint(self.color, style, text)
    }

    /// Writes text of ours or of a finding, escaped, after a label of `taken` columns.
    ///
    /// On a terminal lines break between words: the first is indented by the first number, the others by
    /// the second. Elsewhere there is one line.
    pub(crate) fn write_hanging(
        &mut self,
        [first, others]: [usize; 2],
        label: &str,
        taken: usize,
        text: &str,
    ) -> io::Result<()> {
        let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(others).max(20));
        let taken = (first + taken).saturating_sub(others);
        for (number, line) in wrapped(text, taken, room).iter().enumerate() {
            match number {
                0 => writeln!(self.out, "{:first$}{label}{line}", "")?,
                _ => writeln!(self.out, "{:others$}{line}", "")?,
            }
        }
        Ok(())
    }

    /// Writes what is waiting.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// A line about a failure on stderr, escaped: `error: …`, and what to do about it.
    pub(crate) fn error(&mut self, message: &str, help: Option<&str>) {
        self.message("error", Style::Red, message, help);
    }

    /// A line of less weight on stderr, escaped.
    pub(crate) fn note(&mut self, message: &str) {
        self.message("note", Style::Cyan, message, None);
    }

    /// A line on stderr, escaped, after a word that says how bad it is.
    pub(crate) fn message(&mut self, word: &str, style: Style, message: &str, help: Option<&str>) {
        // Lines on the two streams keep their order on a terminal.
        let _ = self.out.flush();
        let mut stderr = io::stderr().lock();
        let word = paint(self.error_color, style, format!("{word}:"));
        // Nothing can be done when stderr is closed.
        let _ = writeln!(stderr, "{word} {}", escaped(message));
        if let Some(help) = help {
            let word = paint(self.error_color, Style::Cyan, "  help:");
            let _ = writeln!(stderr, "{word} {}", escaped(help));
        }
    }
}

/// Whether there is still somebody who reads: when a pipe was closed, the verdict is found out all the same.
#[derive(Debug, Default)]
pub(crate) struct Writing {
    closed: Option<anyhow::Error>,
}

impl Writing {
    /// Whether somebody still does.
    pub(crate) fn is_open(&self) -> bool {
        self.closed.is_none()
    }

    /// Takes what a write came to.
    pub(crate) fn keep(&mut self, written: anyhow::Result<()>) -> anyhow::Result<()> {
        match written {
            Err(error) if is_closed_pipe(&error) => self.closed = Some(error),
            written => written?,
        }
        Ok(())
    }

    /// The closed pipe, if there was one.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        self.closed.map_or(Ok(()), Err)
    }
}

/// What goes before and after text in a style.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    pub(crate) on: &'static str,
    pub(crate) off: &'static str,
}

impl Paint {
    const NONE: Self = Self { on: "", off: "" };
}

impl Style {
    fn paint(self) -> Paint {
        let on = match self {
            Self::Bold => "\u{1b}[1m",
            Self::Dim => "\u{1b}[2m",
            Self::Red => "\u{1b}[31m",
            Self::Yellow => "\u{1b}[33m",
            Self::Green => "\u{1b}[32m",
            Self::Cyan => "\u{1b}[36m",
        };
        let off = "\u{1b}[0m";
        Paint { on, off }
    }
}

fn paint(color: bool, style: Style, text: impl Display) -> String {
    if !color {
        return text.to_string();
    }
    let Paint { on, off } = style.paint();
    format!("{on}{text}{off}")
}

/// Text escaped, in lines of at most `width` columns, of which the first has `taken` already.
///
/// A word that is longer than a line has one of its own.
pub(crate) fn wrapped(text: &str, taken: usize, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut columns = taken;
    for word in escaped(text).to_string().split(' ') {
        let length = word.chars().count();
        match lines.last_mut() {
            Some(line) if columns.saturating_add(length + 1) <= width => {
                line.push(' ');
                line.push_str(word);
                columns += length + 1;
            }
            Some(_) => {
                lines.push(word.into());
                columns = length;
            }
            None => {
                lines.push(word.into());
                columns += length;
            }
        }
    }
    lines
}

fn buffered(stream: Stream) -> Data {
    BufWriter::with_capacity(1 << 16, stream)
}

/// Whether what is written to stdout goes nowhere because it was closed, so that nobody would notice: before `main`
/// the runtime opens `/dev/null` in its place, for reading too, which no shell does.
#[cfg(target_os = "linux")]
pub(crate) fn is_stdout_closed() -> bool {
    use std::{fs, path::Path};
    match fs::read_link("/proc/self/fd/1") {
        Err(error) => {
            error.kind() == io::ErrorKind::NotFound && Path::new("/proc/self/fd").exists()
        }
        Ok(path) if path == Path::new("/dev/null") => {
            let status = fs::read_to_string("/proc/self/fdinfo/1").unwrap_or_default();
            let flags = status.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
            flags.is_some_and(|flags| flags & ACCESS == READ_AND_WRITE)
        }
        Ok(_) => false,
    }
}

/// The bits of a file's flags that say what it was opened for, and what they are for both.
#[cfg(target_os = "linux")]
const ACCESS: u32 = 3;
#[cfg(target_os = "linux")]
const READ_AND_WRITE: u32 = 2;

/// Whether stdout was closed, as far as can be told.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_stdout_closed() -> bool {
    false
}

fn terminal_width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size()?;
    Some(usize::from(width.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole() {
        for (text, taken, width, want) in [
            ("", 0, 5, &[""][..]),
            ("one two", 0, 7, &["one two"]),
            ("one two", 1, 7, &["one", "two"]),
            ("one two", 0, 6, &["one", "two"]),
            ("one\ntwo three", 0, 8, &["one\\ntwo", "three"]),
            ("longer than", 0, 3, &["longer", "than"]),
            ("one two", 9, 3, &["one", "two"]),
            ("one two", 9, usize::MAX, &["one two"]),
        ] {
            assert_eq!(wrapped(text, taken, width), want, "{text:?} in {width} after {taken}");
        }
    }
}

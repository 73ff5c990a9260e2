//! JSON as every command writes it: strict, exact, streamed, and safe to print.
//!
//! Characters of the Unicode categories Cc, Cf, Zl and Zp are written as `\uXXXX`, so that a document
//! can be looked at in a terminal. Integers are exact. [`Json`] writes piece by piece and keeps nothing;
//! [`Document`] is the frame that the documents of all commands have.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use weigh::format::text;
use weigh::{Survey, SurveyedShard};

use crate::findings;
use crate::output::{Data, Output};
use crate::session::Session;
use crate::units;

/// Writes JSON piece by piece; what is begun has to be ended by the caller.
#[derive(Debug)]
pub(crate) struct Json<W> {
    out: W,
    /// Whether a comma goes before what comes next.
    comma: bool,
}

impl<W: Write> Json<W> {
    /// Begins to write.
    pub(crate) fn new(out: W) -> Self {
        Self { out, comma: false }
    }

    /// Goes on to write, after a piece or after an opening bracket.
    pub(crate) fn after(out: W, piece: bool) -> Self {
        Self { out, comma: piece }
    }

    /// What is written to, for pieces that were put together elsewhere.
    pub(crate) fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// `{`
    pub(crate) fn object(&mut self) -> io::Result<()> {
        self.open(b"{")
    }

    /// `}`
    pub(crate) fn end_object(&mut self) -> io::Result<()> {
        self.close(b"}")
    }

    /// `[`
    pub(crate) fn array(&mut self) -> io::Result<()> {
        self.open(b"[")
    }

    /// `]`
    pub(crate) fn end_array(&mut self) -> io::Result<()> {
        self.close(b"]")
    }

    /// The line ends before the next piece: documents stay readable, and one row stays one line.
    pub(crate) fn line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.comma) {
            self.out.write_all(b",")?;
        }
        self.out.write_all(b"\n")
    }

    /// The line ends, and nothing follows.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        self.comma = false;
        self.out.write_all(b"\n")
    }

    /// The key of the next piece.
    pub(crate) fn key(&mut self, key: &'static str) -> io::Result<&mut Self> {
        self.separate()?;
        self.out.write_all(b"\"")?;
        self.out.write_all(key.as_bytes())?;
        self.out.write_all(b"\":")?;
        self.comma = false;
        Ok(self)
    }

    /// A string.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        self.separate()?;
        self.comma = true;
        string(&mut self.out, text)
    }

    /// An integer.
    pub(crate) fn number(&mut self, number: u64) -> io::Result<()> {
        self.separate()?;
        self.comma = true;
        self.out.write_all(units::digits(number, &mut [0; 20]))
    }

    /// An integer, or `null`.
    pub(crate) fn number_or_null(&mut self, number: Option<u64>) -> io::Result<()> {
        match number {
            Some(number) => self.number(number),
            None => self.null(),
        }
    }

    /// An array of integers.
    pub(crate) fn numbers(&mut self, numbers: &[u64]) -> io::Result<()> {
        self.array()?;
        for number in numbers {
            self.number(*number)?;
        }
        self.end_array()
    }

    /// `true` or `false`
    pub(crate) fn boolean(&mut self, boolean: bool) -> io::Result<()> {
        self.word(if boolean { b"true" } else { b"false" })
    }

    /// `null`
    pub(crate) fn null(&mut self) -> io::Result<()> {
        self.word(b"null")
    }

    /// Anything that serializes. Floats that are not finite become `null`: write those as text.
    pub(crate) fn value(&mut self, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
        self.separate()?;
        self.comma = true;
        let mut serializer = Serializer::with_formatter(&mut self.out, Escaping);
        Ok(value.serialize(&mut serializer)?)
    }

    fn word(&mut self, word: &[u8]) -> io::Result<()> {
        self.separate()?;
        self.comma = true;
        self.out.write_all(word)
    }

    fn open(&mut self, bracket: &[u8]) -> io::Result<()> {
        self.separate()?;
        self.out.write_all(bracket)
    }

    fn close(&mut self, bracket: &[u8]) -> io::Result<()> {
        self.comma = true;
        self.out.write_all(bracket)
    }

    fn separate(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.comma) {
            self.out.write_all(b",")?;
        }
        Ok(())
    }
}

/// Writes one string, quoted.
fn string(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(b"\"")?;
    if text::is_plain(text) && !text.contains(['"', '\\']) {
        out.write_all(text.as_bytes())?;
    } else {
        for character in text.chars() {
            match character {
                '"' => out.write_all(b"\\\"")?,
                '\\' => out.write_all(b"\\\\")?,
                _ => write_character(out, character)?,
            }
        }
    }
    out.write_all(b"\"")
}

fn write_character(out: &mut (impl Write + ?Sized), character: char) -> io::Result<()> {
    let mut utf8 = [0; 4];
    let plain = character.encode_utf8(&mut utf8);
    if text::is_unsafe_to_print(character) {
        write!(out, "{}", text::escaped(plain))
    } else {
        out.write_all(plain.as_bytes())
    }
}

/// Makes `serde_json` escape what it would leave as it is: U+007F, U+202E and their like.
struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if text::is_plain(fragment) {
            return CompactFormatter.write_string_fragment(writer, fragment);
        }
        fragment.chars().try_for_each(|character| write_character(writer, character))
    }
}

/// The document of a command: its schema, then each checkpoint or file as it is read, then what failed.
#[derive(Debug)]
pub(crate) struct Document {
    /// Checkpoints or files written.
    items: usize,
}

impl Document {
    /// Begins the document of a schema, as `weigh.ls/1`.
    pub(crate) fn begin(output: &mut Output, schema: &str) -> io::Result<Self> {
        Self::begin_with(output, schema, |_| Ok(()))
    }

    /// The same, with keys of this command after the schema.
    pub(crate) fn begin_with<'o>(
        output: &'o mut Output,
        schema: &str,
        own: impl FnOnce(&mut Json<&'o mut Data>) -> io::Result<()>,
    ) -> io::Result<Self> {
        Self::begin_list(output, schema, own, "checkpoints")
    }

    /// The same, of other things than checkpoints: `list` is the key of their array.
    pub(crate) fn begin_list<'o>(
        output: &'o mut Output,
        schema: &str,
        own: impl FnOnce(&mut Json<&'o mut Data>) -> io::Result<()>,
        list: &'static str,
    ) -> io::Result<Self> {
        let mut json = Json::new(output.data());
        json.object()?;
        json.key("schema")?.text(schema)?;
        own(&mut json)?;
        json.key(list)?.array()?;
        Ok(Self { items: 0 })
    }

    /// Writes an item of the list, on a line: `own` are its keys.
    pub(crate) fn item<'o>(
        &mut self,
        output: &'o mut Output,
        own: impl FnOnce(&mut Json<&'o mut Data>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut json = Json::after(output.data(), self.items > 0);
        self.items += 1;
        json.line()?;
        json.object()?;
        own(&mut json)?;
        json.end_object()
    }

    /// Writes a checkpoint: what all commands say of one, and `own`, the keys of this command.
    pub(crate) fn checkpoint<'o>(
        &mut self,
        output: &'o mut Output,
        survey: &Survey,
        own: impl FnOnce(&mut Json<&'o mut Data>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.checkpoint_with(output, survey, |_, _| Ok(()), own)
    }

    /// The same, with keys of this command on each shard too.
    pub(crate) fn checkpoint_with<'o>(
        &mut self,
        output: &'o mut Output,
        survey: &Survey,
        mut own_of_shard: impl FnMut(&mut Json<&'o mut Data>, &SurveyedShard) -> io::Result<()>,
        own: impl FnOnce(&mut Json<&'o mut Data>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.item(output, |json| {
            json.key("path")?.text(&survey.path().to_string_lossy())?;
            json.key("kind")?.text(survey.layout().name())?;
            json.key("shards")?.array()?;
            for shard in survey.shards() {
                json.object()?;
                write_shard(json, shard)?;
                own_of_shard(json, shard)?;
                json.end_object()?;
            }
            json.end_array()?;
            own(json)?;
            json.key("findings")?.array()?;
            for finding in survey.findings().flat_map(weigh::format::Findings::list) {
                json.line()?;
                json.value(&findings::finding_json(finding))?;
            }
            json.end_array()
        })
    }

    /// Ends the document.
    pub(crate) fn end(self, session: &mut Session) -> io::Result<()> {
        let failures = std::mem::take(&mut session.failures);
        let mut json = Json::new(session.output.data());
        if self.items > 0 {
            json.line()?;
        }
        json.end_array()?;
        json.key("errors")?.array()?;
        for failure in &failures {
            json.line()?;
            json.object()?;
            json.key("path")?.text(&failure.path)?;
            json.key("code")?.text(failure.code)?;
            json.key("message")?.text(&failure.message)?;
            if let Some(help) = &failure.help {
                json.key("help")?.text(help)?;
            }
            json.end_object()?;
        }
        json.end_array()?;
        json.end_object()?;
        json.end_line()
    }
}

fn write_shard(json: &mut Json<impl Write>, shard: &SurveyedShard) -> io::Result<()> {
    let inspection = shard.inspection();
    let tensors = inspection.map(|it| u64::try_from(it.len()).unwrap_or(u64::MAX));
    json.key("file")?.text(shard.name())?;
    json.key("size")?
        .number_or_null(inspection.map(weigh::format::header::Inspection::file_len))?;
    json.key("tensors")?.number_or_null(tensors)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Json<&mut Vec<u8>>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut Json::new(&mut out)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn commas_are_where_json_wants_them() {
        let text = written(|json| {
            json.object()?;
            json.key("none")?.array()?;
            json.end_array()?;
            json.key("some")?.array()?;
            json.line()?;
            json.numbers(&[0, u64::MAX])?;
            json.line()?;
            json.null()?;
            json.end_array()?;
            json.key("value")?.value(&[1.5, f64::NAN])?;
            json.key("last")?.boolean(false)?;
            json.end_object()?;
            json.end_line()
        });
        let want = "{\"none\":[],\"some\":[\n[0,18446744073709551615],\nnull],\
                    \"value\":[1.5,null],\"last\":false}\n";
        assert_eq!(text, want);
    }

    #[test]
    fn strings_read_back_and_nothing_in_them_moves_a_cursor() {
        let text: String = ('\0'..='\u{2ff}')
            .chain(['\u{2028}', '\u{202e}', '\u{feff}', '鍵', '\u{1f600}', '\u{e0041}'])
            .collect();
        let by_hand = written(|json| json.text(&text));
        let by_serde = written(|json| json.value(&[&text]));
        for document in [&by_hand, &by_serde] {
            assert!(!document.chars().any(text::is_unsafe_to_print), "{document}");
        }
        assert_eq!(serde_json::from_str::<String>(&by_hand).unwrap(), text);
        assert_eq!(serde_json::from_str::<[String; 1]>(&by_serde).unwrap(), [text]);
    }
}

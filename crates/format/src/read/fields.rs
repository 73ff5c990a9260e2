//! The three fields of an entry: `dtype`, `shape`, `data_offsets` (rules J9, T1, T2).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use super::{Reader, shown};
use crate::Dtype;
use crate::json::{Cursor, Kind, Number, RawString, Stop};
use crate::keys::Keys;
use crate::rule;
use crate::shape::{self, Elements};
use crate::text::shortened;

/// The fields of an entry as far as they could be read. Spans are in the header's text.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) dtype: Option<Dtype>,
    /// Where the shape starts in the arena of dimensions; it ends where the arena does.
    pub(super) shape: Option<usize>,
    pub(super) shape_span: Range<usize>,
    pub(super) offsets: Option<[u64; 2]>,
    pub(super) offsets_span: Range<usize>,
    /// Whether there are others.
    pub(super) has_unknown: bool,
    /// Where the key of each field was, in the order of [`NAMES`].
    keys: [Option<usize>; 3],
}

/// An array of integers, or what stands in its place.
struct Integers {
    span: Range<usize>,
    /// How many values it has; `None` if it is no array.
    count: Option<u64>,
    /// Whether it is an array and all its values are plain integers, which are on the arena then.
    are_plain: bool,
}

const NAMES: [&str; 3] = ["dtype", "shape", "data_offsets"];

impl Fields {
    /// Whether the offsets span exactly the bytes that dtype and shape need, with nothing to remark.
    #[inline]
    pub(super) fn fit(&self, dimensions: &[u64]) -> bool {
        let (Some(dtype), Some(shape), Some([begin, end])) = (self.dtype, self.shape, self.offsets)
        else {
            return false;
        };
        match shape::elements(dimensions.get(shape..).unwrap_or_default()) {
            // Two failures are no fit.
            Elements::Exact(elements) => end
                .checked_sub(begin)
                .is_some_and(|span| shape::byte_len(dtype, elements) == Ok(span)),
            _ => false,
        }
    }
}

/// Levels of nesting that an entry goes down to, the outermost object being the first.
pub(super) const LEVELS: u32 = 3;

/// Reads `:{"dtype":"…","shape":[…],"data_offsets":[…,…]}` in exactly that spelling, or nothing.
#[inline]
pub(super) fn compact(place: &mut Cursor<'_>, dimensions: &mut Vec<u64>) -> Option<Fields> {
    let start = dimensions.len();
    let mut cursor = *place;
    let fields = compact_fields(&mut cursor, dimensions);
    match fields {
        Some(_) => *place = cursor,
        None => dimensions.truncate(start),
    }
    fields
}

#[inline]
fn compact_fields(cursor: &mut Cursor<'_>, dimensions: &mut Vec<u64>) -> Option<Fields> {
    if !cursor.eat(b":{\"dtype\":\"") {
        return None;
    }
    let quote = cursor.rest().iter().take(12).position(|byte| *byte == b'"')?;
    let dtype = Dtype::from_name(cursor.rest().get(..quote)?)?;
    cursor.advance(quote);
    if !cursor.eat(b"\",\"shape\":") {
        return None;
    }
    let shape = dimensions.len();
    let shape_start = cursor.at();
    if !cursor.eat(b"[") {
        return None;
    }
    if !cursor.eat(b"]") {
        loop {
            dimensions.push(cursor.plain_number()?);
            if cursor.eat(b"]") {
                break;
            }
            if !cursor.eat(b",") {
                return None;
            }
        }
    }
    let shape_span = shape_start..cursor.at();
    if !cursor.eat(b",\"data_offsets\":") {
        return None;
    }
    let offsets_start = cursor.at();
    if !cursor.eat(b"[") {
        return None;
    }
    let begin = cursor.plain_number()?;
    if !cursor.eat(b",") {
        return None;
    }
    let end = cursor.plain_number()?;
    if !cursor.eat(b"]}") {
        return None;
    }
    Some(Fields {
        dtype: Some(dtype),
        shape: Some(shape),
        shape_span,
        offsets: Some([begin, end]),
        offsets_span: offsets_start..cursor.at().saturating_sub(1),
        has_unknown: false,
        keys: [None; 3],
    })
}

impl<'t> Reader<'t, '_> {
    /// Reads an entry's object in any spelling.
    pub(super) fn fields(&mut self, key: RawString<'t>) -> Result<Fields, Stop> {
        let mut fields = Fields::default();
        let mut unknown = Keys::default();
        self.cursor.open(2, self.limits.depth)?;
        if self.cursor.eat(b"}") {
            return Ok(fields);
        }
        loop {
            let field = self.cursor.string("a string")?;
            self.cursor.expect(b':', "':'")?;
            let mut scratch = String::new();
            let text = field.text(&mut scratch);
            match NAMES.iter().position(|name| *name == text) {
                Some(number) => self.known_field(key, field, number, &mut fields)?,
                None => {
                    fields.has_unknown = true;
                    self.unknown_field(key, field, &mut unknown)?;
                }
            }
            if !self.cursor.another(b'}')? {
                self.repeated("field", unknown, Some(key));
                return Ok(fields);
            }
        }
    }

    /// Reports the fields that an entry lacks; its `{` is at `start`.
    pub(super) fn check_fields_present(
        &mut self,
        key: RawString<'t>,
        fields: &Fields,
        start: usize,
    ) {
        for (field, _) in NAMES.into_iter().zip(fields.keys).filter(|(_, at)| at.is_none()) {
            let span = start..self.cursor.at();
            self.report_entry(&rule::ENTRY_FIELD_MISSING, span, key, |name, finding| {
                finding.says(format!("tensor `{name}` has no {field}")).with("field", field)
            });
        }
    }

    fn known_field(
        &mut self,
        key: RawString<'t>,
        field: RawString<'t>,
        number: usize,
        fields: &mut Fields,
    ) -> Result<(), Stop> {
        if let Some(first) = fields.keys.get_mut(number) {
            if let Some(first) = *first {
                self.duplicate("field", first, field, Some(key));
                self.skip(3)?;
                return Ok(());
            }
            *first = Some(field.at);
        }
        match number {
            0 => fields.dtype = self.dtype(key)?,
            1 => {
                let start = self.dimensions.len();
                let integers = self.integers(key, "shape")?;
                fields.shape_span = integers.span;
                if integers.are_plain {
                    fields.shape = Some(start);
                } else {
                    self.dimensions.truncate(start);
                }
            }
            _ => {
                let start = self.dimensions.len();
                let integers = self.integers(key, "data_offsets")?;
                fields.offsets = self.two_offsets(key, &integers, start);
                fields.offsets_span = integers.span;
                self.dimensions.truncate(start);
            }
        }
        Ok(())
    }

    /// The two numbers that were read onto the arena from `start` on.
    fn two_offsets(
        &mut self,
        key: RawString<'t>,
        integers: &Integers,
        start: usize,
    ) -> Option<[u64; 2]> {
        let count = integers.count?;
        if count != 2 {
            let span = integers.span.clone();
            self.report_entry(&rule::ENTRY_FIELD_TYPE, span, key, |name, finding| {
                finding
                    .says(format!("data_offsets of tensor `{name}` are {count} values, not two"))
                    .with("field", "data_offsets")
            });
        }
        match self.dimensions.get(start..) {
            Some(&[begin, end]) if integers.are_plain => Some([begin, end]),
            _ => None,
        }
    }

    fn dtype(&mut self, key: RawString<'t>) -> Result<Option<Dtype>, Stop> {
        if self.cursor.kind()? != Kind::String {
            self.wrong_type(key, "dtype", "a string", 3)?;
            return Ok(None);
        }
        let value = self.cursor.string("a string")?;
        let mut scratch = String::new();
        let text = value.text(&mut scratch);
        let dtype = Dtype::from_name(text.as_bytes());
        if dtype.is_none() {
            self.report_entry(&rule::DTYPE_UNKNOWN, value.span(), key, |name, finding| {
                let finding = finding
                    .says(format!("tensor `{name}` has the unknown dtype `{}`", shortened(text)))
                    .with("dtype", text);
                match Dtype::nearest(text) {
                    Some(nearest) => finding.with("nearest", nearest.name()).help(format!(
                        "Did the writer mean {nearest}? It has {} bits; the reference reads it since version {}.",
                        nearest.bits(),
                        nearest.since()
                    )),
                    None => finding,
                }
            });
        }
        Ok(dtype)
    }

    /// Reads an array of integers onto the arena.
    fn integers(&mut self, key: RawString<'t>, field: &'static str) -> Result<Integers, Stop> {
        const WANTED: &str = "an array of integers";
        let start = self.cursor.at();
        if self.cursor.kind()? != Kind::Array {
            let span = self.wrong_type(key, field, WANTED, 3)?;
            return Ok(Integers { span, count: None, are_plain: false });
        }
        let (mut count, mut are_plain) = (0_u64, true);
        self.cursor.open(3, self.limits.depth)?;
        if !self.cursor.eat(b"]") {
            loop {
                are_plain &= self.integer(key, field, WANTED)?;
                count = count.saturating_add(1);
                if !self.cursor.another(b']')? {
                    break;
                }
            }
        }
        Ok(Integers { span: start..self.cursor.at(), count: Some(count), are_plain })
    }

    /// Reads one of them; says whether it was plain.
    fn integer(
        &mut self,
        key: RawString<'t>,
        field: &'static str,
        wanted: &'static str,
    ) -> Result<bool, Stop> {
        if self.cursor.kind()? != Kind::Number {
            self.wrong_type(key, field, wanted, 4)?;
            return Ok(false);
        }
        let at = self.cursor.at();
        match self.cursor.number()? {
            Number::Plain(value) => {
                self.dimensions.push(value);
                Ok(true)
            }
            Number::Other => {
                self.number_form(key, field, at..self.cursor.at());
                Ok(false)
            }
        }
    }

    fn number_form(&mut self, key: RawString<'t>, field: &'static str, span: Range<usize>) {
        let literal = shortened(self.text.get(span.clone()).unwrap_or_default());
        self.report_entry(&rule::NUMBER_FORM, span, key, |name, finding| {
            finding
                .says(format!(
                    "{field} of tensor `{name}` has {literal}, not a plain integer from 0 to 2^64 - 1"
                ))
                .with("literal", literal.as_ref())
        });
    }

    /// Skips a value that is not what it should be, and says so.
    fn wrong_type(
        &mut self,
        key: RawString<'t>,
        field: &'static str,
        wanted: &'static str,
        level: u32,
    ) -> Result<Range<usize>, Stop> {
        let got = self.cursor.kind()?.name();
        let span = self.skip(level)?;
        self.report_entry(&rule::ENTRY_FIELD_TYPE, span.clone(), key, |name, finding| {
            finding
                .says(format!("{field} of tensor `{name}` has {got}, not {wanted}"))
                .with("field", field)
        });
        Ok(span)
    }

    fn unknown_field(
        &mut self,
        key: RawString<'t>,
        field: RawString<'t>,
        unknown: &mut Keys,
    ) -> Result<(), Stop> {
        self.report_entry(&rule::ENTRY_FIELD_UNKNOWN, field.span(), key, |name, finding| {
            let field = shown(field);
            finding
                .says(format!("tensor `{name}` has the unknown field `{field}`"))
                .with("field", field)
        });
        unknown.add(self.lookup.hasher(), field);
        self.skip(3)?;
        Ok(())
    }
}

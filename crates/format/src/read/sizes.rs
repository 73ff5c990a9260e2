//! What is wrong between the shape, the dtype and the offsets of an entry (rules T4 to T7).

use alloc::format;
use alloc::string::String;

use super::Reader;
use super::fields::Fields;
use crate::Dtype;
use crate::json::RawString;
use crate::rule;
use crate::shape::{self, Elements, SizeError};

impl<'t> Reader<'t, '_> {
    /// Reports why `fields` do not fit each other, as far as they could be read.
    #[cold]
    pub(super) fn check_sizes(&mut self, key: RawString<'t>, fields: &Fields) {
        let bytes = self.check_shape(key, fields);
        let Some([begin, end]) = fields.offsets else {
            return;
        };
        let Some(span) = end.checked_sub(begin) else {
            let at = fields.offsets_span.clone();
            self.report_entry(&rule::OFFSETS_REVERSED, at, key, |name, finding| {
                finding
                    .says(format!(
                        "data_offsets of tensor `{name}` begin at {begin} and end at {end}"
                    ))
                    .with("begin", begin)
                    .with("end", end)
            });
            return;
        };
        let Some((dtype, elements, bytes)) = bytes.filter(|&(.., bytes)| bytes != span) else {
            return;
        };
        self.report_entry(&rule::SIZE_MISMATCH, fields.offsets_span.clone(), key, |name, finding| {
            let finding = finding
                .says(format!(
                    "tensor `{name}` needs {bytes} bytes ({elements} x {dtype}), but its offsets span {span}"
                ))
                .with("needed", bytes)
                .with("spanned", span);
            match what_fits(dtype, elements, span) {
                Some(fits) => finding.help(fits),
                None => finding,
            }
        });
    }

    /// The dtype, elements and bytes that the shape asks for, if it can.
    fn check_shape(&mut self, key: RawString<'t>, fields: &Fields) -> Option<(Dtype, u64, u64)> {
        let (dtype, shape, _) = (fields.dtype?, fields.shape?, fields.offsets?);
        let span = fields.shape_span.clone();
        let elements = match shape::elements(self.dimensions.get(shape..).unwrap_or_default()) {
            Elements::Exact(elements) => elements,
            Elements::NoneBesideOverflow => {
                self.report_entry(&rule::SHAPE_OVERFLOW_BESIDE_ZERO, span.clone(), key, |name, finding| {
                    finding.says(format!(
                        "the shape of tensor `{name}` has a 0 beside dimensions whose product is over 2^64 - 1"
                    ))
                });
                0
            }
            Elements::Overflow => {
                self.report_entry(&rule::SHAPE_OVERFLOW, span, key, |name, finding| {
                    finding.says(format!("the shape of tensor `{name}` has over 2^64 - 1 elements"))
                });
                return None;
            }
        };
        match shape::byte_len(dtype, elements) {
            Ok(bytes) => return Some((dtype, elements, bytes)),
            Err(SizeError::Overflow) => {
                self.report_entry(&rule::SIZE_OVERFLOW, span, key, |name, finding| {
                    finding
                        .says(format!(
                            "tensor `{name}`, {elements} x {dtype}, is over 2^64 - 1 bytes"
                        ))
                        .with("elements", elements)
                });
            }
            Err(SizeError::NotBytes { bits }) => {
                self.report_entry(&rule::SIZE_NOT_BYTES, span, key, |name, finding| {
                    finding
                        .says(format!(
                            "tensor `{name}`, {elements} x {dtype}, is {bits} bits, not a whole number of bytes"
                        ))
                        .with("elements", elements)
                });
            }
        }
        None
    }
}

/// Which dtype, or how many elements, would fit the bytes that the offsets span.
fn what_fits(dtype: Dtype, elements: u64, span: u64) -> Option<String> {
    let fitting: alloc::vec::Vec<&str> = Dtype::ALL
        .into_iter()
        .filter(|other| elements > 0 && shape::byte_len(*other, elements) == Ok(span))
        .map(Dtype::name)
        .collect();
    if !fitting.is_empty() {
        return Some(format!("The shape would fit with dtype {}.", fitting.join(", ")));
    }
    let bits = u128::from(span).saturating_mul(8);
    let width = u128::from(dtype.bits());
    (bits.checked_rem(width) == Some(0)).then(|| {
        let fit = bits.checked_div(width).unwrap_or_default();
        format!("The offsets hold {fit} elements of {dtype}; the shape has {elements}.")
    })
}

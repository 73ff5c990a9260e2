//! The loops to integers and booleans.
//!
//! From F64 to integers, and from integers of every size through 64 bits to every other. 64-bit
//! integers stand for I64, or for U64 where the source is that; cut to fewer bits, both wrap.

use weigh_format::Dtype;

use crate::kernel::each;
use crate::pair::Run;

/// The loop from integers or booleans to 64-bit integers, if it has anything to do.
pub(crate) fn widen(from: Dtype) -> Option<Run> {
    let run: Run = match from {
        Dtype::BOOL => |from, to| each(from, to, |[byte]| u64::from(byte != 0).to_le_bytes()),
        Dtype::U8 => |from, to| each(from, to, |[byte]| u64::from(byte).to_le_bytes()),
        Dtype::I8 => |from, to| each(from, to, |b| i64::from(i8::from_le_bytes(b)).to_le_bytes()),
        Dtype::U16 => |from, to| each(from, to, |b| u64::from(u16::from_le_bytes(b)).to_le_bytes()),
        Dtype::I16 => |from, to| each(from, to, |b| i64::from(i16::from_le_bytes(b)).to_le_bytes()),
        Dtype::U32 => |from, to| each(from, to, |b| u64::from(u32::from_le_bytes(b)).to_le_bytes()),
        Dtype::I32 => |from, to| each(from, to, |b| i64::from(i32::from_le_bytes(b)).to_le_bytes()),
        _ => return None,
    };
    Some(run)
}

/// The loop from 64-bit integers to integers or booleans, if it has anything to do.
pub(crate) fn narrow(to: Dtype) -> Option<Run> {
    let run: Run = match to {
        Dtype::BOOL => |from, to| each(from, to, |b| [u8::from(u64::from_le_bytes(b) != 0)]),
        Dtype::U8 | Dtype::I8 => |from, to| each(from, to, |[a, ..]: [u8; 8]| [a]),
        Dtype::U16 | Dtype::I16 => |from, to| each(from, to, |[a, b, ..]: [u8; 8]| [a, b]),
        Dtype::U32 | Dtype::I32 => {
            |from, to| each(from, to, |[a, b, c, d, ..]: [u8; 8]| [a, b, c, d])
        }
        _ => return None,
    };
    Some(run)
}

/// The loop from F64 to integers: the nearest, ties to even, in the range; 0 of NaN.
#[expect(clippy::cast_possible_truncation, reason = "these casts clamp")]
#[expect(clippy::cast_sign_loss, reason = "these casts clamp")]
pub(crate) fn nearest(to: Dtype) -> Run {
    fn whole(bytes: [u8; 8]) -> f64 {
        f64::from_le_bytes(bytes).round_ties_even()
    }
    match to {
        Dtype::U8 => |from, to| each(from, to, |b| (whole(b) as u8).to_le_bytes()),
        Dtype::I8 => |from, to| each(from, to, |b| (whole(b) as i8).to_le_bytes()),
        Dtype::U16 => |from, to| each(from, to, |b| (whole(b) as u16).to_le_bytes()),
        Dtype::I16 => |from, to| each(from, to, |b| (whole(b) as i16).to_le_bytes()),
        Dtype::U32 => |from, to| each(from, to, |b| (whole(b) as u32).to_le_bytes()),
        Dtype::I32 => |from, to| each(from, to, |b| (whole(b) as i32).to_le_bytes()),
        Dtype::I64 => |from, to| each(from, to, |b| (whole(b) as i64).to_le_bytes()),
        // U64, the last dtype of today. A test goes through them all.
        _ => |from, to| each(from, to, |b| (whole(b) as u64).to_le_bytes()),
    }
}

/// Converts F32 to booleans: any value but 0 is true, NaN too.
pub(crate) fn truth(from: &[u8], to: &mut [u8]) {
    each(from, to, |b| [u8::from(u32::from_le_bytes(b) << 1 != 0)]);
}

//! What the encoder writes, the reader reads back; names, shapes and offsets are what was declared.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weigh_format::encode::{Declaration, EncodeError, encode};
use weigh_format::header::{inspect, locate};
use weigh_format::{Dtype, HashKey, Header, Limits, Policy};

const KEY: HashKey = HashKey::new(7, 9);

fn read(bytes: &[u8], data_len: u64) -> Header {
    let file_len = bytes.len() as u64 + data_len;
    let span = locate(bytes, file_len, &Limits::default()).unwrap();
    assert_eq!(span, 8..bytes.len() as u64);
    let inspection = inspect(bytes[8..].to_vec(), file_len, &Limits::default(), KEY);
    inspection.accept(Policy::Strict).unwrap_or_else(|findings| panic!("{findings:?}"))
}

fn a_tensor() -> impl Strategy<Value = (Dtype, Vec<u64>)> {
    let dtype = prop::sample::select(Dtype::ALL.to_vec());
    (dtype, prop::collection::vec(0_u64..9, 0..5)).prop_map(|(dtype, mut shape)| {
        if dtype.bits() < 8 {
            shape.push(8);
        }
        (dtype, shape)
    })
}

proptest! {
    #[test]
    fn parse_of_encode_is_the_same(
        tensors in prop::collection::btree_map("\\PC{0,12}|[\\x00-\\x7f]{0,6}|(layers\\.[0-9]{1,2}\\.w)", a_tensor(), 0..40),
        metadata in prop::collection::btree_map("[\\x00-\\x7f]{0,5}|\\PC{0,5}", "[\\x00-\\x7f]{0,5}|\\PC{0,9}", 0..5),
        alignment in prop::sample::select(vec![8_u64, 64, 4096]),
    ) {
        let declared: Vec<Declaration<'_>> = tensors
            .iter()
            .map(|(name, (dtype, shape))| Declaration { name, dtype: *dtype, shape })
            .collect();
        let encoded = encode(&declared, &metadata, alignment).unwrap();
        prop_assert_eq!(encoded.bytes.len() as u64 % alignment, 0);

        let mut shuffled = declared.clone();
        shuffled.reverse();
        prop_assert_eq!(&encode(&shuffled, &metadata, alignment).unwrap().bytes, &encoded.bytes);

        let header = read(&encoded.bytes, encoded.data_len);
        prop_assert_eq!(header.len(), tensors.len());
        prop_assert_eq!(header.metadata().collect::<BTreeMap<_, _>>(), metadata);
        for (declaration, offsets) in declared.iter().zip(&encoded.data_offsets) {
            let tensor = header.get(declaration.name).unwrap();
            prop_assert_eq!(tensor.name, declaration.name);
            prop_assert_eq!(tensor.dtype, declaration.dtype);
            prop_assert_eq!(tensor.shape, declaration.shape);
            prop_assert_eq!(&tensor.data_offsets, offsets);
        }
        let by_offset: Vec<_> = header.tensors_by_offset().map(|it| it.data_offsets.start).collect();
        prop_assert!(by_offset.is_sorted());
        let mut by_name: Vec<_> = header.tensors_by_name().map(|it| it.name).collect();
        prop_assert!(by_name.is_sorted_by(|a, b| weigh_format::order::compare(a, b).is_lt()));
        by_name.sort_unstable();
        prop_assert_eq!(by_name, tensors.keys().collect::<Vec<_>>());
        prop_assert!(header.get("a name of more than twelve characters").is_none());
    }
}

#[test]
fn wide_types_come_first_then_names_by_their_bytes() {
    let declare = |name, dtype| Declaration { name, dtype, shape: &[2] };
    let tensors = [
        declare("b", Dtype::U8),
        declare("a10", Dtype::F32),
        declare("a2", Dtype::F32),
        declare("z", Dtype::U64),
        declare("y", Dtype::BOOL),
    ];
    let encoded = encode(&tensors, &BTreeMap::new(), 8).unwrap();
    let header = read(&encoded.bytes, encoded.data_len);
    let names: Vec<_> = header.tensors().map(|tensor| tensor.name).collect();
    assert_eq!(names, ["z", "a10", "a2", "b", "y"]);
}

#[test]
fn what_a_reader_would_refuse_is_not_written() {
    let declare = |name, dtype, shape| Declaration { name, dtype, shape };
    let encode = |tensors: &[Declaration<'_>]| encode(tensors, &BTreeMap::new(), 8);
    let fault = |tensors: &[Declaration<'_>]| {
        let error = encode(tensors).unwrap_err();
        (error.code(), error.to_string())
    };
    let twice = [declare("a\u{1b}", Dtype::U8, &[1]), declare("a\u{1b}", Dtype::U8, &[1])];
    let long = "x".repeat(100_000_000);
    let cases: [(&[Declaration<'_>], _, _); 6] = [
        (&twice, "duplicate-key", "two tensors are named `a\\u001b`"),
        (
            &[declare("__metadata__", Dtype::U8, &[1])],
            "reserved-name",
            "no tensor may be named `__metadata__`",
        ),
        (
            &[declare("a", Dtype::U16, &[1 << 63])],
            "size-overflow",
            "the shape of tensor `a` is over 2^64 - 1 elements or bytes",
        ),
        (
            &[declare("a", Dtype::U8, &[u64::MAX, 2, 0])],
            "size-overflow",
            "the shape of tensor `a` is over 2^64 - 1 elements or bytes",
        ),
        (
            &[declare("a", Dtype::F4, &[3])],
            "size-not-bytes",
            "tensor `a` is 12 bits, not a whole number of bytes",
        ),
        (
            &[declare(&long, Dtype::U8, &[1])],
            "header-over-limit",
            "the header would be 100000056 bytes; readers take 100000000",
        ),
    ];
    for (tensors, code, message) in cases {
        assert_eq!(fault(tensors), (code, message.to_string()));
    }
    let odd = alignment_error(24);
    assert_eq!(
        (odd.code(), odd.to_string().as_str()),
        ("alignment", "alignment 24 is not a power of two from 8 to 2^20")
    );
    let two = [declare("a", Dtype::U8, &[u64::MAX]), declare("b", Dtype::U8, &[1])];
    assert!(matches!(encode(&two), Err(EncodeError::TooLarge(name)) if name == "b"));
}

fn alignment_error(alignment: u64) -> EncodeError {
    encode(&[], &BTreeMap::new(), alignment).unwrap_err()
}

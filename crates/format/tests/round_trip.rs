//! What the encoder writes, the reader reads back; names, shapes and offsets are what was declared.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weigh_format::encode::{Declaration, EncodeError, Layout, Order, encode};
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
        let layout = Layout { alignment, ..Layout::default() };
        let encoded = encode(&declared, Some(&metadata), &layout).unwrap();
        prop_assert_eq!(encoded.bytes.len() as u64 % alignment, 0);

        let mut shuffled = declared.clone();
        shuffled.reverse();
        prop_assert_eq!(&encode(&shuffled, Some(&metadata), &layout).unwrap().bytes, &encoded.bytes);

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
    let encoded = encode(&tensors, None, &Layout::default()).unwrap();
    let header = read(&encoded.bytes, encoded.data_len);
    let names: Vec<_> = header.tensors().map(|tensor| tensor.name).collect();
    assert_eq!(names, ["z", "a10", "a2", "b", "y"]);
}

#[test]
fn what_a_reader_would_refuse_is_not_written() {
    let declare = |name, dtype, shape| Declaration { name, dtype, shape };
    let encode = |tensors: &[Declaration<'_>]| encode(tensors, None, &Layout::default());
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
            "shape-overflow-beside-zero",
            "the dimensions of tensor `a` beside the zero one have a product over 2^64 - 1",
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
    assert_eq!(encode(&two).unwrap_err(), EncodeError::DataTooLarge);
    assert_eq!(
        fault(&two),
        ("size-overflow", "all tensors together are over 2^64 - 1 bytes".into())
    );
}

fn alignment_error(alignment: u64) -> EncodeError {
    encode(&[], None, &Layout { alignment, ..Layout::default() }).unwrap_err()
}

#[test]
fn the_given_order_is_kept_with_its_offsets() {
    let declare = |name, dtype| Declaration { name, dtype, shape: &[2] };
    let tensors = [declare("b", Dtype::U8), declare("c", Dtype::F64), declare("a", Dtype::U8)];
    let layout = Layout { order: Order::Given, ..Layout::default() };
    let encoded = encode(&tensors, None, &layout).unwrap();
    assert_eq!(encoded.data_offsets, [0..2, 2..18, 18..20]);
    let header = read(&encoded.bytes, encoded.data_len);
    let names: Vec<_> = header.tensors().map(|tensor| tensor.name).collect();
    assert_eq!(names, ["b", "c", "a"]);
    let twice = [declare("b", Dtype::U8), declare("a", Dtype::U8), declare("b", Dtype::F64)];
    assert_eq!(encode(&twice, None, &layout).unwrap_err().code(), "duplicate-key");
}

#[test]
fn room_and_reserve_on_both_sides_of_every_boundary() {
    // The JSON is 53 bytes.
    let tensors = [Declaration { name: "w", dtype: Dtype::U8, shape: &[2] }];
    let default = Layout::default();
    let too_large =
        |reserve, bytes| Err(EncodeError::ReserveTooLarge { reserve, bytes, limit: 100_000_000 });
    let no_room = |needed, room| Err(EncodeError::NoRoom { needed, room });
    for (layout, want) in [
        (default, Ok(56)),
        (Layout { reserve: 3, ..default }, Ok(56)),
        (Layout { reserve: 4, ..default }, Ok(64)),
        (Layout { reserve: 4, alignment: 64, ..default }, Ok(120)),
        (Layout { reserve: 99_999_947, ..default }, Ok(100_000_000)),
        (Layout { reserve: 99_999_948, ..default }, too_large(99_999_948, 100_000_008)),
        (Layout { reserve: u64::MAX - 79, ..default }, too_large(u64::MAX - 79, u64::MAX - 23)),
        (Layout { reserve: u64::MAX, ..default }, too_large(u64::MAX, u64::MAX)),
        (Layout { room: Some(52), ..default }, no_room(53, 52)),
        (Layout { room: Some(53), ..default }, Ok(53)),
        (Layout { room: Some(1001), alignment: 64, ..default }, Ok(1001)),
        (Layout { room: Some(64), reserve: 11, ..default }, Ok(64)),
        (Layout { room: Some(64), reserve: 12, ..default }, no_room(65, 64)),
        (Layout { room: Some(64), reserve: u64::MAX, ..default }, no_room(u64::MAX, 64)),
        (Layout { room: Some(100_000_000), ..default }, Ok(100_000_000)),
        (
            Layout { room: Some(100_000_001), ..default },
            Err(EncodeError::HeaderTooLarge { bytes: 100_000_001, limit: 100_000_000 }),
        ),
    ] {
        let encoded = encode(&tensors, None, &layout);
        let header_bytes = encoded.map(|it| {
            read(&it.bytes, it.data_len);
            it.bytes.len() as u64 - 8
        });
        assert_eq!(header_bytes, want, "{layout:?}");
    }
    let error = encode(&tensors, None, &Layout { room: Some(9), ..default }).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        ("no-room", "the header needs 53 bytes, and there is room for 9")
    );
}

#[test]
fn metadata_is_nothing_or_empty_or_pairs() {
    let pair = BTreeMap::from([("k\"".to_string(), "\u{1}\u{8}\u{7f}é/".to_string())]);
    let none = BTreeMap::new();
    for (metadata, layout, want) in [
        (None, Layout::default(), "{}"),
        (None, Layout::reference(), "{}"),
        (Some(&none), Layout::default(), "{}"),
        // As the PyPI package writes it.
        (Some(&none), Layout::reference(), r#"{"__metadata__":{}}"#),
        (Some(&pair), Layout::reference(), "{\"__metadata__\":{\"k\\\"\":\"\\u0001\\b\u{7f}é/\"}}"),
    ] {
        let encoded = encode(&[], metadata, &layout).unwrap();
        assert_eq!(core::str::from_utf8(&encoded.bytes[8..]).unwrap().trim_end(), want);
    }
}

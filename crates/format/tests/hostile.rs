//! Whatever the bytes: no panic, and what is accepted is sound.

mod memory;

use proptest::prelude::*;
use weigh_format::encode::{Layout, encode};
use weigh_format::header::inspect;
use weigh_format::index::Index;
use weigh_format::repair::plan;
use weigh_format::{HashKey, Limits, Policy, Verdict};

use memory::look;

const KEY: HashKey = HashKey::new(3, 5);

/// Looks at everything that can be asked, and checks what acceptance promises.
fn examine(bytes: &[u8]) {
    let inspection = look(bytes, &Limits::default());
    for entry in inspection.entries() {
        assert_eq!(inspection.get(entry.name).map(|it| it.name), Some(entry.name));
        assert!(!entry.is_present || entry.data_offsets.is_some());
    }
    assert_eq!(inspection.metadata().count(), inspection.metadata().len());
    for finding in inspection.findings().list() {
        assert!(!finding.message.is_empty() && !finding.to_string().contains('\u{1b}'));
        let span = finding.place.span.as_ref();
        assert!(span.is_none_or(|span| span.start <= span.end), "{finding:?}");
    }
    match plan(&inspection) {
        Ok(repair) => {
            let tensors = repair.declarations();
            let new = encode(&tensors, repair.metadata.as_ref(), &Layout::default()).unwrap();
            let new_len = new.bytes.len() as u64 + new.data_len;
            let new = inspect(new.bytes[8..].to_vec(), new_len, &Limits::default(), KEY);
            assert_eq!(new.findings().verdict(), Verdict::Valid, "{:?}", new.findings());
            assert!(repair.tensors.iter().all(|tensor| tensor.bytes.end <= bytes.len() as u64));
        }
        Err(findings) => assert!(!findings.is_empty()),
    }
    let data_len = bytes.len() as u64 - inspection.data_start();
    let Ok(header) = inspection.accept(Policy::Compatible) else { return };
    let mut end = 0;
    for tensor in header.tensors_by_offset() {
        assert_eq!(tensor.data_offsets.start, end);
        end = tensor.data_offsets.end;
        let bits = tensor.shape.iter().map(|&it| u128::from(it)).product::<u128>()
            * u128::from(tensor.dtype.bits());
        assert_eq!(bits, 8 * u128::from(end - tensor.data_offsets.start));
    }
    assert_eq!(end, data_len);
    assert_eq!(header.tensors_by_name().count(), header.len());
}

/// Pieces that headers are made of, and what may be put in their place.
fn a_piece() -> impl Strategy<Value = String> {
    let pieces: Vec<&str> = vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\\",
        "\"a\"",
        "\"b\"",
        "\"__metadata__\"",
        "\"dtype\"",
        "\"shape\"",
        "\"data_offsets\"",
        "\"F32\"",
        "\"F4\"",
        "\"U8\"",
        "[0,4]",
        "[1]",
        "[0]",
        "[]",
        "null",
        "true",
        "0",
        "4",
        "18446744073709551615",
        "-1",
        "1e9",
        "\\u0061",
        "\\ud800",
        "é",
        "\u{1b}",
        "\u{202e}",
        " ",
        "\n",
        "\0",
        "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}",
        "\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]}",
        "\"c\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}",
    ];
    prop::sample::select(pieces).prop_map(String::from)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn headers_of_random_pieces(pieces in prop::collection::vec(a_piece(), 0..30), data in 0_usize..12) {
        let header = pieces.concat();
        for header in [format!("{{{header}}}"), header] {
            let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
            bytes.extend(header.as_bytes());
            bytes.resize(bytes.len() + data, 0);
            examine(&bytes);
        }
        let _ = Index::read(pieces.concat().as_bytes(), KEY);
        let _ = Index::read(format!("{{\"weight_map\":{{{}}}}}", pieces.concat()).as_bytes(), KEY);
    }

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300), small in any::<bool>()) {
        let mut bytes = bytes;
        if small && bytes.len() >= 8 {
            // A length that lies inside the file.
            bytes[1..8].fill(0);
        }
        examine(&bytes);
        let _ = Index::read(&bytes, KEY);
    }

    #[test]
    fn small_limits_are_kept(pieces in prop::collection::vec(a_piece(), 0..30), tensors in 0_u32..3, depth in 0_u32..4) {
        let header = format!("{{{}}}", pieces.join(","));
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        let limits = Limits { tensors, depth, name_bytes: 1, header_bytes: 200 };
        let inspection = look(&bytes, &limits);
        prop_assert!(inspection.len() <= tensors as usize);
        prop_assert!(inspection.entries().all(|entry| entry.name.len() <= 1));
        prop_assert!(depth >= 3 || inspection.entries().all(|entry| entry.shape.is_none()));
    }
}

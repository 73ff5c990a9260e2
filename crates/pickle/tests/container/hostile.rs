//! Archives that are cut off, changed and made up: nothing panics, and no member lies outside of the file or in another.

use proptest::prelude::*;

use weigh_pickle::Limits;
use weigh_pickle::container::layout::{self, Contents};
use weigh_pickle::container::{legacy, npy, tar, torch_tar, zip};

use crate::rounds;
use crate::writer::{Writer, deflated, member, streamed};

/// Every way into a file.
fn read_all(file: &[u8]) {
    let limits = Limits::default();
    let _ = rounds(file, |spans| legacy::read(spans, &limits)).0.map(|stream| {
        rounds(file, |spans| stream.storages(spans, |_| Some((3, 4)))).0.map(|storages| {
            for span in storages.by_key.values() {
                assert!(span.end <= file.len() as u64);
            }
        })
    });
    if let Ok(archive) = rounds(file, |spans| tar::read(spans, &limits)).0 {
        apart(archive.members.iter().map(|member| member.span.clone()), file);
        let size = |_: &str, _: &str| Some(4);
        let _ = rounds(file, |spans| torch_tar::read(spans, &archive, &limits, size));
    }
    let _ = rounds(file, |spans| npy::read(spans, 0..spans.len()));
    if let Ok(archive) = rounds(file, |spans| zip::read(spans, &limits)).0 {
        check(&archive, file);
    }
    let Ok(layout) = rounds(file, |spans| layout::open(spans, &limits)).0 else { return };
    let spans = weigh_pickle::Spans::whole(file.to_vec());
    for pickle in layout.pickles(&spans) {
        let _ = layout.pickle_bytes(&spans, &pickle, &limits);
    }
    let _ = layout.storage("0");
    if let Contents::TorchZip { archive, .. } = &layout.contents {
        check(archive, file);
    }
}

fn check(archive: &zip::Archive, file: &[u8]) {
    apart(archive.entries.iter().filter_map(|entry| entry.span.clone()), file);
    for entry in &archive.entries {
        assert!(archive.entry(&entry.name).is_some());
        if let Some(span) = &entry.span {
            let raw = &file[span.start as usize..span.end as usize];
            let _ = weigh_pickle::container::inflate::content(entry, raw, &Limits::default());
        }
    }
}

fn apart(spans: impl Iterator<Item = std::ops::Range<u64>>, file: &[u8]) {
    let mut spans: Vec<_> = spans.filter(|span| !span.is_empty()).collect();
    spans.sort_by_key(|span| span.start);
    for span in &spans {
        assert!(span.start <= span.end && span.end <= file.len() as u64, "{span:?}");
    }
    for pair in spans.windows(2) {
        assert!(pair[0].end <= pair[1].start, "{pair:?}");
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let members = [
        streamed("m/data.pkl", b"\x80\x02}q\x00."),
        member("m/byteorder", b"little"),
        deflated("m/data/0", &[1; 64]),
        streamed("m/version", b"3\n"),
    ];
    let mut legacy =
        b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}.\x80\x02N.\x80\x02]U\x01ka.".to_vec();
    legacy.extend(3_u64.to_le_bytes());
    legacy.extend([0; 12]);
    let mut tarred = vec![0; 512];
    tarred[..6].copy_from_slice(b"pickle");
    tarred[124..135].copy_from_slice(b"00000000003");
    tarred[257..263].copy_from_slice(b"ustar\0");
    let sum: u32 = tarred.iter().map(|byte| u32::from(*byte)).sum::<u32>() + 8 * 32;
    tarred[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    tarred[155] = b' ';
    tarred.extend(b"N.\0");
    tarred.resize(2048, 0);
    vec![
        Writer::default().write(&members),
        Writer { wide: true, saturated: true, ..Writer::default() }.write(&members),
        Writer { before: b"cos\ngetpid\n)R.".to_vec(), after: b"x".to_vec(), ..Writer::default() }
            .write(&members),
        legacy,
        tarred,
        b"\x93NUMPY\x01\0\x36\0{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}\n\0\0\0\0\0\0\0\0".to_vec(),
        miniz_oxide::deflate::compress_to_vec_zlib(b"cos\ngetpid\n)R.", 6),
    ]
}

#[test]
fn every_prefix_and_suffix_is_read_without_a_panic() {
    for seed in seeds() {
        for cut in 0..seed.len() {
            read_all(&seed[..cut]);
            read_all(&seed[cut..]);
        }
    }
}

proptest! {
    #[test]
    fn changed_files_are_read_without_a_panic(
        seed in 0..7_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![any::<u8>(), Just(0), Just(0xff)]), 1..8),
    ) {
        let mut file = seeds().swap_remove(seed);
        for (position, byte) in changes {
            let position = position.index(file.len());
            file[position] = byte;
        }
        read_all(&file);
    }

    #[test]
    fn spliced_files_are_read_without_a_panic(
        one in 0..7_usize, other in 0..7_usize, cut in any::<prop::sample::Index>(), from in any::<prop::sample::Index>(),
    ) {
        let (one, other) = (seeds().swap_remove(one), seeds().swap_remove(other));
        let file = [&one[..cut.index(one.len())], &other[from.index(other.len())..]].concat();
        read_all(&file);
    }

    #[test]
    fn anything_is_read_without_a_panic(file in prop::collection::vec(any::<u8>(), 0..2000)) {
        read_all(&file);
    }
}

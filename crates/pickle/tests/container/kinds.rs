//! What files are by their bytes, and what is in each kind of container but zip.

use std::path::{Path, PathBuf};

use weigh_format::{Dtype, Finding};
use weigh_pickle::container::layout::{self, Contents, Layout};
use weigh_pickle::container::npy::{self, Element};
use weigh_pickle::container::torch::ByteOrder::{Big, Little};
use weigh_pickle::container::{detect, legacy, tar, torch_tar};
use weigh_pickle::{Error, Limits, Spans};

use crate::rounds;
use crate::writer::{Writer, deflated, member};

fn open(file: &[u8]) -> Result<Layout, Error> {
    rounds(file, |spans| layout::open(spans, &Limits::default())).0
}

fn codes(layout: &Layout) -> Vec<&'static str> {
    layout.findings.list().iter().map(Finding::code).collect()
}

fn corpus(name: &str) -> Vec<u8> {
    let folder: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/checkpoints");
    std::fs::read(folder.join(name)).unwrap()
}

/// The pickles of a file that holds nothing, of protocol 1; the first one ends as given.
fn legacy_text(end: &str) -> Vec<u8> {
    format!("L119547037146038801333356L\n{end}M\u{1}\u{3}.}}.}}.].").into_bytes()
}

#[test]
fn kinds_are_told_by_bytes() {
    let safetensors = [&2_u64.to_le_bytes()[..], b"{}"].concat();
    let zip = Writer::default().write(&[member("a/b", b"c")]);
    let tarred = tar_file(&[("a", b"b", b'0')]);
    let cases: Vec<(&str, Vec<u8>, &str, &[&str])> = vec![
        ("nothing", vec![], "empty", &[]),
        ("a zip", zip.clone(), "zip", &[]),
        ("an empty zip", Writer::default().write(&[]), "zip", &[]),
        ("a zip after something", [b"\xff\xff#!", zip.as_slice()].concat(), "zip", &[]),
        ("a pickle, then a zip", [b"\x80\x02N.", zip.as_slice()].concat(), "pickle", &["polyglot"]),
        ("safetensors", safetensors.clone(), "safetensors", &[]),
        (
            "safetensors, then a zip",
            [safetensors.as_slice(), &zip].concat(),
            "safetensors",
            &["polyglot"],
        ),
        (
            "safetensors with a length past the end",
            [&3_u64.to_le_bytes()[..], b"{}"].concat(),
            "unknown",
            &[],
        ),
        ("a legacy stream of protocol 1", legacy_text("."), "torch-legacy", &[]),
        ("no legacy stream, by its last byte", legacy_text("0."), "pickle", &[]),
        ("a tar", tarred.clone(), "tar", &[]),
        (
            "a tar whose first name is a pickle",
            tar_file(&[("cos\ngetpid\n)R.", b"b", b'0')]),
            "tar",
            &["polyglot"],
        ),
        (
            "zstd with a frame that is skipped, which is a pickle",
            [b"U\x2aM\x18", &[0; 40][..], b"."].concat(),
            "wrapper",
            &["wrapped", "polyglot"],
        ),
        (
            "a tar of before POSIX",
            {
                let mut old = tarred.clone();
                old[257..265].fill(0);
                resum(&mut old, 0);
                old
            },
            "tar",
            &[],
        ),
        (
            "legacy, protocol 2",
            b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.".to_vec(),
            "torch-legacy",
            &[],
        ),
        (
            "legacy, protocol 4",
            b"\x80\x04\x95\x0d\0\0\0\0\0\0\0\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.".to_vec(),
            "torch-legacy",
            &[],
        ),
        ("another number", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x18.".to_vec(), "pickle", &[]),
        ("protocol 0", b"I1\n.".to_vec(), "pickle", &[]),
        ("a call", b"cos\ngetpid\n)R.".to_vec(), "pickle", &[]),
        ("an old list", b"(lp0\nI1\na.".to_vec(), "pickle", &[]),
        ("English", b"Notes of the meeting\n".to_vec(), "unknown", &[]),
        ("a licence", b"                  Apache License\n".to_vec(), "unknown", &[]),
        ("Python", b"class A:\n    pass\n".to_vec(), "unknown", &[]),
        ("Python with imports", b"import os\nimport sys\n".to_vec(), "unknown", &[]),
        ("JSON", b"{\"a\": 1}".to_vec(), "unknown", &[]),
        ("Markdown", b"---\nlicense: mit\n".to_vec(), "unknown", &[]),
        ("npy", b"\x93NUMPY\x01\0".to_vec(), "npy", &[]),
        ("HDF5", b"\x89HDF\r\n\x1a\n".to_vec(), "hdf5", &[]),
        ("GGUF", b"GGUF\x03\0\0\0".to_vec(), "gguf", &[]),
        ("a preview", b"PYTORCH1".to_vec(), "torch-preview", &[]),
        ("zlib", miniz_oxide::deflate::compress_to_vec_zlib(b"N.", 6), "wrapper", &["wrapped"]),
        ("gzip", b"\x1f\x8b\x08\0".to_vec(), "wrapper", &["wrapped"]),
        ("bzip2", b"BZh91AY&SY".to_vec(), "wrapper", &["wrapped"]),
        ("xz", b"\xfd7zXZ\0".to_vec(), "wrapper", &["wrapped"]),
        ("zstd", b"\x28\xb5\x2f\xfd".to_vec(), "wrapper", &["wrapped"]),
        ("lz4", b"\x04\x22\x4d\x18".to_vec(), "wrapper", &["wrapped"]),
        ("7z", b"7z\xbc\xaf\x27\x1c".to_vec(), "wrapper", &["wrapped"]),
        ("joblib's first", b"ZF0x4                x\x9c".to_vec(), "wrapper", &["wrapped"]),
        (
            "lzma",
            b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(),
            "wrapper",
            &["wrapped"],
        ),
    ];
    let wrong: Vec<_> = cases
        .into_iter()
        .map(|(name, file, kind, want)| {
            let found = rounds(&file, detect).0.unwrap();
            let codes: Vec<_> = found.findings.list().iter().map(Finding::code).collect();
            (name, (found.kind.name(), codes), (kind, want.to_vec()))
        })
        .filter(|(_, got, want)| got != want)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn files_of_the_corpus_are_opened_as_what_they_are() {
    for (name, kind, pickles, want) in [
        ("ok_zip.pt", "zip", 1, &[][..]),
        ("ok_legacy.pt", "torch-legacy", 5, &[]),
        ("ok_f8.pt", "zip", 1, &[]),
        ("ok_lightning.ckpt", "zip", 1, &[]),
        ("tied.pt", "zip", 1, &[]),
        ("meta.pt", "zip", 1, &[]),
        ("deep.pt", "zip", 1, &[]),
        ("empty_args.pt", "zip", 1, &[]),
        ("bad_raw.pkl", "pickle", 1, &[]),
        ("bad_named.safetensors", "pickle", 1, &[]),
        ("bad_inst.pkl", "pickle", 1, &[]),
        ("bad_memo.pkl", "pickle", 1, &[]),
        ("bad_trunc.pkl", "pickle", 1, &[]),
        ("bad_nested.pkl", "pickle", 1, &[]),
        ("ext1.pkl", "pickle", 1, &[]),
        ("hugestr.pkl", "pickle", 1, &[]),
        ("bomb.pkl", "pickle", 1, &[]),
        ("bad_zip.pt", "zip", 1, &[]),
        ("bad_crc0.pt", "zip", 1, &["zip-crc"]),
        ("bad_localname.pt", "zip", 1, &["zip-local-name"]),
        ("bad_tar.pt", "tar", 1, &[]),
        ("bad.joblib", "wrapper", 0, &["wrapped"]),
        ("case_zip.pt", "zip", 1, &["zip-case"]),
        ("dup_good_first.pt", "zip", 2, &["zip-duplicate"]),
        ("poly_pkl_then_zip.pkl", "pickle", 1, &["polyglot", "zip-zip64", "zip-prefix"]),
        ("zipbomb.pt", "zip", 1, &["zip-deflated"]),
        ("obj.npy", "npy", 1, &[]),
    ] {
        let file = corpus(name);
        let layout = open(&file).unwrap();
        let spans = Spans::whole(file);
        assert_eq!((layout.kind.name(), codes(&layout)), (kind, want.to_vec()), "{name}");
        assert_eq!(layout.pickles(&spans).len(), pickles, "{name}");
        assert_eq!(layout.behind.is_some(), name.starts_with("poly"), "{name}");
        for pickle in layout.pickles(&spans) {
            let got = layout.pickle_bytes(&spans, &pickle, &Limits::default());
            match got {
                Ok(content) => {
                    assert_eq!(content.damage.is_some(), name == "bad_crc0.pt", "{name}");
                }
                Err(error) => {
                    let weigh_pickle::Stop::Fault(error) = error else { panic!("{name}") };
                    assert_eq!((name, error.code), ("zipbomb.pt", "limit-ratio"));
                }
            }
        }
    }
}

#[test]
fn a_legacy_file_has_its_storages_where_the_object_says() {
    let file = corpus("ok_legacy.pt");
    let spans = Spans::whole(file.clone());
    let stream = legacy::read(&spans, &Limits::default()).unwrap();
    assert_eq!((stream.pickles.len(), stream.keys.len()), (5, 2));
    let sizes = [(4, 4), (16, 4)];
    let of = |sizes: [(u64, u32); 2]| {
        let keys = stream.keys.clone();
        move |key: &str| Some(sizes[keys.iter().position(|own| own == key)?])
    };
    let storages = stream.storages(&spans, of(sizes)).unwrap();
    assert!(storages.findings.is_empty());
    let spans_of: Vec<_> = stream.keys.iter().map(|key| storages.by_key[key].clone()).collect();
    assert_eq!(spans_of[0].start, stream.end + 8);
    assert_eq!(spans_of[1].end, file.len() as u64);
    assert_eq!(spans_of[0].end + 8, spans_of[1].start);
    // Other sizes are refused, a longer file is told, a shorter one is cut off.
    let code = |spans: &Spans, sizes| match stream.storages(spans, of(sizes)) {
        Ok(storages) => storages.findings.list().first().map(Finding::code),
        Err(weigh_pickle::Stop::Fault(error)) => Some(error.code),
        Err(missing) => panic!("{missing:?}"),
    };
    let longer = Spans::whole([file.as_slice(), b"more"].concat());
    let shorter = Spans::whole(file[..file.len() - 1].to_vec());
    for (name, spans, sizes, want) in [
        ("as it is", &spans, sizes, None),
        ("another count", &spans, [(3, 4), (16, 4)], Some("legacy-size")),
        ("another second count", &spans, [(4, 4), (15, 4)], Some("legacy-size")),
        ("another element", &spans, [(4, 8), (16, 4)], Some("legacy-size")),
        ("another second element", &spans, [(4, 4), (16, 8)], Some("past-end")),
        ("without end", &spans, [(4, u32::MAX), (16, 4)], Some("past-end")),
        ("longer", &longer, sizes, Some("legacy-trailing-bytes")),
        ("shorter", &shorter, sizes, Some("past-end")),
    ] {
        assert_eq!(code(spans, sizes), want, "{name}");
    }
    let unknown = stream.storages(&spans, |_| None);
    assert!(
        matches!(unknown, Err(weigh_pickle::Stop::Fault(error)) if error.code == "legacy-keys")
    );
}

#[test]
fn a_long_pickle_is_read_to_its_end_and_no_further() {
    let mut file =
        b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}.".to_vec();
    let object = file.len();
    file.extend(b"\x80\x02X");
    file.extend(700_000_u32.to_le_bytes());
    file.extend(vec![b'a'; 700_000]);
    file.extend(b".\x80\x02]X\x01\0\0\0ka.");
    let end = file.len() as u64;
    file.extend(5_000_000_u64.to_le_bytes());
    file.extend(vec![0; 5_000_000]);
    let (stream, rounds, bytes) = rounds(&file, |spans| legacy::read(spans, &Limits::default()));
    let stream = stream.unwrap();
    assert_eq!(
        (stream.object.start, stream.keys.as_slice()),
        (object as u64, ["k".to_string()].as_slice())
    );
    assert_eq!(stream.end, end);
    assert!(rounds < 10 && bytes < 3 << 20, "{rounds} rounds, {bytes} bytes");
    let limits = Limits { pickle_bytes: 600_000, ..Limits::default() };
    let over = crate::rounds(&file, |spans| legacy::read(spans, &limits)).0.unwrap();
    assert_eq!(over.error.unwrap().code, "limit-pickle-bytes");
}

#[test]
fn a_broken_object_is_there_to_be_scanned() {
    let mut file =
        b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}.".to_vec();
    let object = file.len();
    file.extend(b"cos\ngetpid\n)R\xff");
    let stream = rounds(&file, |spans| legacy::read(spans, &Limits::default())).0.unwrap();
    let error = stream.error.unwrap();
    assert_eq!((error.code, error.offset), ("pickle-opcode", Some(file.len() as u64 - 1)));
    assert_eq!(stream.object, object as u64..file.len() as u64);
}

/// Puts the checksum of a header right.
fn resum(file: &mut [u8], at: usize) {
    file[at + 148..at + 156].fill(b' ');
    let sum: u32 = file[at..at + 512].iter().map(|byte| u32::from(*byte)).sum();
    file[at + 148..at + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

fn tar_file(members: &[(&str, &[u8], u8)]) -> Vec<u8> {
    let mut file = Vec::new();
    for (name, content, kind) in members {
        let at = file.len();
        file.resize(at + 512, 0);
        file[at..at + name.len()].copy_from_slice(name.as_bytes());
        file[at + 124..at + 136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        file[at + 156] = *kind;
        file[at + 257..at + 265].copy_from_slice(b"ustar\x0000");
        resum(&mut file, at);
        file.extend(*content);
        file.resize(file.len().next_multiple_of(512), 0);
    }
    file.resize(file.len() + 1024, 0);
    file
}

#[test]
fn tar_members_are_where_their_headers_say() {
    let long = "n".repeat(200);
    let pax = format!("210 path={long}\n15 comment=abc\n");
    let zero = format!("{long}\0");
    let file = tar_file(&[
        ("plain", b"123", b'0'),
        ("folder/", b"", b'5'),
        ("folder/old", b"4", 0),
        ("././@LongLink", zero.as_bytes(), b'L'),
        ("n", b"56", b'0'),
        ("PaxHeaders/n", pax.as_bytes(), b'x'),
        ("n", b"789", b'0'),
        ("last", b"", b'0'),
    ]);
    let (archive, ..) = rounds(&file, |spans| tar::read(spans, &Limits::default()));
    let archive = archive.unwrap();
    let got: Vec<_> = archive
        .members
        .iter()
        .map(|member| {
            let bytes = &file[member.span.start as usize..member.span.end as usize];
            (member.name.as_str(), std::str::from_utf8(bytes).unwrap())
        })
        .collect();
    let want = [
        ("plain", "123"),
        ("folder/old", "4"),
        (long.as_str(), "56"),
        (&long, "789"),
        ("last", ""),
    ];
    assert_eq!(got, want);
    let codes: Vec<_> = archive.findings.list().iter().map(Finding::code).collect();
    assert_eq!(codes, ["tar-duplicate"]);
}

/// Something done to a file.
type Change = fn(&mut Vec<u8>);
/// The findings, or the code of the error.
type Want = Result<&'static [&'static str], &'static str>;

#[test]
fn odd_tars_are_told_or_refused() {
    let changed = |change: Change| {
        let mut file = tar_file(&[("a", b"1", b'0'), ("b", b"2", b'0')]);
        change(&mut file);
        rounds(&file, |spans| tar::read(spans, &Limits::default())).0
    };
    let base_256 = |file: &mut Vec<u8>| {
        file[124..136].copy_from_slice(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        resum(file, 0);
    };
    let cases: [(&str, Change, Want); 10] = [
        ("honest", |_| {}, Ok(&[])),
        ("a size in base 256", base_256, Ok(&[])),
        ("no end", |file| file.truncate(2048), Ok(&[])),
        ("bytes after the end", |file| file.extend(b"PK"), Ok(&["tar-trailing-bytes"])),
        (
            "a link",
            |file| {
                file[156] = b'2';
                file[124..136].fill(b'0');
                resum(file, 0);
                file.drain(512..1024);
            },
            Ok(&["tar-kind"]),
        ),
        (
            "a parent",
            |file| {
                file[..4].copy_from_slice(b"../x");
                resum(file, 0);
            },
            Ok(&["tar-path"]),
        ),
        ("a wrong checksum", |file| file[1024] = b'x', Err("tar-header")),
        (
            "a size that is none",
            |file| {
                file[124] = b'9';
                resum(file, 0);
            },
            Err("tar-header"),
        ),
        (
            "a size past the end",
            |file| {
                file[124..130].copy_from_slice(b"777777");
                resum(file, 0);
            },
            Err("tar-truncated"),
        ),
        ("cut off in a header", |file| file.truncate(1500), Err("tar-truncated")),
    ];
    for (name, change, want) in cases {
        let got = changed(change);
        let got = got
            .map(|archive| archive.findings.list().iter().map(Finding::code).collect::<Vec<_>>());
        assert_eq!(got.map_err(|error| error.code), want.map(<[&str]>::to_vec), "{name}");
    }
}

#[test]
fn tars_that_other_readers_read_differently_are_told_or_refused() {
    let long = |name: &'static [u8]| ("././@LongLink", name, b'L');
    let pax = |fields: &'static [u8]| ("PaxHeaders/n", fields, b'x');
    let global = |fields: &'static [u8]| ("PaxHeaders/g", fields, b'g');
    let plain: (&str, &[u8], u8) = ("n", b"56", b'0');
    let differ: Want = Ok(&["tar-readers"]);
    for (what, members, want) in [
        ("a long name", vec![long(b"long\0"), plain], Ok(&[][..])),
        ("fields", vec![pax(b"11 path=pp\n"), plain], Ok(&[])),
        ("a comment for all", vec![global(b"13 comment=a\n"), plain], Ok(&[])),
        ("a name for all", vec![global(b"11 path=pp\n"), plain], differ),
        ("a size for all", vec![global(b"9 size=1\n"), plain], differ),
        ("two long names", vec![long(b"l\0"), long(b"m\0"), plain], differ),
        ("fields twice", vec![pax(b"11 path=pp\n"), pax(b"11 path=qq\n"), plain], differ),
        ("a long name and fields", vec![long(b"l\0"), pax(b"11 path=pp\n"), plain], differ),
        ("fields and a long name", vec![pax(b"11 path=pp\n"), long(b"l\0"), plain], differ),
        ("the name of a folder", vec![pax(b"11 path=p/\n"), plain], differ),
        ("no name", vec![pax(b"8 path=\n"), plain], Ok(&["tar-readers", "tar-path"])),
        ("an unknown type", vec![("n", b"56", b'Z')], Ok(&["tar-kind", "tar-readers"])),
        ("a volume", vec![("n", b"56", b'V')], Ok(&["tar-kind", "tar-readers"])),
        ("a file with holes", vec![("n", b"56", b'S')], Err("tar-sparse")),
        ("holes in fields", vec![pax(b"21 GNU.sparse.size=1\n"), plain], Err("tar-sparse")),
        (
            "holes in fields for all",
            vec![global(b"22 GNU.sparse.major=1\n"), plain],
            Err("tar-sparse"),
        ),
    ] {
        let file = tar_file(&members);
        let (got, ..) = rounds(&file, |spans| tar::read(spans, &Limits::default()));
        let got = got
            .map(|archive| archive.findings.list().iter().map(Finding::code).collect::<Vec<_>>());
        assert_eq!(got.map_err(|error| error.code), want.map(<[&str]>::to_vec), "{what}");
    }
    for (what, kind, size) in [("a link", b'2', 1), ("a folder", b'5', 1), ("a device", b'3', 1)] {
        let mut file = tar_file(&[("n", b"", kind), ("m", b"", b'0')]);
        let codes = |file: &[u8]| {
            let (got, ..) = rounds(file, |spans| tar::read(spans, &Limits::default()));
            got.unwrap().findings.first("tar-readers").is_some()
        };
        assert!(!codes(&file), "{what}");
        file[134] = b'0' + size;
        resum(&mut file, 0);
        assert!(codes(&file), "{what} with a size");
    }
    let mut file = tar_file(&[("n", b"56", b'0')]);
    file[257..265].copy_from_slice(b"ustar  \0");
    file[345] = b'p';
    resum(&mut file, 0);
    let (got, ..) = rounds(&file, |spans| tar::read(spans, &Limits::default()));
    assert!(got.unwrap().findings.first("tar-readers").is_some());
}

#[test]
fn a_tar_of_torch_has_its_storages_and_tensors() {
    let mut storages =
        b"\x80\x02K\x01.\x80\x02K\x05X\x03\0\0\0cpuctorch\nFloatStorage\n\x87.".to_vec();
    storages.extend(6_u64.to_le_bytes());
    storages.extend([7; 24]);
    storages.extend(b"\x80\x02](K\x09K\x05K\x02K\x03t\x85e.");
    let storages = [&storages[..storages.len() - 13], b"](K\x09K\x05K\x02K\x03ta."].concat();
    let mut tensors = b"\x80\x02K\x01.\x80\x02K\x06K\x05ctorch\nFloatTensor\n\x87.".to_vec();
    tensors.extend(2_u64.to_le_bytes());
    for number in [2_i64, 3, 3, 1, 0] {
        tensors.extend(number.to_le_bytes());
    }
    let file = tar_file(&[
        ("sys_info", b"\x80\x02}.", b'0'),
        ("pickle", b"\x80\x02K\x06Q.", b'0'),
        ("storages", &storages, b'0'),
        ("tensors", &tensors, b'0'),
    ]);
    let layout = open(&file).unwrap();
    let Contents::TorchTar(archive) = &layout.contents else { panic!("{layout:?}") };
    let size =
        |module: &str, name: &str| (module == "torch" && name == "FloatStorage").then_some(4);
    let read = |size: &dyn Fn(&str, &str) -> Option<u32>| {
        rounds(&file, |spans| torch_tar::read(spans, archive, &Limits::default(), size)).0.unwrap()
    };
    let checkpoint = read(&size);
    assert_eq!(checkpoint.error, None);
    assert_eq!(&file[checkpoint.object.start as usize..][..6], b"\x80\x02K\x06Q.");
    let [storage] = checkpoint.storages.as_slice() else { panic!() };
    assert_eq!((storage.key.as_str(), storage.elements), ("5", 6));
    assert_eq!(&file[storage.span.start as usize..storage.span.end as usize], &[7; 24]);
    let [view] = checkpoint.views.as_slice() else { panic!() };
    assert_eq!((view.key.as_str(), view.of.as_str(), view.offset, view.elements), ("9", "5", 2, 3));
    let [tensor] = checkpoint.tensors.as_slice() else { panic!() };
    assert_eq!((tensor.key.as_str(), tensor.storage.as_str(), tensor.offset), ("6", "5", 0));
    assert_eq!(
        (tensor.size.as_slice(), tensor.stride.as_slice()),
        ([2, 3].as_slice(), [3, 1].as_slice())
    );
    assert_eq!(checkpoint.pickles.len(), 6);
    let without = read(&|_, _| None);
    assert_eq!(without.error.unwrap().code, "torch-tar");
}

fn npy(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    if version == 1 {
        file.extend((header.len() as u16).to_le_bytes());
    } else {
        file.extend((header.len() as u32).to_le_bytes());
    }
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

#[test]
fn headers_of_arrays_are_read_as_data() {
    let number = |dtype, byte_order| Ok(Element::Number { dtype, byte_order });
    let other = |name: &str| Ok(Element::Other { name: name.to_string() });
    for (descr, want) in [
        ("'<f4'", number(Dtype::F32, Little)),
        ("\">f8\"", number(Dtype::F64, Big)),
        ("'|b1'", number(Dtype::BOOL, Little)),
        ("'|i1'", number(Dtype::I8, Little)),
        ("'<c8'", number(Dtype::C64, Little)),
        ("'>u2'", number(Dtype::U16, Big)),
        ("'|O'", Ok(Element::Object)),
        ("'O'", Ok(Element::Object)),
        ("'<c16'", other("<c16")),
        ("'|V2'", other("|V2")),
        ("'<U5'", other("<U5")),
        ("'<M8[ns]'", other("<M8[ns]")),
        ("'|f4'", other("|f4")),
        ("'=f4'", other("=f4")),
        ("[('a', '<f4'), ('b', [('c', '|O')])]", other("structured")),
        ("{'a': 1}", Err("npy-header")),
        ("'<f4", Err("npy-header")),
        ("'<f\\x34'", Err("npy-header")),
        ("__import__('os')", Err("npy-header")),
    ] {
        for version in [1, 2, 3] {
            let text =
                format!("{{'descr': {descr}, 'fortran_order': True, 'shape': (0, 3), }}   \n");
            let got = npy::header(&npy(version, &text, b""));
            assert_eq!(
                got.map(|header| header.element).map_err(|error| error.code),
                want,
                "{descr}"
            );
        }
    }
    let rest = |rest: &str| {
        let text = format!("{{'descr': '<f4', {rest}");
        npy::header(&npy(1, &text, b"")).map(|header| (header.fortran_order, header.shape)).ok()
    };
    for (text, want) in [
        ("'fortran_order': False, 'shape': (2, 3), }", Some((false, vec![2, 3]))),
        ("'fortran_order': False, 'shape': (2L,)}", Some((false, vec![2]))),
        ("'shape': (), 'fortran_order': True}", Some((true, vec![]))),
        ("'fortran_order': False, 'shape': (2 3)}", None),
        ("'fortran_order': False, 'shape': (-1,)}", None),
        ("'fortran_order': False, 'shape': (18446744073709551616,)}", None),
        ("'fortran_order': 0, 'shape': ()}", None),
        ("'fortran_order': False}", None),
        ("'fortran_order': False, 'shape': (), 'more': ()}", None),
        ("'fortran_order': False, 'shape': (), 'descr': '<f8'}", None),
        ("'fortran_order': False, 'shape': ()} x", None),
    ] {
        assert_eq!(rest(text), want, "{text}");
    }
}

#[test]
fn arrays_have_the_bytes_that_their_shapes_say() {
    let file = |descr: &str, shape: &str, data: &[u8]| {
        npy(1, &format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}\n"), data)
    };
    for (name, file, want) in [
        ("exact", file("<f4", "(2,)", &[0; 8]), Ok((8, 0))),
        ("short", file("<f4", "(2,)", &[0; 7]), Err("npy-truncated")),
        ("long", file("<f4", "(2,)", &[0; 9]), Ok((8, 1))),
        ("scalar", file("<f4", "()", &[0; 4]), Ok((4, 0))),
        ("empty", file("<f4", "(0, 9)", &[]), Ok((0, 0))),
        ("huge beside zero", file("<f4", "(9223372036854775807, 4, 0)", &[]), Ok((0, 0))),
        ("huge", file("<f4", "(9223372036854775807, 4)", &[]), Err("npy-header")),
        ("objects", file("|O", "(2,)", b"N."), Ok((2, 0))),
    ] {
        let got = rounds(&file, |spans| npy::read(spans, 0..spans.len())).0;
        let got = got.map(|array| (array.data.end - array.data.start, array.findings.list().len()));
        assert_eq!(got.map_err(|error| error.code), want, "{name}");
    }
    assert_eq!(
        npy::header_len(b"\x93NUMPY\x02\0\xff\xff\xff\xff").unwrap_err().code,
        "limit-npy-header"
    );
    assert_eq!(npy::header_len(b"\x93NUMPY\x04\0\0\0\0\0").unwrap_err().code, "npy-header");
}

#[test]
fn an_archive_of_arrays_is_told_from_others() {
    let array = npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': ()}", &[0; 4]);
    for (name, file, npz) in [
        (
            "stored",
            Writer::default().write(&[member("a.npy", &array), member("b.npy", &array)]),
            true,
        ),
        ("deflated", Writer::default().write(&[deflated("a.npy", &array)]), true),
        (
            "with something else",
            Writer::default().write(&[member("a.npy", &array), member("b", b"")]),
            false,
        ),
        ("empty", Writer::default().write(&[]), false),
    ] {
        let layout = open(&file).unwrap();
        assert_eq!(matches!(layout.contents, Contents::Npz(_)), npz, "{name}");
        assert_eq!(matches!(layout.contents, Contents::Zip(_)), !npz, "{name}");
    }
}

//! Zip archives: every oddity has its finding, and an honest file has none.

use std::collections::BTreeSet;

use weigh_format::{Finding, Severity};
use weigh_pickle::Limits;
use weigh_pickle::container::inflate::{Inflater, content};
use weigh_pickle::container::torch::{self, ByteOrder};
use weigh_pickle::container::zip::{self, Archive, Method};

use crate::rounds;
use crate::writer::{Member, Writer, deflated, member, streamed};

fn read(file: &[u8]) -> Result<Archive, weigh_pickle::Error> {
    rounds(file, |spans| zip::read(spans, &Limits::default())).0
}

/// The codes of all findings, of the archive and of the checkpoint in it.
fn codes(file: &[u8]) -> Vec<&'static str> {
    let archive = read(file).unwrap();
    let root = rounds(file, |spans| torch::root(spans, &archive, &Limits::default())).0.unwrap();
    let mut codes: BTreeSet<_> = archive.findings.list().iter().map(Finding::code).collect();
    for found in root.iter().flat_map(|root| root.findings.list()) {
        codes.insert(found.code());
    }
    codes.into_iter().collect()
}

/// A checkpoint as torch writes it.
fn honest() -> Vec<Member> {
    vec![
        streamed("model/data.pkl", b"\x80\x02}q\x00."),
        streamed("model/.format_version", b"1"),
        streamed("model/.storage_alignment", b"64"),
        streamed("model/byteorder", b"little"),
        streamed("model/data/0", &[1; 64]),
        member("model/data/1", b""),
        streamed("model/version", b"3\n"),
        streamed("model/.data/serialization_id", &[b'7'; 40]),
    ]
}

/// An honest checkpoint with something done to it.
fn with(change: impl FnOnce(&mut Vec<Member>)) -> Vec<u8> {
    let mut members = honest();
    change(&mut members);
    Writer::default().write(&members)
}

/// The archive around an honest checkpoint with something done to it.
fn around(change: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::default();
    change(&mut writer);
    writer.write(&honest())
}

fn wide_extra(values: &[u64]) -> Vec<u8> {
    let mut extra = vec![1, 0, (values.len() * 8) as u8, 0];
    extra.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    extra
}

#[test]
fn an_honest_checkpoint_has_no_findings() {
    let file = Writer::default().write(&honest());
    assert_eq!(codes(&file), [] as [&str; 0]);
    let archive = read(&file).unwrap();
    let root = rounds(&file, |spans| torch::root(spans, &archive, &Limits::default())).0.unwrap();
    let root = root.unwrap();
    assert_eq!((root.folder.as_str(), root.byte_order), ("model", ByteOrder::Little));
    assert_eq!(root.version.as_deref(), Some("3"));
    assert_eq!(root.storage_alignment.as_deref(), Some("64"));
    assert_eq!((root.pickle, root.pickles.as_slice()), (0, [0].as_slice()));
    let storage = root.storage(&archive, "0").unwrap();
    let span = storage.stored().unwrap();
    assert_eq!(&file[span.start as usize..span.end as usize], &[1; 64]);
    assert!(root.storage(&archive, "2").is_none() && !archive.crc_off);
}

#[test]
fn what_honest_writers_do_otherwise_is_at_most_a_note() {
    let wide = |saturated| around(|writer| (writer.wide, writer.saturated) = (true, saturated));
    let padded =
        with(|members| members[4].local_extra = [b"FB\x20\0".to_vec(), vec![b'Z'; 32]].concat());
    let off = with(|members| {
        for member in members {
            member.crc = 0;
            if let Some(record) = &mut member.descriptor {
                record[4..8].fill(0);
            }
        }
    });
    let plain = Writer::default()
        .write(&honest().iter().map(|old| member(&old.name, &old.content)).collect::<Vec<_>>());
    let squeezed = Writer::default()
        .write(&honest().iter().map(|old| deflated(&old.name, &old.content)).collect::<Vec<_>>());
    let descriptor_64 = with(|members| {
        let old = members[4].descriptor.clone().unwrap();
        members[4].descriptor =
            Some([&old[..8], &[64, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0]].concat());
    });
    let unsigned = with(|members| {
        members[4].descriptor = members[4].descriptor.clone().map(|old| old[4..].to_vec());
    });
    // As torch writes members of 4 GiB and more: zeros before the bytes, the sizes in an extra field.
    let extra_64 = with(|members| members[4].local_extra = wide_extra(&[64]));
    let without = Writer::default().write(&honest()[..4]).len();
    let offset_64 = with(|members| {
        let records: usize = honest()[..4].iter().map(|member| 46 + member.name.len()).sum();
        let offset = (without - records - 22) as u64;
        members[4].local_extra = wide_extra(&[offset]);
    });
    let folder = with(|members| members.insert(0, member("model/", b"")));
    let accent = with(|members| {
        for member in members {
            member.name = member.name.replace("model", "modèle");
            member.flags |= 0x800;
        }
    });
    let unmarked = with(|members| {
        for member in members {
            member.name = member.name.replace("model", "modèle");
            member.flags &= !0x800;
        }
    });
    for (name, file, want) in [
        ("a 64-bit end record", wide(false), &[][..]),
        ("one that is needed", wide(true), &[]),
        ("padding", padded, &[]),
        ("checksums off", off, &["zip-crc-off"]),
        ("sizes in the headers", plain, &[]),
        ("deflated", squeezed, &["zip-deflated"]),
        ("64-bit sizes after the bytes", descriptor_64, &[]),
        ("sizes after the bytes without a signature", unsigned, &[]),
        ("64-bit sizes before the bytes", extra_64, &[]),
        ("a 64-bit offset before the bytes", offset_64, &[]),
        ("a folder", folder, &[]),
        ("a name in UTF-8", accent, &[]),
        ("a name in UTF-8 that is not marked", unmarked, &["zip-name-encoding"]),
    ] {
        assert_eq!(codes(&file), want, "{name}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of all oddities")]
fn every_oddity_has_its_finding() {
    let evil = || streamed("model/data.pkl", b"\x80\x02N.");
    let duplicates = |count: usize| with(move |members| members.extend((1..count).map(|_| evil())));
    let zip = Writer::default().write(&[member("a", b"b")]);
    let cases: Vec<(&str, Vec<u8>, &[&str])> = vec![
        ("two data.pkl", duplicates(2), &["zip-duplicate"]),
        ("five data.pkl", duplicates(5), &["zip-duplicate"]),
        ("only DATA.PKL", with(|m| m[0].name = "model/DATA.PKL".into()), &["zip-case"]),
        (
            "data.pkl and DATA.PKL",
            with(|m| m.push(streamed("model/DATA.PKL", b"N."))),
            &["zip-case", "zip-unreferenced"],
        ),
        (
            "another local name",
            with(|m| m[0].local_name = Some("model/data.pk1".into())),
            &["zip-local-name"],
        ),
        (
            "a central checksum that is not that of the record after",
            with(|m| m[4].crc ^= 1),
            &["zip-descriptor"],
        ),
        (
            "a central checksum of zero",
            with(|m| {
                m[5] = {
                    let mut zero = member("model/data/1", b"x");
                    zero.local_crc = Some(zero.crc);
                    zero.crc = 0;
                    zero
                }
            }),
            &["zip-crc"],
        ),
        ("a local checksum", with(|m| m[4].local_crc = Some(5)), &["zip-crc"]),
        (
            "encrypted locally",
            with(|m| m[0].local_flags = Some(0x809)),
            &["zip-encrypted", "zip-local-header"],
        ),
        ("encrypted", with(|m| m[0].flags |= 1), &["zip-encrypted"]),
        ("a patch", with(|m| m[0].flags |= 0x20), &["zip-flags"]),
        ("strongly encrypted", with(|m| m[0].flags |= 0x40), &["zip-encrypted"]),
        ("masked", with(|m| m[0].flags |= 0x2000), &["zip-encrypted"]),
        (
            "deflated in the directory, stored in the header",
            with(|m| (m[4].method, m[4].local_method) = (8, Some(0))),
            &["zip-deflated", "zip-local-header"],
        ),
        (
            "stored in the directory, deflated in the header",
            with(|m| m[4].local_method = Some(8)),
            &["zip-local-header"],
        ),
        ("another method", with(|m| m[4].method = 12), &["zip-method"]),
        (
            "stored with two sizes",
            with(|m| {
                m[4].raw = Some(vec![1; 60]);
                m[4].descriptor.as_mut().unwrap()[8] = 60;
            }),
            &["zip-stored-size"],
        ),
        ("a local size", with(|m| m[4].local_size = Some(63)), &["zip-local-header"]),
        (
            "a record after the bytes",
            with(|m| m[4].descriptor.as_mut().unwrap()[8] = 1),
            &["zip-descriptor"],
        ),
        (
            "bytes after the archive",
            around(|w| w.after = b"junk".to_vec()),
            &["zip-trailing-bytes"],
        ),
        ("a comment", around(|w| w.comment = b"hello".to_vec()), &["zip-comment"]),
        ("a comment of a member", with(|m| m[0].comment = b"hello".to_vec()), &["zip-comment"]),
        (
            "an archive in the comment",
            around(|w| w.comment = zip.clone()),
            &["zip-prefix", "zip-two-ends"],
        ),
        ("bytes before", around(|w| w.before = b"junk".to_vec()), &["zip-prefix"]),
        (
            "bytes before, with offsets of the file",
            around(|w| (w.before, w.absolute) = (b"junk".to_vec(), true)),
            &["zip-gap"],
        ),
        ("a gap", with(|m| m[4].before = b"hidden".to_vec()), &["zip-gap"]),
        (
            "a gap before the directory",
            around(|w| w.before_directory = b"hidden".to_vec()),
            &["zip-gap"],
        ),
        (
            "a gap after the directory",
            around(|w| w.after_directory = b"hidden".to_vec()),
            &["zip-gap"],
        ),
        (
            "members that share bytes",
            with(|m| m[1].header = Some(0)),
            &["zip-gap", "zip-local-name", "zip-overlap"],
        ),
        ("no header", with(|m| m[1].header = Some(3)), &["zip-gap", "zip-local-missing"]),
        (
            "a header after the directory",
            with(|m| m[1].header = Some(1 << 30)),
            &["zip-gap", "zip-local-missing"],
        ),
        (
            "more bytes than there are",
            with(|m| m[7].size = Some(1 << 30)),
            &["zip-gap", "zip-local-missing"],
        ),
        ("fewer members than the end record says", around(|w| w.count = Some(9)), &["zip-count"]),
        ("more members than the end record says", around(|w| w.count = Some(7)), &["zip-count"]),
        (
            "two end records that differ",
            around(|w| (w.wide, w.count) = (true, Some(7))),
            &["zip-zip64"],
        ),
        ("a parent", with(|m| m.push(member("model/data/../../x", b""))), &["zip-path"]),
        ("a backslash", with(|m| m.push(member("model/data/a\\b", b""))), &["zip-path"]),
        ("a NUL", with(|m| m.push(member("model/data/a\0b", b""))), &["zip-path"]),
        ("a root", with(|m| m.push(member("/model/data/5", b""))), &["zip-path", "zip-root"]),
        ("another folder", with(|m| m.push(member("other/data.pkl", b"N."))), &["zip-root"]),
        (
            "64-bit sizes twice",
            with(|m| m[4].extra = [wide_extra(&[64]), wide_extra(&[64])].concat()),
            &["zip-extra"],
        ),
        ("64-bit sizes that differ", with(|m| m[4].extra = wide_extra(&[63])), &["zip-extra"]),
        (
            "64-bit sizes before the bytes that differ",
            with(|m| m[4].local_extra = wide_extra(&[63])),
            &["zip-extra"],
        ),
        (
            "an extra field that is cut off",
            with(|m| m[4].extra = vec![5, 5, 9, 0, 1]),
            &["zip-extra"],
        ),
        (
            "another name in Unicode",
            with(|m| m[4].extra = b"\x75\x70\x06\0\x01\0\0\0\0x".to_vec()),
            &["zip-extra"],
        ),
        (
            "no version",
            with(|m| {
                m.remove(6);
            }),
            &["torch-version"],
        ),
        (
            "a version of the future",
            with(|m| m[6] = streamed("model/version", b"11")),
            &["torch-version"],
        ),
        (
            "no byte order",
            with(|m| {
                m.remove(3);
            }),
            &[],
        ),
        (
            "a byte order that is none",
            with(|m| m[3] = streamed("model/byteorder", b"middle")),
            &["torch-byte-order"],
        ),
        ("code", with(|m| m.push(member("model/code/x.py", b"1"))), &["torch-script"]),
        ("constants", with(|m| m.push(member("model/constants.pkl", b"N."))), &["torch-script"]),
        ("something else", with(|m| m.push(member("model/x.py", b"1"))), &["zip-unreferenced"]),
    ];
    let wrong: Vec<_> = cases
        .into_iter()
        .map(|(name, file, want)| (name, codes(&file), want))
        .filter(|(_, got, want)| got != want)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_cannot_be_read_says_why() {
    let limits = Limits { entries: 7, name_bytes: 20, ..Limits::default() };
    let whole = Writer::default().write(&honest());
    for (name, file, limits, want) in [
        ("no end", whole[..whole.len() - 4].to_vec(), Limits::default(), "zip-no-end"),
        ("members over the limit", whole.clone(), limits, "limit-entries"),
        ("a name over the limit", whole.clone(), Limits { entries: 8, ..limits }, "limit-name"),
        (
            "a directory over the limit",
            whole.clone(),
            Limits { pickle_bytes: 99, ..Limits::default() },
            "limit-pickle-bytes",
        ),
        (
            "a 64-bit record that is not there",
            around(|w| w.after_directory = [b"PK\x06\x07".as_slice(), &[0; 16]].concat()),
            Limits::default(),
            "zip-directory",
        ),
        ("nothing", Vec::new(), Limits::default(), "zip-no-end"),
    ] {
        let got = rounds(&file, |spans| zip::read(spans, &limits)).0;
        assert_eq!(got.unwrap_err().code, want, "{name}");
    }
}

#[test]
fn twenty_thousand_members_take_a_few_rounds() {
    let mut members = honest();
    members.extend((2..20_000).map(|key| streamed(&format!("model/data/{key}"), &[0; 2000])));
    let file = Writer { wide: true, ..Writer::default() }.write(&members);
    let (archive, rounds, bytes) = rounds(&file, |spans| zip::read(spans, &Limits::default()));
    let archive = archive.unwrap();
    assert_eq!(archive.entries.len(), members.len());
    assert!(archive.findings.is_empty());
    assert!(rounds <= 3, "{rounds} rounds");
    assert!(bytes < file.len() / 5, "{bytes} of {}", file.len());
    assert_eq!(archive.entry("model/data/19999").unwrap().size, 2000);
}

#[test]
fn entries_lie_in_the_file_and_apart() {
    let file = with(|members| members[1].header = Some(0));
    let archive = read(&file).unwrap();
    let spans: Vec<_> = archive.entries.iter().filter_map(|entry| entry.span.clone()).collect();
    assert_eq!(spans.len(), archive.entries.len() - 1);
    assert!(archive.findings.worst() == Some(Severity::Error));
}

#[test]
fn content_is_inflated_and_checked() {
    let text = b"to be or not to be ".repeat(9000);
    let file = Writer::default().write(&[deflated("a", &text), member("b", &text)]);
    let archive = read(&file).unwrap();
    for entry in &archive.entries {
        let span = entry.span.clone().unwrap();
        let raw = &file[span.start as usize..span.end as usize];
        let got = content(entry, raw, &Limits::default()).unwrap();
        assert!(got.bytes == text.as_slice() && got.damage.is_none(), "{}", entry.name);
        let mut wrong = entry.clone();
        wrong.crc = Some(5);
        let got = content(&wrong, raw, &Limits::default()).unwrap();
        assert!(got.bytes == text.as_slice());
        assert_eq!(got.damage.unwrap().code(), "zip-crc");
        // In pieces of any size.
        for (piece, room) in [(1, 7), (1000, 1), (1 << 20, 1 << 20), (13, 40_000)] {
            let mut inflater = Inflater::new(entry);
            let (mut rest, mut whole, mut out) = (raw, Vec::<u8>::new(), vec![0; room]);
            loop {
                let step = inflater.step(&rest[..rest.len().min(piece)], &mut out).unwrap();
                rest = &rest[step.taken..];
                whole.extend(&out[..step.given]);
                if step.taken == 0 && step.given == 0 {
                    break;
                }
            }
            assert!(
                whole == text && inflater.finish().unwrap().is_none(),
                "{} {piece}",
                entry.name
            );
        }
    }
    assert_eq!(archive.entries[0].method, Method::Deflated);
}

#[test]
fn content_that_is_not_what_it_claims_is_refused() {
    let text = vec![b'x'; 5000];
    let file = Writer::default().write(&[deflated("a", &text)]);
    let entry = read(&file).unwrap().entries.remove(0);
    let span = entry.span.clone().unwrap();
    let raw = &file[span.start as usize..span.end as usize];
    for (name, size, raw, limits, want) in [
        ("more", 4999, raw, Limits::default(), "inflate-size"),
        ("fewer", 5001, raw, Limits::default(), "inflate-size"),
        ("cut off", 5000, &raw[..raw.len() - 1], Limits::default(), "inflate"),
        ("garbage", 5000, &[0xff_u8; 40][..], Limits::default(), "inflate"),
        (
            "over the limit",
            5000,
            raw,
            Limits { pickle_bytes: 4999, ..Limits::default() },
            "limit-pickle-bytes",
        ),
        ("a bomb by its claim", 300 << 20, raw, Limits::default(), "limit-ratio"),
    ] {
        let mut entry = entry.clone();
        entry.size = size;
        let got = content(&entry, raw, &limits).map(|got| got.bytes.len());
        assert_eq!(got.unwrap_err().code, want, "{name}");
    }
}

#[test]
fn torch_refuses_archives_for_their_members_and_storages() {
    use weigh_pickle::container::layout::{self, Contents};
    use weigh_pickle::run;

    let id = |key: &str| {
        let mut pickle = b"\x80\x02(X\x07\0\0\0storagectorch\nFloatStorage\nX".to_vec();
        pickle.extend((key.len() as u32).to_le_bytes());
        pickle.extend(key.as_bytes());
        pickle.extend(b"X\x03\0\0\0cpuK\x02tQ.");
        pickle
    };
    let members = |key: &str| {
        vec![
            member("m/data.pkl", &id(key)),
            member("m/byteorder", b"little"),
            member("m/data/0", &[0; 8]),
            member("m/version", b"3\n"),
            member("m/.data/serialization_id", b"123"),
        ]
    };
    let with = |key: &str, change: &dyn Fn(&mut Vec<Member>)| {
        let mut members = members(key);
        change(&mut members);
        members
    };
    let none: &dyn Fn(&mut Vec<Member>) = &|_| {};
    for (what, members, refused) in [
        ("honest", with("0", none), None),
        ("no such storage", with("1", none), Some("no member has the storage 1")),
        ("a key that leaves the folder", with("../version", none), Some("no member has")),
        ("a key with a NUL", with("0\0x", none), None),
        ("a short storage", with("0", &|m| m[2] = member("m/data/0", &[0; 7])), Some("7 bytes")),
        ("a long storage", with("0", &|m| m[2] = member("m/data/0", &[0; 9])), Some("9 bytes")),
        ("a storage in another case", with("0", &|m| m[2] = member("m/DATA/0", &[0; 8])), None),
        (
            "a line as byte order",
            with("0", &|m| m[1] = member("m/byteorder", b"big\n")),
            Some("byte order"),
        ),
        ("no version", with("0", &|m| drop(m.remove(3))), Some("version")),
        ("a version and more", with("0", &|m| m[3] = member("m/version", b"3x")), None),
        ("a member outside", with("0", &|m| m.push(member("n/x", b""))), Some("not in the folder")),
        (
            "no text as id",
            with("0", &|m| m[4] = member("m/.data/serialization_id", b"\xff")),
            Some("UTF-8"),
        ),
        ("no number", with("0", &|m| m.push(member("m/.storage_alignment", b"x"))), Some("number")),
        ("a number", with("0", &|m| m.push(member("m/.storage_alignment", b"64"))), None),
        (
            "constants",
            with("0", &|m| m.push(member("m/constants.pkl", b"N."))),
            Some("TorchScript"),
        ),
        ("code alone", with("0", &|m| m.push(member("m/code/x.py", b""))), None),
    ] {
        let file = Writer::default().write(&members);
        let limits = Limits::default();
        let layout = rounds(&file, |spans| layout::open(spans, &limits)).0.unwrap();
        let Contents::TorchZip { archive, root } = &layout.contents else { panic!("{what}") };
        let pickle = &members[0].content;
        let program = run(pickle, &limits);
        let got = root.torch_refuses(archive, &program.graph);
        match refused {
            Some(reason) => assert!(got.as_ref().unwrap().contains(reason), "{what}: {got:?}"),
            None => assert_eq!(got, None, "{what}"),
        }
    }
    for (place, want) in [(0, 1), (5, 5)] {
        let mut members = members("0");
        members.insert(place, member("m/DATA.PKL", b"N."));
        let file = Writer::default().write(&members);
        let layout = rounds(&file, |spans| layout::open(spans, &Limits::default())).0.unwrap();
        let Contents::TorchZip { archive, root } = &layout.contents else { panic!() };
        assert_eq!(root.pickle_for_torch(archive), want);
    }
}

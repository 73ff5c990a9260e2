//! Pickles where nobody looks for them.

use weigh::torch::pickle::Verdict;
use weigh::torch::scan::{ScanOptions, scan};

/// A call that does no harm.
const CALL: &[u8] = b"cos\ngetpid\n(tR.";

fn verdict(name: &str, file: &[u8]) -> Option<Verdict> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, file).unwrap();
    scan(&path, &ScanOptions::default()).unwrap().verdict
}

/// A sound safetensors file whose length is an opcode, whose text is strings, and whose tensor is the rest of a pickle.
fn safetensors_and_pickle(call: &[u8]) -> Vec<u8> {
    // `X` and 64 bytes of text: the length 0x4058. Then `N` as often as it takes, and `Ua`, a string of 97 bytes.
    let length = 0x4058;
    let data = [b"0", call].concat();
    let before = r#"{"__metadata__":{"a":""#;
    let entry = format!(r#"{{"dtype":"U8","shape":[{0}],"data_offsets":[0,{0}]}}"#, data.len());
    let after = format!("{:<97}", format!(r#""}},"w":{entry}}}"#));
    let nothing = "N".repeat(length - before.len() - after.len() - 2);
    let header = format!("{before}{nothing}Ua{after}");
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

#[test]
fn a_safetensors_file_that_is_a_pickle_too_is_not_clean() {
    for name in ["model.safetensors", "pytorch_model.bin", "model"] {
        assert_eq!(verdict(name, &safetensors_and_pickle(CALL)), Some(Verdict::Call), "{name}");
        let other = safetensors_and_pickle(b"no pickle at all");
        assert_eq!(verdict(name, &other), Some(Verdict::DataOnly), "{name}");
    }
}

#[test]
fn what_is_behind_an_array_or_a_pickle_is_not_clean() {
    let header = format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }");
    let array = [b"\x93NUMPY\x01\0\x76\0", header.as_bytes(), b"\0\0\x80\x3f"].concat();
    let fields = header.replace("'<f4'", "'f4,O'").replace(" \n", "\n");
    let fields = [b"\x93NUMPY\x01\0\x76\0", fields.as_bytes(), CALL].concat();
    for (what, file, is_clean) in [
        ("an array", array.clone(), true),
        ("an array, and a call", [&array, CALL].concat(), false),
        ("an array of fields that may be objects", fields, false),
        ("a pickle", b"N.".to_vec(), true),
        ("a pickle, zeros and a call", [b"N.", &[0; 99][..], CALL].concat(), false),
        ("a pickle and a call", [b"N.", CALL].concat(), false),
    ] {
        let found = verdict("file.pkl", &file);
        assert_eq!(found == Some(Verdict::DataOnly), is_clean, "{what}: {found:?}");
    }
}

#[test]
fn a_member_that_no_storage_names_is_looked_into() {
    // A tensor's storage is `0`; a member of any other name is read as whatever it is.
    let object =
        b"\x80\x02(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x04tQ.";
    let call = [CALL, b"\0"].concat();
    for (member, want) in [
        ("data/0", Verdict::DataOnly),
        ("data/1", Verdict::Call),
        ("data/00", Verdict::Call),
        ("data/0/x", Verdict::Call),
        ("extra/notes.txt", Verdict::Call),
    ] {
        let mut members = vec![
            ("m/data.pkl".to_owned(), object.to_vec()),
            ("m/byteorder".to_owned(), b"little".to_vec()),
            ("m/version".to_owned(), b"3\n".to_vec()),
        ];
        if member != "data/0" {
            members.push(("m/data/0".to_owned(), vec![0; 16]));
        }
        members.push((format!("m/{member}"), call.clone()));
        let file = crate::made::zip(&members, false);
        assert_eq!(verdict("model.pt", &file), Some(want), "{member}");
    }
}

/// A tar archive of a member, whose name is text that a pickle can be.
fn tar(name: &[u8], member: &[u8]) -> Vec<u8> {
    let mut header = [0_u8; 512];
    header[..name.len()].copy_from_slice(name);
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{:011o}\0", member.len()).as_bytes());
    header[136..148].copy_from_slice(b"00000000000\0");
    header[148..156].copy_from_slice(b"        ");
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut file = header.to_vec();
    file.extend(member);
    file.resize(file.len().next_multiple_of(512) + 1024, 0);
    file
}

#[test]
fn a_container_that_is_a_pickle_too_is_not_clean() {
    let gguf = |rest: &[u8]| [b"GGUF\x03\0\0\0\0", rest].concat();
    for (what, file, expected) in [
        ("a tar of nothing", tar(b"member", b"x"), None),
        ("a tar of data", tar(b"member", b"\x80\x02N."), Some(Verdict::DataOnly)),
        ("a tar that is a pickle", tar(CALL, b"x"), Some(Verdict::Call)),
        ("a tar of data that is a pickle", tar(CALL, b"\x80\x02N."), Some(Verdict::Call)),
        ("a GGUF file", gguf(&[0; 64]), Some(Verdict::Error)),
        ("a GGUF file that is a pickle", gguf(CALL), Some(Verdict::Call)),
    ] {
        for name in ["file", "file.tar", "file.pkl"] {
            let found = verdict(name, &file);
            let is_named = name == "file.pkl" && expected.is_none();
            let expected = if is_named { Some(Verdict::Error) } else { expected };
            assert_eq!(found, expected, "{what} as {name}");
        }
    }
}

#[test]
fn an_archive_of_a_text_pickle_is_no_pickle_itself() {
    // After the newlines of its names, the archive's bytes are opcodes that call; before them is a persistent id.
    let tensor = b"ctorch._utils\n_rebuild_tensor_v2\n((S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI4\ntQI0\n(I4\nt(I1\ntI00\nccollections\nOrderedDict\n(tRtR.";
    let members = [
        ("m/data.pkl".to_owned(), tensor.to_vec()),
        ("m/byteorder".to_owned(), b"little".to_vec()),
        ("m/version".to_owned(), b"3\n".to_vec()),
        ("m/data/0".to_owned(), vec![0; 16]),
    ];
    let file = crate::made::zip(&members, false);
    assert_eq!(verdict("model.pt", &file), Some(Verdict::DataOnly));
}

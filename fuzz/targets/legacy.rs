//! Any bytes as a legacy stream of torch's: its parts follow each other without a gap, so that written one after the
//! other they are the file again; and however the file is read, piece by piece or whole, they are the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_pickle::container::legacy::{self, Storages, Stream};
use weigh_pickle::{Limits, Spans, Stop};

/// Of every key: elements, and bytes of an element.
fn size(key: &str) -> Option<(u64, u32)> {
    let elements = key.bytes().map(u64::from).sum::<u64>() % 5;
    Some((elements, 1 << (key.len() % 4)))
}

/// Reads what is asked for, and no more.
fn piecewise<T>(bytes: &[u8], mut function: impl FnMut(&Spans) -> Result<T, Stop>) -> Option<T> {
    let mut spans = Spans::new(bytes.len() as u64);
    loop {
        match function(&spans) {
            Ok(found) => return Some(found),
            Err(Stop::Fault(_)) => return None,
            Err(Stop::Missing(missing)) => {
                for span in missing {
                    let part = bytes[span.start as usize..span.end as usize].to_vec();
                    spans.insert(span.start, part);
                    assert!(spans.get(span).is_ok());
                }
            }
        }
    }
}

fn said(found: &Option<(Stream, Option<Storages>)>) -> String {
    format!("{found:?}")
}

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { nodes: 1 << 20, opcodes: 1 << 20, ..Limits::default() };
    let read = |spans: &Spans| legacy::read(spans, &limits);
    let stream = piecewise(bytes, read);
    let found = stream.map(|stream| {
        let storages = piecewise(bytes, |spans| stream.storages(spans, size));
        (stream, storages)
    });
    let spans = Spans::whole(bytes.to_vec());
    let at_once = read(&spans).ok().map(|stream| {
        let storages = stream.storages(&spans, size).ok();
        (stream, storages)
    });
    assert_eq!(said(&found), said(&at_once));
    let Some((stream, storages)) = found else { return };
    let part = |start: u64, end: u64| &bytes[start as usize..end as usize];
    let mut again = Vec::new();
    for pickle in &stream.pickles {
        assert_eq!(pickle.start, again.len() as u64);
        again.extend(part(pickle.start, pickle.end));
    }
    assert!(again == part(0, stream.end));
    let Some(storages) = storages else { return };
    assert_eq!(storages.by_key.len(), stream.keys.len());
    for key in &stream.keys {
        let (elements, element) = size(key).unwrap();
        again.extend(elements.to_le_bytes());
        let span = &storages.by_key[key];
        assert_eq!(
            (span.start, span.end - span.start),
            (again.len() as u64, elements * u64::from(element))
        );
        again.extend(part(span.start, span.end));
    }
    assert!(bytes.starts_with(&again));
    assert_eq!(storages.findings.list().is_empty(), again.len() == bytes.len());
});

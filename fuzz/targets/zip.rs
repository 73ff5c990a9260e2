//! Any bytes as a zip archive: no entry is outside the file, none overlap, and each is inflated within its limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_pickle::container::{inflate, zip};
use weigh_pickle::{Limits, Spans};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { pickle_bytes: 1 << 24, ..Limits::default() };
    let spans = Spans::whole(bytes.to_vec());
    let Ok(archive) = zip::read(&spans, &limits) else { return };
    let mut places: Vec<_> = archive.entries.iter().filter_map(|entry| entry.span.clone()).collect();
    places.retain(|place| !place.is_empty());
    places.sort_by_key(|place| place.start);
    assert!(places.iter().all(|place| place.end <= spans.len()));
    assert!(places.windows(2).all(|pair| pair[0].end <= pair[1].start));
    for entry in &archive.entries {
        let Some(span) = entry.span.clone() else { continue };
        let Ok(raw) = spans.get(span) else { continue };
        if let Ok(content) = inflate::content(entry, raw, &limits) {
            assert!(content.bytes.len() <= 1 << 24);
        }
    }
});

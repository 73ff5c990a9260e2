//! Any bytes as a file of any kind: opened, its pickles found and run, as `weigh scan` does. Nothing panics, and no
//! span is outside the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_pickle::container::layout;
use weigh_pickle::{Limits, Spans, run_all};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { nodes: 1 << 20, opcodes: 1 << 20, pickle_bytes: 1 << 24, ..Limits::default() };
    let spans = Spans::whole(bytes.to_vec());
    let Ok(layout) = layout::open(&spans, &limits) else { return };
    for pickle in layout.pickles(&spans) {
        if let Ok(content) = layout.pickle_bytes(&spans, &pickle, &limits) {
            let _programs = run_all(&content.bytes, &limits);
        }
    }
    for key in ["0", "1", "a"] {
        if let Some(stored) = layout.storage(key) {
            assert!(stored.span.start <= stored.span.end && stored.span.end <= spans.len());
        }
    }
});

//! Any bytes as a legacy stream of torch's: no storage is outside the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_pickle::container::legacy;
use weigh_pickle::{Limits, Spans};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { nodes: 1 << 20, opcodes: 1 << 20, ..Limits::default() };
    let spans = Spans::whole(bytes.to_vec());
    let Ok(stream) = legacy::read(&spans, &limits) else { return };
    let Ok(storages) = stream.storages(&spans, |_| Some((1, 4))) else { return };
    assert!(storages.by_key.values().all(|span| span.end <= spans.len()));
});

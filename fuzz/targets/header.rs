//! Any bytes as a safetensors file: what both policies accept is sound to use.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_format::header::{inspect, locate};
use weigh_format::{HashKey, Limits, Policy};

fuzz_target!(|bytes: &[u8]| {
    let (limits, len) = (Limits::default(), bytes.len() as u64);
    let Ok(span) = locate(&bytes[..bytes.len().min(8)], len, &limits) else { return };
    let header = bytes[span.start as usize..span.end as usize].to_vec();
    for policy in [Policy::Compatible, Policy::Strict] {
        let Ok(header) = inspect(header.clone(), len, &limits, HashKey::new(1, 2)).accept(policy) else {
            continue;
        };
        let mut at = 0;
        for tensor in header.tensors_by_offset() {
            assert_eq!(tensor.data_offsets.start, at);
            at = tensor.data_offsets.end;
        }
        assert_eq!(header.data_start() + at, len);
    }
});

//! Any bytes as a tar archive, and as torch's: no member is outside the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_pickle::container::{tar, torch_tar};
use weigh_pickle::{Limits, Spans};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    let spans = Spans::whole(bytes.to_vec());
    let Ok(archive) = tar::read(&spans, &limits) else { return };
    assert!(archive.members.iter().all(|member| member.span.end <= spans.len()));
    if torch_tar::is_checkpoint(&archive) {
        let _read = torch_tar::read(&spans, &archive, &limits, |_, _| Some(4));
    }
});

//! Any bytes as an array of numpy's: its data is inside the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_pickle::Spans;
use weigh_pickle::container::npy;

fuzz_target!(|bytes: &[u8]| {
    let spans = Spans::whole(bytes.to_vec());
    if let Ok(array) = npy::read(&spans, 0..spans.len()) {
        assert!(array.data.end <= spans.len());
        let _bytes = array.header.data_bytes();
    }
});

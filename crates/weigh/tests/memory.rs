//! How much memory loads take. One test, so that nothing else in the process takes any.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use weigh::format::Dtype;
use weigh::format::encode::{Declaration, Layout, encode};
use weigh::inventory::select::Selection;
use weigh::io::Usage;
use weigh::io::policy::{Direct, ReadOptions};
use weigh::{Checkpoint, LoadOptions, Order};

const MIB: u64 = 1 << 20;

/// What a load may take beside its own memory.
const BESIDE: u64 = 64 * MIB;

/// Writes a file of tensors of so many MiB each, all zeros, most of which is a hole.
fn sparse(path: &Path, sizes: &[u64]) {
    let names: Vec<String> = (0..sizes.len()).map(|number| format!("t{number}")).collect();
    let shapes: Vec<[u64; 2]> = sizes.iter().map(|size| [*size, MIB / 2]).collect();
    let declare = |(name, shape): (&'_ String, &'_ [u64; 2])| (name.clone(), *shape);
    let declared: Vec<(String, [u64; 2])> = names.iter().zip(&shapes).map(declare).collect();
    let declarations: Vec<Declaration<'_>> = declared
        .iter()
        .map(|(name, shape)| Declaration { name, dtype: Dtype::BF16, shape })
        .collect();
    let encoded = encode(&declarations, None, &Layout::default()).unwrap();
    let mut file = File::create(path).unwrap();
    file.write_all(&encoded.bytes).unwrap();
    file.set_len(encoded.bytes.len() as u64 + encoded.data_len).unwrap();
}

/// Bytes that are resident, and begins to count the peak anew.
fn forget_peak() -> u64 {
    // Writing 5 resets the peak (proc(5)).
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    Usage::now().unwrap().resident
}

#[cfg(target_os = "linux")]
#[test]
fn a_load_takes_its_tensors_and_little_more_and_a_stream_its_budget() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    sparse(&path, &[24, 1, 1, 1, 1, 1, 96, 7, 3]);
    let payload = 135 * MIB;
    let checkpoint = Checkpoint::open(&path).unwrap();

    for direct in [Direct::Never, Direct::Always] {
        let before = forget_peak();
        let read = ReadOptions { direct: Some(direct), ..ReadOptions::default() };
        let plan = checkpoint.plan_selected(&Selection::all());
        let loaded = plan.load(&LoadOptions { read, ..LoadOptions::default() }).unwrap();
        let after = Usage::now().unwrap();
        assert!(after.peak - before <= payload + BESIDE, "{direct:?}: {after:?}, {before}");
        assert!(after.resident - before >= payload);

        // What is dropped is given back, though its neighbours stay.
        let kept: Vec<_> = loaded.into_iter().filter(|(name, _)| name != "t6").collect();
        let left = Usage::now().unwrap().resident;
        assert!(after.resident - left >= 95 * MIB, "{after:?}, {left}");
        assert!(kept.iter().all(|(_, array)| array.bytes().iter().all(|byte| *byte == 0)));
    }

    for budget in [8 * MIB, 32 * MIB, 110 * MIB] {
        let before = forget_peak();
        let mut bytes = 0;
        for item in checkpoint.stream(Order::Given, budget).unwrap() {
            let item = item.unwrap();
            bytes += item.array.bytes().len() as u64;
            assert!(item.array.bytes().len() as u64 <= budget);
            assert_eq!(item.is_whole(), item.array.bytes().len() as u64 == size_of(&item.shape));
        }
        assert_eq!(bytes, payload);
        let after = Usage::now().unwrap();
        assert!(after.peak - before <= budget + BESIDE, "{budget}: {after:?}, {before}");
    }
}

fn size_of(shape: &[u64]) -> u64 {
    shape.iter().product::<u64>() * 2
}

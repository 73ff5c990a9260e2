//! Reading a header with every check, beside the crate `safetensors`.
//!
//! Both are handed a copy of the header's bytes, made inside the timing: Weigh takes ownership of
//! its own. What is made of them is dropped outside.

use std::hint::black_box;

use anyhow::{Context, Result, ensure};
use safetensors::SafeTensors;
use safetensors::tensor::Metadata;
use weigh_format::{Header, Limits, Policy, header};

use crate::headers::{self, KEY, Order};
use crate::report::{Table, met};
use crate::timing::{self, ROUNDS};
use crate::{amount, memory};

/// How many tensors, how often faster Weigh is to be, and repeats a round.
///
/// The largest comes first: until it has seen large blocks, the system's allocator gives the memory
/// of small headers back after each, which times the kernel.
const SIZES: [(usize, f64, u32); 3] = [(500_000, 7.0, 1), (100_000, 8.0, 1), (1_000, 6.0, 100)];

/// Bytes a tensor that may be held beside the header.
const BYTES_A_TENSOR: f64 = 100.0;

pub(crate) fn run() -> Result<()> {
    println!(
        "\
Reading a header, all rules checked: medians (fastest) of {ROUNDS} runs in turn. Peer: the crate
safetensors 0.8.0, `SafeTensors::read_metadata`. The header's bytes are copied inside both timings.
Every name, dtype, shape and offset was compared first.
"
    );
    let mut times =
        Table::new(["tensors", "header", "weigh", "peer", "times as fast", "target", ""]);
    let mut memory =
        Table::new(["tensors", "weigh, bytes a tensor beside the header", "peer's", "target", ""]);
    for (count, target, repeats) in SIZES {
        let case = Case::new(count);
        case.verify()?;
        let [ours, peer] = timing::in_turn(repeats, || case.weigh(), || case.peer());
        let faster = peer.median().div_duration_f64(ours.median());
        let at_best = peer.least().div_duration_f64(ours.least());
        times.row([
            count.to_string(),
            amount::size(headers::count(case.header.json().len())),
            ours.shown(),
            peer.shown(),
            format!("{faster:.1} × ({at_best:.1} ×)"),
            format!("{target} ×"),
            met(faster >= target),
        ]);
        let [ours, peer] = case.memory();
        memory.row([
            count.to_string(),
            format!("{ours:.1}"),
            format!("{peer:.1}"),
            format!("{BYTES_A_TENSOR}"),
            met(ours <= BYTES_A_TENSOR),
        ]);
    }
    times.print();
    println!();
    memory.print();
    Ok(())
}

struct Case {
    count: usize,
    header: headers::Header,
    /// The whole file, whose length the peer checks: data of zeros that nobody reads.
    file: Vec<u8>,
}

impl Case {
    fn new(count: usize) -> Self {
        let mut tensors = headers::experts(count);
        Order::Lexical.apply(&mut tensors);
        let header = headers::header(&tensors);
        let mut file = vec![0; usize::try_from(header.file_len()).unwrap_or(usize::MAX)];
        file[..header.bytes.len()].copy_from_slice(&header.bytes);
        Self { count, header, file }
    }

    fn weigh(&self) -> Option<Header> {
        let bytes = self.header.json().to_vec();
        let limits = Limits::default();
        header::inspect(bytes, self.header.file_len(), &limits, KEY).accept(Policy::Strict).ok()
    }

    fn peer(&self) -> Option<(Vec<u8>, Metadata)> {
        let bytes = black_box(self.header.json().to_vec());
        let (_, metadata) = SafeTensors::read_metadata(&self.file).ok()?;
        Some((bytes, metadata))
    }

    /// Compares all that the two read.
    fn verify(&self) -> Result<()> {
        let ours = self.weigh().context("weigh refuses the header")?;
        let (_, peer) = self.peer().context("the peer refuses the header")?;
        ensure!(ours.len() == self.count, "weigh reads {} tensors", ours.len());
        ensure!(peer.tensors().len() == self.count, "the peer differs in count");
        for tensor in ours.tensors() {
            let name = tensor.name;
            let info = peer.info(name).with_context(|| format!("no `{name}`"))?;
            let shape = info.shape.iter().map(|&size| headers::count(size));
            let [begin, end] = <[usize; 2]>::from(info.data_offsets).map(headers::count);
            ensure!(
                info.dtype.to_string() == tensor.dtype.name()
                    && shape.eq(tensor.shape.iter().copied())
                    && (begin..end) == tensor.data_offsets,
                "`{name}` differs"
            );
        }
        Ok(())
    }

    /// Bytes a tensor that each holds at its worst, beside the copy of the header.
    fn memory(&self) -> [f64; 2] {
        let (_, ours) = memory::peak(|| self.weigh());
        let (_, peer) = memory::peak(|| self.peer());
        let header = headers::count(self.header.json().len());
        [ours, peer].map(|peak| amount::ratio(peak - header, headers::count(self.count)))
    }
}

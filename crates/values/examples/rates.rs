//! Prints how fast casts and decoding are, in GB/s of source bytes, on chunks that stay in cache.
//!
//! `rates [TARGET]...`: casts to these dtypes only, all of them if none is given; then decoding, and what looks at
//! values, whose rates are of one side. Each cast is shown
//! as such, counted, and saturating and counted. Beside each rate stand two ratios to that of
//! `copy_from_slice` in the same run: of the source bytes, and of all bytes, read and written. Each
//! is the best of many single calls. Without optimization the figures mean nothing.

use std::hint::black_box;
use std::time::{Duration, Instant};

use weigh_format::Dtype;
use weigh_values::cast::{Cast, Overflow};
use weigh_values::codes::Codes;
use weigh_values::compare::{Comparison, Tolerance};
use weigh_values::odd::Odd;
use weigh_values::statistics::Statistics;
use weigh_values::{Tally, decode};

/// Bytes of a source: whole units of every dtype nearest to 256 KiB.
const CHUNK: usize = 262_128;

const CALLS: usize = 100;

fn main() {
    let from = noise(CHUNK);
    let mut to = vec![0; CHUNK * 16];
    let mut copy = || best(|| black_box(&mut to[..CHUNK]).copy_from_slice(black_box(&from)));
    // The first calls find the processor slow.
    copy();
    let copy = copy();
    println!("{:<23} {:6.2} GB/s", "copy_from_slice", rate(CHUNK, copy));
    let print = |name: String, to_bytes: usize, time: Duration| {
        let of_source = rate(CHUNK, time) / rate(CHUNK, copy);
        let of_all = rate(CHUNK + to_bytes, time) / rate(CHUNK * 2, copy);
        let rate = rate(CHUNK, time);
        println!("{name:<23} {rate:6.2} GB/s  {of_source:5.2} of source  {of_all:5.2} of all");
    };

    let names: Vec<String> = std::env::args().skip(1).collect();
    let is_meant = |dtype: &Dtype| names.is_empty() || names.iter().any(|it| it == dtype.name());
    for target in Dtype::ALL.into_iter().filter(is_meant) {
        for source in Dtype::ALL {
            let cast = Cast::new(source, target, Overflow::Natural);
            let saturating = Cast::new(source, target, Overflow::Saturate);
            let unit = cast.unit();
            let from = &from[..CHUNK / unit.from_bytes * unit.from_bytes];
            let to = &mut to[..CHUNK / unit.from_bytes * unit.to_bytes];
            let time = best(|| {
                cast.convert(black_box(from), black_box(to)).expect("the lengths fit");
            });
            print(format!("{source} to {target}"), to.len(), time);
            for (cast, name) in [(cast, "  counted"), (saturating, "  saturating")] {
                let time = best(|| {
                    let mut tally = Tally::default();
                    cast.convert_counted(black_box(from), black_box(to), &mut tally)
                        .expect("the lengths fit");
                    black_box(tally);
                });
                print(name.into(), to.len(), time);
            }
        }
    }

    let mut numbers = vec![0.0_f32; CHUNK * 2];
    for dtype in Dtype::ALL {
        let count = decode::count(dtype, CHUNK).expect("whole units");
        let numbers = &mut numbers[..count];
        let time = best(|| {
            decode::to_f32(dtype, black_box(&from), black_box(numbers)).expect("the lengths fit");
        });
        print(format!("{dtype} to f32"), size_of_val(numbers), time);
    }
    looks(&print);
}

/// The rates of what looks at values: of codes all that are random, of wider dtypes numbers around 0.
fn looks(print: &impl Fn(String, usize, Duration)) {
    for dtype in Dtype::ALL {
        let from = numbers_of(dtype);
        let time = best(|| {
            let mut odd = Odd::new(dtype);
            odd.add(black_box(&from)).expect("whole units");
            black_box(odd);
        });
        print(format!("{dtype} odd"), 0, time);
        let time = best(|| {
            let mut statistics = Statistics::new(dtype);
            statistics.add(black_box(&from)).expect("whole units");
            black_box(statistics);
        });
        print(format!("{dtype} statistics"), 0, time);
        let mut codes = Codes::new(dtype);
        let time = best(|| codes.add(black_box(&from)).expect("whole units"));
        print(format!("{dtype} codes"), 0, time);
        for (name, other) in [("with itself", from.clone()), ("with others", shifted(&from))] {
            let time = best(|| {
                let mut comparison = Comparison::new(dtype, dtype, Tolerance::default());
                comparison.add(black_box(&from), black_box(&other)).expect("whole units");
                black_box(comparison);
            });
            print(format!("{dtype} {name}"), 0, time);
        }
    }
}

/// Elements of a dtype: numbers around 0 if it is one of floats, and if they fit.
fn numbers_of(dtype: Dtype) -> Vec<u8> {
    let noise = noise(CHUNK);
    let numbers: Vec<u8> = noise
        .chunks_exact(4)
        .map(|word| f32::from(i16::from_le_bytes([word[0], word[1]])) / 65_536.0)
        .flat_map(f32::to_le_bytes)
        .collect();
    let cast = Cast::new(Dtype::F32, dtype, Overflow::Natural);
    if dtype.bits() < 16 {
        return noise;
    }
    let mut to = vec![0; numbers.len() / cast.unit().from_bytes * cast.unit().to_bytes];
    cast.convert(&numbers, &mut to).expect("whole units");
    to.iter().copied().cycle().take(CHUNK).collect()
}

/// The same bytes with each element in another's place.
fn shifted(bytes: &[u8]) -> Vec<u8> {
    bytes[24..].iter().chain(&bytes[..24]).copied().collect()
}

/// The shortest of many runs.
fn best(mut run: impl FnMut()) -> Duration {
    let times = (0..CALLS).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

/// Gigabytes a second.
#[expect(clippy::cast_precision_loss, reason = "bytes of a chunk")]
fn rate(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64() / 1e9
}

/// Bytes without pattern (xorshift).
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(bytes).collect()
}

//! Takes runs out of the bytes that cover them.

use crate::Runs;

/// Copies runs from `source`, whose first byte is the first byte of run number `first`, to `to`, one after
/// another, until that is full.
pub(crate) fn gather(runs: &Runs, first: u64, source: &[u8], to: &mut [u8]) {
    let run = usize::try_from(runs.run()).unwrap_or(usize::MAX);
    let (per_stretch, stride) =
        runs.innermost().map_or((1, runs.run()), |it| (it.count, it.stride));
    let stride = usize::try_from(stride).unwrap_or(usize::MAX);
    let begin = runs.start(first);
    let (mut number, mut rest) = (first, to);
    // A stretch is what the innermost level repeats.
    while !rest.is_empty() {
        let left = per_stretch - number % per_stretch;
        let len = usize::try_from(left).unwrap_or(usize::MAX).saturating_mul(run).min(rest.len());
        let (stretch, after) = rest.split_at_mut(len);
        let from = usize::try_from(runs.start(number) - begin).unwrap_or(usize::MAX);
        copy_stretch(source.get(from..).unwrap_or_default(), stride, run, stretch);
        number += left;
        rest = after;
    }
}

fn copy_stretch(source: &[u8], stride: usize, run: usize, to: &mut [u8]) {
    match run {
        1 => copy_elements::<1>(source, stride, to),
        2 => copy_elements::<2>(source, stride, to),
        4 => copy_elements::<4>(source, stride, to),
        8 => copy_elements::<8>(source, stride, to),
        _ => {
            for (from, to) in source.chunks(stride).zip(to.chunks_exact_mut(run)) {
                if let Some(from) = from.get(..run) {
                    to.copy_from_slice(from);
                }
            }
        }
    }
}

/// As above, of a size that the compiler knows.
fn copy_elements<const N: usize>(source: &[u8], stride: usize, to: &mut [u8]) {
    let (elements, _) = to.as_chunks_mut::<N>();
    for (from, to) in source.chunks(stride).zip(elements) {
        if let Some(from) = from.first_chunk::<N>() {
            *to = *from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Repeat;

    #[test]
    fn runs_of_every_length_are_taken_from_any_number_on() {
        let source: Vec<u8> = (0..=255).cycle().take(4000).collect();
        for run in 1..20 {
            let levels = [(3, 1000), (4, 100), (5, 20)];
            let levels = levels.map(|(count, stride)| Repeat { count, stride });
            let runs = Runs::strided(7, run, &levels).unwrap();
            for first in 0..runs.count() {
                for end in first + 1..=runs.count() {
                    let want: Vec<u8> = (first..end)
                        .flat_map(|number| runs.start(number)..runs.start(number) + run)
                        .map(|at| source[usize::try_from(at).unwrap()])
                        .collect();
                    let mut got = vec![0; want.len()];
                    let from = usize::try_from(runs.start(first)).unwrap();
                    gather(&runs, first, &source[from..], &mut got);
                    assert!(got == want, "run {run}, {first}..{end}");
                }
            }
        }
    }
}

//! Casts against a table of what `ml_dtypes` and `numpy` make of some elements of every dtype.

use std::collections::BTreeSet;

use weigh_format::Dtype;

use crate::{cast, reference};

#[test]
fn every_cast_is_that_of_ml_dtypes_but_where_the_table_says_so() {
    let mut pairs = BTreeSet::new();
    let mut faults = Vec::new();
    for line in include_str!("../casts.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let mut dtype = || Dtype::from_name(words.next().unwrap().as_bytes()).unwrap();
        let (from, to) = (dtype(), dtype());
        for word in words {
            let (element, want) = word.split_once(':').unwrap();
            let want = want.split_once('=').map_or(want, |(_, meant)| meant);
            let bits = u64::from_str_radix(element, 16).unwrap();
            let got = cast(from, &[bits; 4], to)[0];
            let got = if reference::is_nan(to, got) { "nan".into() } else { format!("{got:x}") };
            if got != want {
                faults.push(format!("{from} {element} to {to}: {got}, not {want}"));
            }
        }
        pairs.insert((from, to));
    }
    assert!(faults.is_empty(), "{}\n{}", faults.len(), faults.join("\n"));
    assert_eq!(pairs.len(), 22 * 22);
}

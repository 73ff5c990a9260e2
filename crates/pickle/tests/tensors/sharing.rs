//! Names that share bytes.

use weigh_pickle::Limits;
use weigh_pickle::shared::Shared;
use weigh_pickle::state::{Options, State};
use weigh_pickle::tensor::TensorReader;

use super::graph;
use super::made::*;

/// The kept and the dropped names, those that overlap, and the bytes of storages, of every name, and of each once.
type Sharing = (Vec<(String, Vec<String>)>, Vec<Vec<String>>, [u64; 3]);

/// What the tensors of a dictionary share, by names: those kept with those dropped, and those that overlap.
fn shared(items: &[(&str, Piece)], tied: &[&str]) -> Sharing {
    let bytes = pickle(dict(items));
    let (graph, root) = graph(&bytes);
    let limits = Limits::default();
    let mut reader = TensorReader::new(&graph, &limits);
    let state = State::read(&mut reader, root, &Options::default(), &limits).unwrap();
    let shared = Shared::of(&state.tensors, &reader, |name| tied.contains(&name));
    let name = |number: &usize| state.tensors[*number].name.clone();
    let aliases = shared
        .aliases
        .iter()
        .map(|aliases| (name(&aliases.kept), aliases.dropped.iter().map(name).collect()))
        .collect();
    let overlaps = shared.overlaps.iter().map(|group| group.iter().map(name).collect()).collect();
    let cost = shared.cost;
    (aliases, overlaps, [cost.storages, cost.every_name, cost.once])
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn the_first_name_in_order_is_kept_unless_it_is_tied() {
    let head = || tensor("0", 6, 0, &[2, 3], &[3, 1]);
    let items = [("lm_head", head()), ("embed", head()), ("zero", pair("1")), ("again", head())];
    let (aliases, overlaps, cost) = shared(&items, &[]);
    assert_eq!(aliases, [("again".to_owned(), strings(&["lm_head", "embed"]))]);
    assert!(overlaps.is_empty());
    assert_eq!(cost, [32, 80, 32]);
    let (aliases, ..) = shared(&items, &["again", "embed"]);
    assert_eq!(aliases, [("lm_head".to_owned(), strings(&["embed", "again"]))]);
    let (aliases, ..) = shared(&items, &["again", "embed", "lm_head"]);
    assert_eq!(aliases[0].0, "again");
}

#[test]
fn only_the_same_elements_in_the_same_shape_are_one_tensor() {
    let whole = || tensor("0", 6, 0, &[2, 3], &[3, 1]);
    for (other, is_alias, overlaps) in [
        (tensor("0", 6, 0, &[2, 3], &[3, 1]), true, false),
        (parameter(whole()), true, false),
        (tensor("0", 6, 0, &[3, 2], &[2, 1]), false, true),
        (tensor("0", 6, 0, &[6], &[1]), false, true),
        (tensor("0", 6, 0, &[2, 3], &[1, 2]), false, true),
        (tensor("0", 6, 3, &[3], &[1]), false, true),
        (tensor("1", 6, 0, &[2, 3], &[3, 1]), false, false),
        (tensor("0", 6, 6, &[0], &[1]), false, false),
    ] {
        let (aliases, groups, _) = shared(&[("a", whole()), ("b", other.clone())], &[]);
        assert_eq!((aliases.len() == 1, groups.len() == 1), (is_alias, overlaps), "{other:?}");
    }
    // A dimension of one has any stride.
    let row = |stride| tensor("0", 3, 0, &[1, 3], &[stride, 1]);
    assert_eq!(shared(&[("a", row(3)), ("b", row(9))], &[]).0.len(), 1);
}

#[test]
fn views_that_follow_each_other_do_not_overlap() {
    let part = |offset, size| tensor("0", 9, offset, &[size], &[1]);
    let items = [("q", part(0, 3)), ("k", part(3, 3)), ("v", part(6, 3))];
    let (aliases, overlaps, cost) = shared(&items, &[]);
    assert_eq!((aliases.len(), overlaps.len(), cost), (0, 0, [36, 36, 36]));
    let items = [("x", part(5, 4)), ("q", part(0, 3)), ("k", part(2, 2)), ("v", part(4, 2))];
    let (_, overlaps, _) = shared(&items, &[]);
    assert_eq!(overlaps, [strings(&["x", "v"]), strings(&["q", "k"])]);
}

#[test]
fn expanded_tensors_have_a_limit() {
    let limits = Limits { expanded_bytes: 100, ..Limits::default() };
    for (size, want) in [(25, Ok(())), (26, Err("limit-expansion"))] {
        let bytes = pickle(dict(&[("a", tensor("0", 1, 0, &[size], &[0]))]));
        let (graph, root) = graph(&bytes);
        let mut reader = TensorReader::new(&graph, &limits);
        let state = State::read(&mut reader, root, &Options::default(), &limits).unwrap();
        let cost = Shared::of(&state.tensors, &reader, |_| false).cost;
        let checked = cost.check(cost.every_name, &limits).map_err(|error| error.code);
        assert_eq!(checked, want, "{size}");
    }
}

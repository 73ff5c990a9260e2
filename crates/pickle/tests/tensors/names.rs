//! From the root of a file to names.

use weigh_pickle::Limits;
use weigh_pickle::state::{Options, Source, Why};
use weigh_pickle::values::{to_json, values};

use super::made::*;
use super::{graph, names, state};

const ALL: Options<'_> = Options { key: None, all: true, modules: false, partial: false };
const MODULES: Options<'_> = Options { key: None, all: false, modules: true, partial: false };
const PARTIAL: Options<'_> = Options { key: None, all: false, modules: false, partial: true };

/// Names, or the code of why there are none.
type Names = Result<Vec<String>, &'static str>;

fn plain(piece: Piece) -> Names {
    named(piece, &Options::default())
}

fn named(piece: Piece, options: &Options<'_>) -> Names {
    let state = state(&pickle(piece), options).map_err(|error| error.code)?;
    Ok(names(&state).into_iter().map(str::to_owned).collect())
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with what may be an error")]
fn ok(names: &[&str]) -> Names {
    Ok(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn names_are_keys_and_places_with_dots_between() {
    for (piece, want) in [
        (dict(&[("a", pair("0")), ("b.c", pair("1"))]), ok(&["a", "b.c"])),
        (dict(&[("a", dict(&[("w", pair("0"))]))]), ok(&["a.w"])),
        (ordered(&[("z", pair("0")), ("a", pair("1"))]), ok(&["z", "a"])),
        (list(&[pair("0"), int(3), pair("1")]), ok(&["0", "2"])),
        (tuple(&[list(&[pair("0")])]), ok(&["0.0"])),
        (pairs(&[(int(7), pair("0")), (int(-1), pair("1"))]), ok(&["7", "-1"])),
        (pair("0"), ok(&["tensor"])),
        (dict(&[("a", dict(&[("", pair("0"))]))]), ok(&["a."])),
        (dict(&[("", dict(&[("a", pair("0"))]))]), ok(&[".a"])),
        (dict(&[("é", pair("0"))]), ok(&["é"])),
        (dict(&[]), ok(&[])),
        (int(1), ok(&[])),
    ] {
        assert_eq!(plain(piece.clone()), want, "{}", String::from_utf8_lossy(&piece));
    }
    let counter = reduce(global("collections", "Counter"), &[dict(&[("a", pair("0"))])]);
    assert_eq!(plain(counter), ok(&["a"]));
    let factory = global("builtins", "dict");
    let default = reduce(global("collections", "defaultdict"), &[factory]);
    let set = [default, text("a"), pair("0"), b"s".to_vec()].concat();
    assert_eq!(plain(set), ok(&["a"]));
    // As Python 2 had it.
    let items = list(&[list(&[text("b"), pair("0")]), list(&[text("a"), pair("1")])]);
    assert_eq!(plain(reduce(global("collections", "OrderedDict"), &[items])), ok(&["b", "a"]));
}

#[test]
fn dictionaries_are_what_python_makes_of_their_arguments() {
    let given = || dict(&[("a", pair("0"))]);
    let of_pairs = || list(&[tuple(&[text("a"), pair("0")])]);
    let new =
        |class: &Piece, args: &[Piece]| [class.clone(), tuple(args), b"\x81".to_vec()].concat();
    let keywords = |class: &Piece, args: &[Piece], keywords: Piece| {
        [class.clone(), tuple(args), keywords, b"\x92".to_vec()].concat()
    };
    let set = |of: Piece| [of, text("b"), pair("1"), b"s".to_vec()].concat();
    for (class, factory) in [
        (global("builtins", "dict"), None),
        (global("collections", "OrderedDict"), None),
        (global("collections", "Counter"), None),
        (global("collections", "defaultdict"), Some(none())),
    ] {
        let args = |given: Piece| factory.iter().cloned().chain([given]).collect::<Vec<_>>();
        let name = String::from_utf8_lossy(&class);
        assert_eq!(plain(reduce(class.clone(), &args(given()))), ok(&["a"]), "{name}");
        assert_eq!(plain(set(reduce(class.clone(), &args(given())))), ok(&["a", "b"]), "{name}");
        let counts = class == global("collections", "Counter");
        let want = if counts { Err("state-opaque") } else { ok(&["a"]) };
        assert_eq!(plain(reduce(class.clone(), &args(of_pairs()))), want, "{name}");
        // `__new__` takes no notice of them.
        assert_eq!(plain(new(&class, &args(given()))), ok(&[]), "{name}");
        assert_eq!(plain(set(new(&class, &args(given())))), ok(&["b"]), "{name}");
        assert_eq!(plain(set(keywords(&class, &args(given()), given()))), ok(&["b"]), "{name}");
        assert_eq!(plain(reduce(class.clone(), &args(text("a")))), ok(&[]), "{name}");
        // What is added to the argument later is not in it.
        let made = reduce(class.clone(), &args(put(dict(&[]), 0)));
        let later = [get(0), text("c"), pair("2"), b"s0".to_vec()].concat();
        assert_eq!(plain(set([made, later].concat())), ok(&["b"]), "{name}");
    }
}

#[test]
fn one_dictionary_may_be_in_any_number_of_places_if_no_tensor_is_in_it() {
    let numbers: Vec<(Piece, Piece)> = (0..100).map(|key| (int(key), none())).collect();
    let shared = [put(pairs(&numbers), 0), b"0".to_vec()].concat();
    let many: Vec<(Piece, Piece)> = (0..50_000).map(|key| (int(key), get(0))).collect();
    let root = pairs(&[(text("meta"), pairs(&many)), (text("w"), pair("0"))]);
    assert_eq!(plain([shared, root].concat()), ok(&["w"]));
}

#[test]
fn a_key_that_is_set_twice_has_the_last_value_in_the_first_place() {
    let bytes = pickle(dict(&[("a", int(1)), ("b", pair("0")), ("a", pair("1"))]));
    let state = state(&bytes, &Options::default()).unwrap();
    assert_eq!(names(&state), ["a", "b"]);
    assert_eq!(plain(dict(&[("a", pair("0")), ("a", int(1))])), ok(&[]));
    // In Python True is 1.
    assert_eq!(plain(pairs(&[(int(1), pair("0")), (truth(true), pair("1"))])), ok(&["1"]));
}

#[test]
fn what_makes_no_name_or_that_of_another_is_an_error() {
    for (piece, want) in [
        (dict(&[("a", dict(&[("b", pair("0"))])), ("a.b", pair("1"))]), "state-name-twice"),
        (pairs(&[(int(1), pair("0")), (text("1"), pair("1"))]), "state-name-twice"),
        (dict(&[("__metadata__", pair("0"))]), "state-name-reserved"),
        (pairs(&[(none(), pair("0"))]), "state-key"),
        (pairs(&[(tuple(&[]), pair("0"))]), "state-key"),
        (pairs(&[(float(1.0), pair("0"))]), "state-key"),
        (dict(&[("a", reduce(global("x", "Y"), &[pair("0")]))]), "state-opaque"),
        (dict(&[("a", reduce(global("builtins", "set"), &[list(&[pair("0")])]))]), "state-opaque"),
    ] {
        assert_eq!(plain(piece.clone()), Err(want));
        assert!(named(piece, &PARTIAL).is_ok() || want == "state-name-twice");
    }
    // Names inside others are no reserved names, and keys without tensors are nobody's names.
    assert_eq!(
        plain(dict(&[("a", dict(&[("__metadata__", pair("0"))]))])),
        ok(&["a.__metadata__"])
    );
    assert_eq!(plain(pairs(&[(none(), int(1)), (text("a"), pair("0"))])), ok(&["a"]));
    let error = state(
        &pickle(dict(&[("a", list(&[pairs(&[(int(3), tensor("0", 1, 0, &[2], &[1]))])]))])),
        &Options::default(),
    );
    let message =
        r#"["a"][0][3]: the last element is number 1, of a storage of 4 bytes of float32"#;
    assert_eq!(error.unwrap_err().message, message);
}

#[test]
fn the_state_dict_is_the_only_one_that_has_tensors() {
    let weights = || ordered(&[("w", pair("0"))]);
    let training = || dict(&[("state", dict(&[("0", dict(&[("exp_avg", pair("1"))]))]))]);
    let checkpoint =
        |key: &str| dict(&[(key, weights()), ("optimizer", training()), ("epoch", int(3))]);
    for key in
        ["state_dict", "model_state_dict", "model", "module", "net", "ema", "weights", "params"]
    {
        assert_eq!(plain(checkpoint(key)), ok(&["w"]), "{key}");
    }
    let bytes = pickle(checkpoint("model"));
    let found = state(&bytes, &Options::default()).unwrap();
    assert_eq!((found.source, found.left_out_count), (Source::Found("model"), 2));
    let left: Vec<_> = found.left_out.iter().map(|left| (left.name.as_str(), &left.why)).collect();
    let no_tensor = Why::NoTensor("an integer");
    assert_eq!(left, [("optimizer", &Why::Optimizer), ("epoch", &no_tensor)]);

    // Not found: names begin at the root, without what is for training.
    assert_eq!(plain(checkpoint("my_model")), ok(&["my_model.w"]));
    let all = ok(&["my_model.w", "optimizer.state.0.exp_avg"]);
    assert_eq!(named(checkpoint("my_model"), &ALL), all);
    let all = ok(&["model.w", "optimizer.state.0.exp_avg"]);
    assert_eq!(named(checkpoint("model"), &ALL), all);

    // A key without tensors is no candidate; two are none to choose from.
    let empty = dict(&[("model", dict(&[("size", int(7))])), ("net", weights())]);
    assert_eq!(plain(empty), ok(&["w"]));
    let two = dict(&[("model", weights()), ("ema", weights())]);
    let both = state(&pickle(two.clone()), &Options::default()).unwrap();
    assert_eq!(
        (names(&both), both.candidates.clone()),
        (vec!["model.w", "ema.w"], vec!["model", "ema"])
    );
    let asked = |key| Options { key: Some(key), ..Options::default() };
    assert_eq!(named(two.clone(), &asked("ema")), ok(&["w"]));
    assert_eq!(named(two.clone(), &asked("ema.w")), ok(&["tensor"]));
    assert_eq!(named(two.clone(), &asked("ema.x")), Err("state-key-missing"));
    for key in ["emax", "ema.", ".ema", "ema..w"] {
        assert_eq!(named(two.clone(), &asked(key)), Err("state-key-missing"), "{key}");
    }
    let dotted = dict(&[("a.b", dict(&[("c", weights())])), ("a", dict(&[("b", weights())]))]);
    assert_eq!(named(dotted, &asked("a.b.c")), ok(&["w"]));
    // A tensor called `model` is a tensor.
    assert_eq!(plain(dict(&[("model", pair("0")), ("x", pair("1"))])), ok(&["model", "x"]));
}

fn module(attributes: &[(&str, Piece)]) -> Piece {
    build(new_object(global("my.code", "Net")), dict(attributes))
}

#[test]
fn a_module_has_the_names_of_its_state_dict_if_modules_are_looked_into() {
    let linear = module(&[
        ("training", truth(true)),
        ("_parameters", ordered(&[("weight", parameter(pair("0"))), ("bias", none())])),
        ("_buffers", ordered(&[])),
        ("_modules", ordered(&[])),
    ]);
    let hidden = reduce(global("builtins", "set"), &[list(&[text("cache")])]);
    let net = module(&[
        ("_parameters", ordered(&[("scale", parameter(pair("1")))])),
        ("_buffers", ordered(&[("mean", pair("2")), ("cache", pair("3"))])),
        ("_non_persistent_buffers_set", hidden),
        ("_modules", ordered(&[("layer", linear.clone()), ("none", none())])),
        ("mask", pair("4")),
    ]);
    assert_eq!(plain(net.clone()), Err("state-opaque"));
    let got = state(&pickle(net.clone()), &MODULES).unwrap();
    assert_eq!(names(&got), ["scale", "mean", "layer.weight"]);
    let left: Vec<_> = got.left_out.iter().map(|left| (left.name.as_str(), &left.why)).collect();
    assert_eq!(left, [("cache", &Why::NotPersistent), ("mask", &Why::Attribute)]);
    let wrapped = dict(&[("epoch", int(1)), ("model", net)]);
    assert_eq!(named(wrapped, &MODULES), ok(&["scale", "mean", "layer.weight"]));
}

#[test]
fn values_are_json() {
    let piece = dict(&[
        ("lr", float(0.5)),
        ("nan", float(f64::NAN)),
        ("betas", tuple(&[float(0.9), int(1)])),
        ("empty", list(&[])),
        ("nested", dict(&[("a \"b\"\n", none()), ("t", truth(true))])),
        ("object", reduce(global("x", "Y"), &[])),
        ("raw", bytes(b"\xff")),
    ]);
    let json = |piece: Piece| {
        let bytes = pickle(piece);
        let (graph, root) = graph(&bytes);
        to_json(&values(&graph, root, &Limits::default()).unwrap())
    };
    let want = r#"{"lr":0.5,"nan":{"$float":"NaN"},"betas":[0.9,1],"empty":[],"nested":{"a \"b\"\n":null,"t":true},"object":{"$other":"x.Y"},"raw":{"$bytes":1}}"#;
    assert_eq!(json(piece), want);
    let keys = pairs(&[(int(1), int(2)), (tuple(&[int(3)]), int(4)), (none(), dict(&[]))]);
    assert_eq!(json(keys), r#"{"1":2,"a tuple":4,"null":{}}"#);
    assert_eq!(json(ordered(&[("a", int(1))])), r#"{"a":1}"#);
    for (long, want) in [
        (&[0, 0, 0, 0, 0, 0, 0, 0, 1][..], "0x10000000000000000"),
        (&[0, 0, 0, 0, 0, 0, 0, 0, 0xff], "-0x10000000000000000"),
        (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe], "-0x10000000000000001"),
    ] {
        let piece = [&[0x8a, 9][..], long].concat();
        assert_eq!(json(piece), format!(r#"{{"$int":"{want}"}}"#));
    }
    assert_eq!(json(text("top")), r#""top""#);
}

//! One tensor at a time: what its descriptor says, and which arguments are refused.

use weigh_pickle::dtype::TorchDtype;
use weigh_pickle::refusal::Refusal;
use weigh_pickle::tensor::{Form, Kind, Reading, Scales, Scheme, Tensor, TensorReader};
use weigh_pickle::transform::Transforms;
use weigh_pickle::{Error, Limits};

use super::made::*;
use super::{graph, one};

fn code(result: Result<Tensor, Error>) -> Result<(), &'static str> {
    result.map(|_| ()).map_err(|error| error.code)
}

fn refusal(piece: Piece) -> &'static str {
    one(&pickle(piece)).unwrap().plain().unwrap_err().code()
}

#[test]
fn the_last_element_is_inside_the_storage() {
    let out = Err("tensor-bounds");
    let large = i64::MAX;
    for (numel, offset, size, stride, want) in [
        (6, 0, &[2, 3][..], &[3, 1][..], Ok(())),
        (5, 0, &[2, 3], &[3, 1], out),
        (6, 1, &[2, 3], &[3, 1], out),
        (7, 1, &[2, 3], &[3, 1], Ok(())),
        (1, 0, &[], &[], Ok(())),
        (1, 1, &[], &[], out),
        (0, 0, &[], &[], out),
        // Repeated elements need no room.
        (1, 0, &[large, 1], &[0, 1], Err("tensor-shape")),
        (1, 0, &[1 << 40, 1], &[0, 1], Ok(())),
        // No elements, no bounds.
        (0, large, &[0], &[large], Ok(())),
        (0, 5, &[3, 0, 9], &[9, 9, 9], Ok(())),
        (4, 0, &[2], &[large], out),
        (4, large, &[2], &[large], out),
        (4, large, &[1], &[large], out),
        (4, 0, &[-1], &[1], Err("tensor-shape")),
        (4, 0, &[1], &[-1], Err("tensor-shape")),
        (4, -1, &[1], &[1], Err("tensor-args")),
        (4, 0, &[1, 1], &[1], Err("tensor-shape")),
        (large, 0, &[1], &[1], Err("storage-size")),
        (-1, 0, &[1], &[1], Err("storage-id")),
        (1, 0, &[1; 64], &[1; 64], Ok(())),
        (1, 0, &[1; 65], &[1; 65], Err("tensor-shape")),
        (1, 0, &[large, large, large], &[0, 0, 0], Err("tensor-shape")),
    ] {
        let bytes = pickle(tensor("0", numel, offset, size, stride));
        assert_eq!(code(one(&bytes)), want, "{numel} {offset} {size:?} {stride:?}");
    }
}

#[test]
fn an_untyped_storage_counts_bytes_and_the_dtype_is_beside_it() {
    let v3 = |numel, dtype: &str, size| {
        one(&pickle(reduce(
            utils("_rebuild_tensor_v3"),
            &[
                storage("UntypedStorage", "0", numel),
                int(1),
                ints(&[size]),
                ints(&[1]),
                truth(true),
                hooks(),
                global("torch", dtype),
            ],
        )))
    };
    let tensor = v3(16, "uint16", 7).unwrap();
    let view = &tensor.dense().unwrap().view;
    assert_eq!((view.first, view.element_bytes, tensor.requires_grad), (2, 2, true));
    assert_eq!(v3(16, "uint16", 8).unwrap_err().code, "tensor-bounds");
    assert_eq!(v3(16, "uint8", 15).unwrap().dtype, TorchDtype::UInt8);

    let packed = v3(4, "float4_e2m1fn_x2", 3).unwrap();
    let plain = packed.plain().unwrap();
    assert_eq!((plain.dtype.name(), plain.shape.as_slice()), ("F4", &[6][..]));
    for (dtype, want) in [("bits8", "bits"), ("complex32", "complex"), ("int4", "bits")] {
        assert_eq!(v3(64, dtype, 3).unwrap().plain().unwrap_err().code(), want, "{dtype}");
    }
    assert_eq!(
        code(one(&pickle(tensor_of(storage("UntypedStorage", "0", 4), 0, &[1], &[1])))),
        Err("tensor-args")
    );
}

#[test]
fn metadata_asks_for_conjugates_and_negation() {
    let with = |class: &str, flags: &[(&str, Piece)]| {
        one(&pickle(reduce(
            utils("_rebuild_tensor_v2"),
            &[
                storage(class, "0", 2),
                int(0),
                ints(&[2]),
                ints(&[1]),
                truth(false),
                hooks(),
                dict(flags),
            ],
        )))
    };
    let transforms = |tensor: Tensor| tensor.dense().unwrap().transforms;
    let both = with("ComplexFloatStorage", &[("conj", truth(true)), ("neg", truth(true))]);
    let want = Transforms { conjugate: true, negate: true, swap: false };
    assert_eq!(transforms(both.unwrap()), want);
    let not = with("FloatStorage", &[("conj", truth(false)), ("other", truth(false))]);
    assert!(transforms(not.unwrap()).is_none());
    for flags in [("conj", truth(true)), ("other", truth(true)), ("neg", int(1))] {
        assert_eq!(code(with("FloatStorage", &[flags])), Err("tensor-args"));
    }
    let bool = with("BoolStorage", &[("neg", truth(true))]).unwrap();
    assert_eq!(bool.plain(), Err(Refusal::Negated(TorchDtype::Bool)));
}

#[test]
fn what_is_around_a_tensor_is_seen_through() {
    let plain = || pair("0");
    let state = || dict(&[("tag", int(1))]);
    let with_state =
        reduce(utils("_rebuild_parameter_with_state"), &[plain(), truth(false), hooks(), state()]);
    let from_type = |class: Piece| {
        let args = tuple(&[
            storage("FloatStorage", "0", 2),
            int(0),
            ints(&[2]),
            ints(&[1]),
            truth(false),
            hooks(),
        ]);
        reduce(
            global("torch._tensor", "_rebuild_from_type_v2"),
            &[utils("_rebuild_tensor_v2"), class, args, dict(&[])],
        )
    };
    for (piece, form, requires_grad) in [
        (plain(), Form::Tensor, false),
        (parameter(plain()), Form::Parameter, true),
        (with_state, Form::Parameter, false),
        (from_type(global("torch.nn.parameter", "Buffer")), Form::Buffer, false),
        (from_type(global("torch", "Tensor")), Form::Tensor, false),
        (from_type(global("a.b", "C")), Form::Subclass("a.b.C".into()), false),
        (parameter(parameter(plain())), Form::Parameter, true),
        (reduce(global("torch.nn.parameter", "Parameter"), &[plain()]), Form::Parameter, true),
    ] {
        let tensor = one(&pickle(piece)).unwrap();
        assert_eq!((tensor.form.clone(), tensor.requires_grad), (form, requires_grad));
        assert_eq!(tensor.plain().unwrap().shape, [2]);
    }
    let deep = (0..20).fold(plain(), |data, _| parameter(data));
    assert_eq!(code(one(&pickle(deep))), Err("tensor-args"));
}

#[test]
fn tensors_of_old_releases_are_classes_with_a_state() {
    let state =
        |class: &str| tuple(&[storage(class, "0", 6), int(0), ints(&[2, 3]), ints(&[3, 1])]);
    let tensor = |class| build(new_object(global("torch", "FloatTensor")), state(class));
    assert_eq!(one(&pickle(tensor("FloatStorage"))).unwrap().shape, [2, 3]);
    assert_eq!(code(one(&pickle(tensor("LongStorage")))), Err("tensor-args"));
    let bare = new_object(global("torch", "FloatTensor"));
    assert_eq!(code(one(&pickle(bare))), Err("tensor-args"));

    let part = |offset, numel| {
        let view = tuple(&[text("1"), int(offset), int(numel)]);
        let id = tuple(&[
            text("storage"),
            global("torch", "FloatStorage"),
            text("0"),
            text("cpu"),
            int(6),
            view,
        ]);
        one(&pickle(tensor_of(persistent(id), 1, &[2], &[1])))
    };
    assert_eq!(part(2, 3).unwrap().dense().unwrap().view.first, 12);
    assert_eq!(code(part(2, 2)), Err("tensor-bounds"));
    assert_eq!(code(part(4, 3)), Err("tensor-bounds"));
}

#[test]
fn a_tensor_that_gets_a_state_after_it_was_made_is_refused() {
    let state = tuple(&[storage("FloatStorage", "1", 6), int(0), ints(&[6]), ints(&[1])]);
    for made in [tensor("0", 6, 0, &[2, 3], &[3, 1]), parameter(tensor("0", 6, 0, &[6], &[1]))] {
        assert!(one(&pickle(made.clone())).is_ok());
        assert_eq!(code(one(&pickle(build(made, state.clone())))), Err("tensor-args"));
    }
}

#[test]
fn tensors_without_elements_of_their_own_are_refused_by_name() {
    let indices = || tensor_of(storage("LongStorage", "1", 2), 0, &[1, 2], &[2, 1]);
    let layout = |name: &str| reduce(global("torch.serialization", "_get_layout"), &[text(name)]);
    let sparse =
        |layout, data: &[Piece]| reduce(utils("_rebuild_sparse_tensor"), &[layout, tuple(data)]);
    let coo = sparse(layout("torch.sparse_coo"), &[indices(), pair("0"), ints(&[9]), truth(true)]);
    let made = one(&pickle(coo.clone())).unwrap();
    let Kind::Sparse(parts) = &made.kind else { panic!("{made:?}") };
    assert_eq!(
        (parts.layout, parts.coalesced, made.shape.as_slice()),
        ("sparse_coo", Some(true), &[9][..])
    );
    assert_eq!(refusal(coo), "sparse");
    let csr = sparse(layout("torch.sparse_csr"), &[indices(), indices(), pair("0"), ints(&[2, 9])]);
    assert_eq!(refusal(csr), "sparse");
    let strided = sparse(layout("torch.strided"), &[indices(), pair("0"), ints(&[9])]);
    assert_eq!(code(one(&pickle(strided))), Err("tensor-args"));
    // Parts have no parts.
    let inner = sparse(layout("torch.sparse_coo"), &[indices(), pair("0"), ints(&[9])]);
    let outer = sparse(layout("torch.sparse_coo"), &[indices(), inner, ints(&[9])]);
    assert_eq!(code(one(&pickle(outer))), Err("tensor-args"));

    let nested =
        reduce(utils("_rebuild_nested_tensor"), &[pair("0"), indices(), indices(), indices()]);
    assert_eq!(refusal(nested), "nested");
    let meta = reduce(
        utils("_rebuild_meta_tensor_no_storage"),
        &[global("torch", "float32"), ints(&[3]), ints(&[1]), truth(false)],
    );
    assert_eq!(refusal(meta), "meta");
    let wrapper = reduce(
        utils("_rebuild_wrapper_subclass"),
        &[
            global("torchao", "Int8"),
            global("torch", "float32"),
            ints(&[3]),
            ints(&[1]),
            int(0),
            global("torch", "float32"),
            text("cpu"),
            truth(false),
        ],
    );
    assert_eq!(refusal(wrapper), "wrapper-subclass");
    let cast = |dtype: &str| {
        reduce(
            utils("_rebuild_device_tensor_from_cpu_tensor"),
            &[pair("0"), global("torch", dtype), text("xla:0"), truth(false)],
        )
    };
    assert_eq!(refusal(cast("bfloat16")), "cast");
    assert!(one(&pickle(cast("float32"))).unwrap().plain().is_ok());
}

#[test]
fn quantized_tensors_have_one_scale_for_each_place() {
    let quantized = |class: &str, size: &[i64], stride: &[i64], scheme: &[Piece]| {
        one(&pickle(reduce(
            utils("_rebuild_qtensor"),
            &[
                storage(class, "0", 6),
                int(0),
                ints(size),
                ints(stride),
                tuple(scheme),
                truth(false),
                hooks(),
            ],
        )))
    };
    let scheme = |name: &str| global("torch", name);
    let whole = [scheme("per_tensor_affine"), float(0.5), int(3)];
    let tensor = quantized("QInt8Storage", &[2, 3], &[3, 1], &whole).unwrap();
    let Kind::Quantized(parts) = &tensor.kind else { panic!("{tensor:?}") };
    assert_eq!(parts.scheme, Scheme::PerTensor { scale: 0.5, zero_point: 3 });
    assert_eq!(tensor.plain(), Err(Refusal::Quantized(TorchDtype::QInt8)));

    let each = |axis, scales: &[Piece]| {
        let scheme =
            [scheme("per_channel_affine"), list(scales), list(&[int(0), int(1)]), int(axis)];
        quantized("QInt8Storage", &[2, 3], &[3, 1], &scheme)
    };
    let tensor = each(0, &[float(0.5), float(2.0)]).unwrap();
    let Kind::Quantized(parts) = tensor.kind else { panic!() };
    let Scheme::PerChannel { scales, axis: 0, .. } = parts.scheme else { panic!() };
    assert_eq!(scales, Scales::Numbers(vec![0.5, 2.0]));
    assert_eq!(code(each(0, &[float(0.5)])), Err("tensor-args"));
    assert_eq!(code(each(1, &[float(0.5), float(2.0)])), Err("tensor-args"));
    assert_eq!(code(each(2, &[float(0.5), float(2.0)])), Err("tensor-args"));

    // Four elements in each byte.
    let packed = quantized("QUInt2x4Storage", &[3, 8], &[8, 1], &whole).unwrap();
    assert_eq!((packed.shape.as_slice(), packed.byte_len()), (&[3, 8][..], 6));
    let out = quantized("QUInt2x4Storage", &[5, 5], &[5, 1], &whole);
    assert_eq!(code(out), Err("tensor-bounds"));
    let turned = quantized("QUInt2x4Storage", &[2, 3], &[1, 2], &whole);
    assert_eq!(code(turned), Err("tensor-shape"));
    assert_eq!(code(quantized("FloatStorage", &[2], &[1], &whole)), Err("tensor-args"));
}

#[test]
fn a_storage_is_always_of_the_same_elements() {
    let both = |first: Piece, second: Piece| {
        let bytes = pickle(tuple(&[first, second]));
        let (graph, root) = graph(&bytes);
        let mut reader = TensorReader::new(&graph, &Limits::default());
        let mut last = Ok(Reading::Other(Refusal::Objects));
        for item in graph.sequence(root).unwrap() {
            last = reader.read(*item);
        }
        let uses = reader.storages().list()[0].uses;
        last.map(|_| uses).map_err(|error| error.code)
    };
    let of = |class, numel| tensor_of(storage(class, "0", numel), 0, &[1], &[1]);
    assert_eq!(both(of("FloatStorage", 2), of("FloatStorage", 2)), Ok(2));
    for (class, numel) in [("IntStorage", 2), ("HalfStorage", 4), ("FloatStorage", 3)] {
        assert_eq!(both(of("FloatStorage", 2), of(class, numel)), Err("storage-conflict"));
    }
}

#[test]
fn a_persistent_id_is_one_that_torch_writes() {
    let class = || global("torch", "FloatStorage");
    let id = |items: &[Piece]| persistent(tuple(items));
    for storage in [
        none(),
        id(&[]),
        id(&[text("storage")]),
        id(&[text("store"), class(), text("0"), text("cpu"), int(1)]),
        id(&[text("storage"), class(), int(0), text("cpu"), int(1)]),
        id(&[text("storage"), class(), text("0"), int(0), int(1)]),
        id(&[text("storage"), class(), text("0"), text("cpu"), float(1.0)]),
        id(&[text("storage"), global("os", "getpid"), text("0"), text("cpu"), int(1)]),
        id(&[text("storage"), class(), text("0"), text("cpu"), int(1), text("view")]),
        id(&[text("module"), class(), text("source"), text("source")]),
        persistent(list(&[])),
        persistent(int(7)),
        global("torch", "FloatStorage"),
    ] {
        let bytes = pickle(tensor_of(storage.clone(), 0, &[1], &[1]));
        assert_eq!(code(one(&bytes)), Err("storage-id"), "{storage:?}");
    }
    let nested = reduce(global("torch.storage", "_load_from_bytes"), &[bytes(b"")]);
    let nested = pickle(tensor_of(nested, 0, &[1], &[1]));
    assert_eq!(code(one(&nested)), Err("nested-file"));
}

#[test]
fn arguments_of_another_kind_are_refused_by_place() {
    let args = || {
        vec![storage("FloatStorage", "0", 2), int(0), ints(&[2]), ints(&[1]), truth(false), hooks()]
    };
    for (place, wrong) in
        [(1, text("0")), (1, truth(true)), (2, int(2)), (3, none()), (4, none()), (4, int(2))]
    {
        let mut args = args();
        args[place] = wrong;
        let bytes = pickle(reduce(utils("_rebuild_tensor_v2"), &args));
        let error = one(&bytes).unwrap_err();
        let named = format!("argument {place} of _rebuild_tensor_v2");
        assert!(error.code == "tensor-args" && error.message.starts_with(&named), "{error}");
    }
    let size = reduce(global("torch", "Size"), &[list(&[int(2)])]);
    let mut with_size = args();
    with_size[2] = size;
    assert!(one(&pickle(reduce(utils("_rebuild_tensor_v2"), &with_size))).is_ok());
}

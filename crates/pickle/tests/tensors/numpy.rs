//! Arrays of numpy, whose bytes are in the pickle.

use weigh_pickle::Limits;
use weigh_pickle::dtype::TorchDtype;
use weigh_pickle::storage::Origin;
use weigh_pickle::storage::inline_bytes;
use weigh_pickle::tensor::{Kind, Reading, TensorReader};
use weigh_pickle::transform::apply;

use super::made::*;
use super::{gathered, graph};

fn dtype(name: &str, order: &str) -> Piece {
    let made = reduce(global("numpy", "dtype"), &[text(name), truth(false), truth(true)]);
    let state = tuple(&[int(3), text(order), none(), none(), none(), int(-1), int(-1), int(0)]);
    build(made, state)
}

fn array(shape: &[i64], dtype: Piece, is_fortran: bool, data: Piece) -> Piece {
    let made = reduce(
        global("numpy._core.multiarray", "_reconstruct"),
        &[global("numpy", "ndarray"), ints(&[0]), bytes(b"b")],
    );
    build(made, tuple(&[int(1), ints(shape), dtype, truth(is_fortran), data]))
}

/// The dtype, the shape and the bytes in C order, or the code of what is wrong.
fn read(piece: Piece) -> Result<(TorchDtype, Vec<u64>, Vec<u8>), &'static str> {
    let bytes = pickle(piece);
    let (graph, root) = graph(&bytes);
    let mut reader = TensorReader::new(&graph, &Limits::default());
    let id = match reader.read(root).map_err(|error| error.code)? {
        Reading::Tensor(id) => id,
        Reading::Other(refusal) => return Err(refusal.code()),
    };
    let tensor = reader.get(id).unwrap();
    let Kind::Array(dense) = &tensor.kind else { panic!("{tensor:?}") };
    let storage = reader.storages().get(dense.view.storage).unwrap();
    let Origin::Pickle(node) = storage.origin else { panic!("{storage:?}") };
    let data = inline_bytes(&graph, node).unwrap();
    assert_eq!(storage.bytes, data.len() as u64);
    let mut bytes = gathered(&dense.view, &data);
    apply(&mut bytes, tensor.dtype, dense.transforms);
    Ok((tensor.dtype, tensor.shape.clone(), bytes))
}

#[test]
fn elements_come_in_c_order_and_the_lowest_byte_first() {
    let data: Vec<u8> = (0..12).collect();
    let swapped = vec![1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10];
    let turned = vec![0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11];
    let of = |dtype: TorchDtype, bytes: &[u8]| Ok((dtype, vec![2, 3], bytes.to_vec()));
    let int16 = TorchDtype::Int16;
    for (order, is_fortran, piece, want) in [
        ("<", false, bytes(&data), &data),
        ("<", false, encoded(&data), &data),
        ("<", true, bytes(&data), &turned),
        (">", false, bytes(&data), &swapped),
    ] {
        let got = read(array(&[2, 3], dtype("i2", order), is_fortran, piece));
        assert_eq!(got, of(int16, want), "{order} {is_fortran}");
    }
    // The state says which comes first, whatever the name does.
    for (name, order, want) in
        [(">i2", "<", &data), ("<i2", ">", &swapped), (">i2", "=", &data), (">i2", "|", &data)]
    {
        let got = read(array(&[2, 3], dtype(name, order), false, bytes(&data)));
        assert_eq!(got, of(int16, want), "{name} {order}");
    }
    let stateless = reduce(global("numpy", "dtype"), &[text(">i2"), truth(false), truth(true)]);
    assert_eq!(read(array(&[2, 3], stateless, false, bytes(&data))), of(int16, &swapped));
    let buffer = |order: &str, more: &[Piece]| {
        let mut args = vec![bytes(&data), dtype("i2", "<"), ints(&[2, 3]), text(order)];
        args.extend_from_slice(more);
        read(reduce(global("numpy._core.numeric", "_frombuffer"), &args))
    };
    assert_eq!(buffer("C", &[]), of(int16, &data));
    assert_eq!(buffer("F", &[]), of(int16, &turned));
    let moved = vec![0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11];
    assert_eq!(buffer("K", &[ints(&[1, 0])]), Ok((int16, vec![3, 2], moved)));
    for order in [&[1, 1][..], &[0], &[0, 1, 2], &[0, 2]] {
        assert_eq!(buffer("K", &[ints(order)]), Err("tensor-args"), "{order:?}");
    }
}

#[test]
fn bytes_of_protocol_2_are_text_in_latin_1() {
    let data: Vec<u8> = (0..=255).collect();
    let got = read(array(&[256], dtype("u1", "|"), false, encoded(&data)));
    assert_eq!(got, Ok((TorchDtype::UInt8, vec![256], data)));
    let empty = reduce(global("builtins", "bytes"), &[]);
    let got = read(array(&[0, 4], dtype("f8", "<"), false, empty));
    assert_eq!(got, Ok((TorchDtype::Float64, vec![0, 4], vec![])));
    let wide = reduce(global("_codecs", "encode"), &[text("\u{100}"), text("latin1")]);
    assert_eq!(read(array(&[1], dtype("u1", "|"), false, wide)), Err("storage-id"));
    let other = reduce(global("_codecs", "encode"), &[text("a"), text("utf-8")]);
    assert_eq!(read(array(&[1], dtype("u1", "|"), false, other)), Err("storage-id"));
}

#[test]
fn an_array_has_exactly_its_bytes() {
    for (shape, len, want) in [
        (&[2, 3][..], 24, Ok(())),
        (&[2, 3], 23, Err("tensor-bounds")),
        (&[2, 3], 25, Err("tensor-bounds")),
        (&[], 4, Ok(())),
        (&[0], 1, Err("tensor-bounds")),
        (&[-1], 4, Err("tensor-shape")),
    ] {
        let got = read(array(shape, dtype("f4", "<"), false, bytes(&vec![0; len])));
        assert_eq!(got.map(|_| ()), want, "{shape:?} {len}");
    }
}

#[test]
fn dtypes_that_torch_has_not_are_refused_by_name() {
    for (name, want) in [
        ("O8", "numpy-objects"),
        ("U5", "numpy-dtype"),
        ("S5", "numpy-dtype"),
        ("M8", "numpy-dtype"),
        ("f16", "numpy-dtype"),
        ("V8", "numpy-dtype"),
    ] {
        let data = if name == "O8" { list(&[none()]) } else { bytes(&[0; 8]) };
        assert_eq!(read(array(&[1], dtype(name, "|"), false, data)), Err(want), "{name}");
    }
    assert_eq!(read(array(&[1], text("f4"), false, bytes(&[0; 4]))), Err("tensor-args"));
}

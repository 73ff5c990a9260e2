//! Pickles made by hand: pieces of opcodes that leave one value on the stack each.

/// Opcodes that leave one value.
pub(crate) type Piece = Vec<u8>;

/// A whole pickle of protocol 2.
pub(crate) fn pickle(value: Piece) -> Vec<u8> {
    [b"\x80\x02".to_vec(), value, b".".to_vec()].concat()
}

pub(crate) fn none() -> Piece {
    b"N".to_vec()
}

pub(crate) fn truth(value: bool) -> Piece {
    if value { b"\x88".to_vec() } else { b"\x89".to_vec() }
}

pub(crate) fn text(text: &str) -> Piece {
    let len = u32::try_from(text.len()).unwrap().to_le_bytes();
    [b"X", &len[..], text.as_bytes()].concat()
}

/// Bytes, as protocol 3 has them.
pub(crate) fn bytes(bytes: &[u8]) -> Piece {
    let len = u32::try_from(bytes.len()).unwrap().to_le_bytes();
    [b"B", &len[..], bytes].concat()
}

/// Bytes, as protocol 2 has them.
pub(crate) fn encoded(bytes: &[u8]) -> Piece {
    let latin: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    reduce(global("_codecs", "encode"), &[text(&latin), text("latin1")])
}

pub(crate) fn int(number: i64) -> Piece {
    [b"\x8a\x08", &number.to_le_bytes()[..]].concat()
}

pub(crate) fn float(number: f64) -> Piece {
    [b"G", &number.to_be_bytes()[..]].concat()
}

pub(crate) fn tuple(items: &[Piece]) -> Piece {
    [b"(".to_vec(), items.concat(), b"t".to_vec()].concat()
}

pub(crate) fn list(items: &[Piece]) -> Piece {
    [b"](".to_vec(), items.concat(), b"e".to_vec()].concat()
}

pub(crate) fn pairs(items: &[(Piece, Piece)]) -> Piece {
    let items: Vec<u8> = items.iter().flat_map(|(key, value)| [&key[..], value].concat()).collect();
    [b"}(".to_vec(), items, b"u".to_vec()].concat()
}

pub(crate) fn dict(items: &[(&str, Piece)]) -> Piece {
    let items: Vec<_> = items.iter().map(|(key, value)| (text(key), value.clone())).collect();
    pairs(&items)
}

pub(crate) fn ordered(items: &[(&str, Piece)]) -> Piece {
    let made = reduce(global("collections", "OrderedDict"), &[]);
    let items: Vec<u8> =
        items.iter().flat_map(|(key, value)| [text(key), value.clone()].concat()).collect();
    [made, b"(".to_vec(), items, b"u".to_vec()].concat()
}

pub(crate) fn global(module: &str, name: &str) -> Piece {
    format!("c{module}\n{name}\n").into_bytes()
}

pub(crate) fn reduce(callee: Piece, args: &[Piece]) -> Piece {
    [callee, tuple(args), b"R".to_vec()].concat()
}

pub(crate) fn new_object(class: Piece) -> Piece {
    [class, b")\x81".to_vec()].concat()
}

pub(crate) fn build(object: Piece, state: Piece) -> Piece {
    [object, state, b"b".to_vec()].concat()
}

pub(crate) fn put(value: Piece, place: u8) -> Piece {
    [value, vec![b'q', place]].concat()
}

pub(crate) fn get(place: u8) -> Piece {
    vec![b'h', place]
}

pub(crate) fn persistent(id: Piece) -> Piece {
    [id, b"Q".to_vec()].concat()
}

pub(crate) fn storage(class: &str, key: &str, numel: i64) -> Piece {
    let class = match class {
        "UntypedStorage" => global("torch.storage", class),
        class => global("torch", class),
    };
    persistent(tuple(&[text("storage"), class, text(key), text("cpu"), int(numel)]))
}

pub(crate) fn ints(numbers: &[i64]) -> Piece {
    tuple(&numbers.iter().map(|number| int(*number)).collect::<Vec<_>>())
}

pub(crate) fn hooks() -> Piece {
    reduce(global("collections", "OrderedDict"), &[])
}

pub(crate) fn utils(function: &str) -> Piece {
    global("torch._utils", function)
}

/// `_rebuild_tensor_v2`, of a storage of floats.
pub(crate) fn tensor(key: &str, numel: i64, offset: i64, size: &[i64], stride: &[i64]) -> Piece {
    tensor_of(storage("FloatStorage", key, numel), offset, size, stride)
}

pub(crate) fn tensor_of(storage: Piece, offset: i64, size: &[i64], stride: &[i64]) -> Piece {
    reduce(
        utils("_rebuild_tensor_v2"),
        &[storage, int(offset), ints(size), ints(stride), truth(false), hooks()],
    )
}

/// A tensor of two floats, of a storage of its own.
pub(crate) fn pair(key: &str) -> Piece {
    tensor(key, 2, 0, &[2], &[1])
}

pub(crate) fn parameter(data: Piece) -> Piece {
    reduce(utils("_rebuild_parameter"), &[data, truth(true), hooks()])
}

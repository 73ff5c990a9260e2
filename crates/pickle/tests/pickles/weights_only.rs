//! What `torch.load(weights_only=True)` of torch 2.15 takes: its list of names, and where it stops at the others.

use std::collections::BTreeSet;

use weigh_pickle::known::all;
use weigh_pickle::{Limits, weights_only};

use crate::assembler::{bytes, global, short, text};

/// The names that torch allows, by module.
const ALLOWED: &[(&str, &str)] = &[
    ("_codecs", "encode"),
    ("builtins", "bytearray complex set"),
    ("collections", "Counter OrderedDict"),
    (
        "torch",
        "BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage ByteTensor CharStorage \
         CharTensor ComplexDoubleStorage ComplexFloatStorage DoubleStorage DoubleTensor \
         FloatStorage FloatTensor HalfStorage HalfTensor IntStorage IntTensor LongStorage \
         LongTensor QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage \
         ShortStorage ShortTensor Size Tensor bcomplex32 bfloat16 bits16 bits1x8 bits2x4 bits4x2 \
         bits8 bool complex128 complex32 complex64 device float16 float32 float4_e2m1fn_x2 float64 \
         float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int1 int16 int2 \
         int3 int32 int4 int5 int6 int64 int7 int8 per_channel_affine \
         per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine \
         per_tensor_symmetric qint32 qint8 quint2x4 quint4x2 quint8 uint1 uint16 uint2 uint3 uint32 \
         uint4 uint5 uint6 uint64 uint7 uint8",
    ),
    ("torch._tensor", "_rebuild_from_type_v2"),
    (
        "torch._utils",
        "_rebuild_device_tensor_from_cpu_tensor _rebuild_device_tensor_from_numpy \
         _rebuild_meta_tensor_no_storage _rebuild_parameter _rebuild_parameter_with_state \
         _rebuild_qtensor _rebuild_sparse_tensor _rebuild_tensor _rebuild_tensor_v2 \
         _rebuild_tensor_v3 _rebuild_wrapper_subclass",
    ),
    (
        "torch.cuda",
        "BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage ByteTensor CharStorage \
         CharTensor ComplexDoubleStorage ComplexFloatStorage DoubleStorage DoubleTensor \
         FloatStorage FloatTensor HalfStorage HalfTensor IntStorage IntTensor LongStorage \
         LongTensor ShortStorage ShortTensor",
    ),
    (
        "torch.cuda.sparse",
        "BFloat16Tensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor \
         LongTensor ShortTensor",
    ),
    ("torch.nn.parameter", "Parameter"),
    ("torch.serialization", "_get_layout"),
    (
        "torch.sparse",
        "BFloat16Tensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor \
         LongTensor ShortTensor",
    ),
    ("torch.storage", "TypedStorage UntypedStorage"),
];

#[test]
fn the_names_that_torch_allows_are_taken_and_no_others() {
    let mut allowed = BTreeSet::new();
    for (module, names) in ALLOWED {
        for name in names.split(' ') {
            allowed.insert((*module, name));
            let pickle = pickle!(b"\x80\x02", global(module, name), b".");
            assert!(weights_only(&pickle, &Limits::default()).is_ok(), "{module}.{name}");
        }
    }
    assert_eq!(allowed.len(), 144);
    for (module, name, _) in all() {
        let pickle = pickle!(b"\x80\x02", global(module, name), b".");
        let taken = weights_only(&pickle, &Limits::default());
        assert_eq!(taken.is_ok(), allowed.contains(&(module, name)), "{module}.{name}");
        if let Err(refusal) = taken {
            assert_eq!((refusal.offset, refusal.name.unwrap()), (2, format!("{module}.{name}")));
        }
    }
}

#[test]
fn torch_stops_where_it_does() {
    let ordered = || pickle!(global("collections", "OrderedDict"), b")R");
    let storage = |id: &[u8]| {
        pickle!(b"(", id, global("torch", "FloatStorage"), text("0"), text("cpu"), b"K\x04tQ")
    };
    let tensor = || {
        pickle!(
            global("torch._utils", "_rebuild_tensor_v2"),
            b"(",
            storage(&text("storage")),
            b"K\0K\x04\x85K\x01\x85\x89",
            ordered(),
            b"tR"
        )
    };
    for (what, pickle, stops) in [
        ("a state dict", pickle!(b"\x80\x02}q\0", text("w"), tensor(), b"s."), None),
        ("no protocol", pickle!(b"}."), None),
        ("a later protocol without its opcodes", pickle!(b"\x80\x04}."), None),
        ("FRAME", pickle!(b"\x80\x04\x95", 2_u64.to_le_bytes(), b"}."), Some("FRAME")),
        ("MEMOIZE", pickle!(b"\x80\x04}\x94."), Some("MEMOIZE")),
        ("SHORT_BINUNICODE", pickle!(short("a"), b"."), Some("SHORT_BINUNICODE")),
        ("STACK_GLOBAL", pickle!(text("torch"), text("Size"), b"\x93."), Some("STACK_GLOBAL")),
        ("BINBYTES", pickle!(bytes(b"a"), b"."), Some("BINBYTES")),
        ("LONG1", pickle!(b"\x8a\x01\x01."), None),
        ("LONG4", pickle!(b"\x8b\x01\0\0\0\x01."), Some("LONG4")),
        ("INT", pickle!(b"I1\n."), Some("INT")),
        ("STRING", pickle!(b"S'a'\n."), Some("STRING")),
        ("SHORT_BINSTRING", pickle!(b"U\x01a."), None),
        ("POP", pickle!(b"NN0."), Some("POP")),
        ("DUP", pickle!(b"N2."), Some("DUP")),
        ("FROZENSET", pickle!(b"(\x91."), Some("FROZENSET")),
        ("EMPTY_SET", pickle!(b"\x8f."), None),
        ("os.getpid", pickle!(global("os", "getpid"), b")R."), Some("GLOBAL")),
        ("a name joined otherwise", pickle!(global("torch", "nn.parameter.Parameter"), b"."), None),
        ("a name of Python 2", pickle!(global("__builtin__", "set"), b")R."), None),
        (
            "collections.defaultdict",
            pickle!(global("collections", "defaultdict"), b"."),
            Some("GLOBAL"),
        ),
        ("a call of a dtype", pickle!(global("torch", "float32"), b")R."), Some("REDUCE")),
        (
            "a call of a storage class",
            pickle!(global("torch", "FloatStorage"), b")R."),
            Some("REDUCE"),
        ),
        ("a call of a result", pickle!(ordered(), b")R."), Some("REDUCE")),
        (
            "too few arguments",
            pickle!(global("torch._utils", "_rebuild_tensor_v2"), b")R."),
            Some("REDUCE"),
        ),
        (
            "an instance of OrderedDict",
            pickle!(global("collections", "OrderedDict"), b")\x81."),
            None,
        ),
        (
            "an instance of a function",
            pickle!(global("_codecs", "encode"), b")\x81."),
            Some("NEWOBJ"),
        ),
        ("SETITEM on OrderedDict", pickle!(ordered(), b"NNs."), None),
        ("SETITEM on a tensor", pickle!(tensor(), b"K\0Ns."), Some("SETITEM")),
        ("SETITEMS on a list", pickle!(b"](K\0Nu."), Some("SETITEMS")),
        ("SETITEMS of a key alone", pickle!(b"}(Nu."), Some("SETITEMS")),
        ("APPEND on a list", pickle!(b"]Na."), None),
        ("APPEND on a set", pickle!(b"\x8fNa."), Some("APPEND")),
        ("APPENDS of nothing on a set", pickle!(b"\x8f(e."), Some("APPENDS")),
        ("BUILD of OrderedDict", pickle!(ordered(), b"}b."), None),
        ("BUILD of a dictionary", pickle!(b"}}b."), Some("BUILD")),
        ("BUILD of a name", pickle!(global("torch", "float32"), b"}b."), Some("BUILD")),
        ("a storage", pickle!(storage(&text("storage")), b"."), None),
        ("a storage of bytes", pickle!(storage(b"U\x07storage"), b"."), None),
        ("an id of something else", pickle!(storage(&text("module")), b"."), Some("BINPERSID")),
        ("an id that is text", pickle!(text("storage"), b"Q."), Some("BINPERSID")),
        ("a memo entry that was never set", pickle!(b"h\0."), Some("BINGET")),
        ("nothing", pickle!(b"."), Some("STOP")),
        ("no STOP", pickle!(b"N"), Some("")),
        ("no opcode", pickle!(b"\xff"), Some("")),
    ] {
        let taken = weights_only(&pickle, &Limits::default());
        let stopped =
            taken.as_ref().err().map(|refusal| refusal.opcode.map_or("", |opcode| opcode.name()));
        assert_eq!(stopped, stops, "{what}: {taken:?}");
        if stops.is_none() {
            assert_eq!(taken.unwrap(), u64::try_from(pickle.len()).unwrap(), "{what}");
        }
    }
}

#[test]
fn a_refusal_says_where_and_why() {
    let pickle = pickle!(b"\x80\x02", global("os", "getpid"), b")R.");
    let refusal = weights_only(&pickle, &Limits::default()).unwrap_err();
    assert_eq!(refusal.to_string(), "byte 2, GLOBAL: os.getpid is not allowed");
    let refusal = weights_only(b"\x80\x04\x95\0\0\0\0\0\0\0\0N.", &Limits::default()).unwrap_err();
    assert_eq!(refusal.to_string(), "byte 2, FRAME: unsupported operand 149");
}

#[test]
fn what_a_call_or_a_key_is_made_of_is_looked_at_as_torch_would_fail_on_it() {
    let call =
        |module: &str, name: &str, args: &[u8]| pickle!(global(module, name), b"(", args, b"tR");
    let ordered = call("collections", "OrderedDict", b"");
    let tensor = call("torch", "FloatTensor", b"");
    let storage = pickle!(
        b"(",
        text("storage"),
        global("torch", "FloatStorage"),
        text("0"),
        text("cpu"),
        b"K\x04tQ"
    );
    let untyped = pickle!(global("torch.storage", "UntypedStorage"), b")\x81");
    let rebuilt = |of: &[u8]| {
        call("torch._utils", "_rebuild_tensor_v2", &pickle!(of, b"K\0))\x89", &ordered))
    };
    let parameter =
        |of: &[u8]| call("torch._utils", "_rebuild_parameter", &pickle!(of, b"\x89", &ordered));
    let size = |of: &[u8]| call("torch", "Size", of);
    let layout = |of: &[u8]| call("torch.serialization", "_get_layout", of);
    let key = |of: &[u8]| pickle!(b"}", of, b"Ns");
    for (what, pickle, taken) in [
        ("a size of nothing", size(b""), true),
        ("a size of a tuple", size(b")"), true),
        ("a size of None", size(b"N"), false),
        ("a size of a number", size(b"K\x01"), false),
        ("a size of text", size(&text("ab")), false),
        ("a size of a dictionary", size(b"}"), true),
        ("a new size of None", pickle!(global("torch", "Size"), b"N\x85\x81"), false),
        ("a layout", layout(&text("torch.strided")), true),
        ("another layout", layout(&text("torch._mkldnn")), true),
        ("no layout", layout(&text("x")), false),
        ("None as a layout", layout(b"N"), false),
        ("a tensor of a storage", rebuilt(&storage), true),
        ("a tensor of None", rebuilt(b"N"), false),
        ("a tensor of a list", rebuilt(b"]"), false),
        ("a tensor of a tensor", rebuilt(&tensor), false),
        ("a tensor of a new storage", rebuilt(&untyped), false),
        ("a parameter of a tensor", parameter(&tensor), true),
        ("a parameter of None", parameter(b"N"), true),
        ("a parameter of a number", parameter(b"K\x01"), false),
        ("a parameter of a storage", parameter(&storage), false),
        ("a key that is text", key(&text("a")), true),
        ("a key that is a tuple", key(b")"), true),
        ("a key that is a list", key(b"]"), false),
        ("a key that is a tuple of a list", key(b"]\x85"), false),
        ("a key that is a tuple of a tuple of a list", key(b"]\x85\x85"), false),
        ("a key that is a set", key(b"\x8f"), false),
        ("a key that is a dictionary", key(&ordered), false),
        ("a key that is a bytearray", key(&call("builtins", "bytearray", b"")), false),
        ("a key that is a tensor", key(&tensor), true),
        ("a key that is a storage", key(&storage), true),
        ("one of several keys", pickle!(b"}(NNK\x01]u"), true),
        ("one of several keys that is a list", pickle!(b"}(NN]K\x01u"), false),
    ] {
        let pickle = pickle!(b"\x80\x02", pickle, b".");
        let got = weights_only(&pickle, &Limits::default());
        assert_eq!(got.is_ok(), taken, "{what}: {got:?}");
    }
}

"""The names that have a meaning, as the documentation lists them, and some that have none."""

BY_MODULE = {
    "_codecs": """
        encode
    """,
    "argparse": """
        Namespace
    """,
    "builtins": """
        bool bytearray bytes complex dict float frozenset int list range set slice str tuple
    """,
    "collections": """
        Counter OrderedDict defaultdict
    """,
    "datetime": """
        date datetime time timedelta timezone
    """,
    "lightning.fabric.utilities.data": """
        AttributeDict
    """,
    "lightning.pytorch.utilities.parsing": """
        AttributeDict
    """,
    "lightning_fabric.utilities.data": """
        AttributeDict
    """,
    "numpy": """
        dtype ndarray
    """,
    "numpy._core.multiarray": """
        _reconstruct scalar
    """,
    "numpy._core.numeric": """
        _frombuffer
    """,
    "numpy.core.multiarray": """
        _reconstruct scalar
    """,
    "numpy.core.numeric": """
        _frombuffer
    """,
    "omegaconf.base": """
        ContainerMetadata Metadata
    """,
    "omegaconf.dictconfig": """
        DictConfig
    """,
    "omegaconf.listconfig": """
        ListConfig
    """,
    "omegaconf.nodes": """
        AnyNode BooleanNode BytesNode EnumNode FloatNode IntegerNode PathNode StringNode
    """,
    "pathlib": """
        Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath
    """,
    "pathlib._local": """
        Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath
    """,
    "pytorch_lightning.utilities.parsing": """
        AttributeDict
    """,
    "torch": """
        BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage ByteTensor CharStorage CharTensor
        ComplexDoubleStorage ComplexFloatStorage DoubleStorage DoubleTensor FloatStorage FloatTensor HalfStorage
        HalfTensor IntStorage IntTensor LongStorage LongTensor QInt32Storage QInt8Storage QUInt2x4Storage
        QUInt4x2Storage QUInt8Storage ShortStorage ShortTensor Size Tensor bcomplex32 bfloat16 bits16 bits1x8
        bits2x4 bits4x2 bits8 bool complex128 complex32 complex64 device float16 float32 float4_e2m1fn_x2 float64
        float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int1 int16 int2 int3 int32 int4
        int5 int6 int64 int7 int8 per_channel_affine per_channel_affine_float_qparams per_channel_symmetric
        per_tensor_affine per_tensor_symmetric qint32 qint8 quint2x4 quint4x2 quint8 uint1 uint16 uint2 uint3
        uint32 uint4 uint5 uint6 uint64 uint7 uint8
    """,
    "torch._tensor": """
        _rebuild_from_type_v2
    """,
    "torch._utils": """
        _rebuild_device_tensor_from_cpu_tensor _rebuild_device_tensor_from_numpy _rebuild_meta_tensor_no_storage
        _rebuild_nested_tensor _rebuild_parameter _rebuild_parameter_with_state _rebuild_qtensor
        _rebuild_sparse_tensor _rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3 _rebuild_wrapper_subclass
    """,
    "torch.cuda": """
        BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage ByteTensor CharStorage CharTensor
        ComplexDoubleStorage ComplexFloatStorage DoubleStorage DoubleTensor FloatStorage FloatTensor HalfStorage
        HalfTensor IntStorage IntTensor LongStorage LongTensor ShortStorage ShortTensor
    """,
    "torch.nn.parameter": """
        Buffer Parameter
    """,
    "torch.serialization": """
        _get_layout
    """,
    "torch.storage": """
        TypedStorage UntypedStorage _load_from_bytes
    """,
    "typing": """
        Any
    """,
    "uuid": """
        UUID
    """,
}

TABLE = {(module, name) for module, names in BY_MODULE.items() for name in names.split()}

# What torch reads, and what would unpickle its argument: it is in the table to be refused by name.
CALLED = {("torch.storage", "_load_from_bytes")}

# What Python 2 called them, in pickles of protocols below 3.
PYTHON_2 = {("__builtin__", name) for module, name in TABLE if module == "builtins"}

FOREIGN = [
    ("os", "getpid"),
    ("posix", "getpid"),
    ("builtins", "eval"),
    ("builtins", "exec"),
    ("builtins", "getattr"),
    ("builtins", "__import__"),
    ("builtins", "type"),
    ("builtins", "object"),
    ("builtins", "map"),
    ("__builtin__", "eval"),
    ("importlib", "import_module"),
    ("functools", "partial"),
    ("functools", "reduce"),
    ("operator", "attrgetter"),
    ("operator", "methodcaller"),
    ("copyreg", "_reconstructor"),
    ("copy_reg", "_reconstructor"),
    ("torch", "load"),
    ("torch.serialization", "load"),
    ("torch.hub", "load"),
    ("torch.jit", "load"),
    ("torch._utils", "_import_dotted_name"),
    ("torch.storage", "_load_from_byte"),
    ("torch.nn.modules.linear", "Linear"),
    ("numpy", "load"),
    ("numpy", "fromfile"),
    ("numpy.core.multiarray", "fromfile"),
    ("numpy.testing._private.utils", "runstring"),
    ("collections", "namedtuple"),
    ("collections", "UserDict"),
    ("_codecs", "decode"),
    ("_pickle", "loads"),
    ("pathlib", "os.getpid"),
    ("argparse", "FileType"),
    ("datetime", "sys.modules"),
    ("omegaconf", "OmegaConf"),
    ("uuid", "getnode"),
    ("enum", "Enum"),
    ("", ""),
    ("torch", ""),
    ("", "OrderedDict"),
]

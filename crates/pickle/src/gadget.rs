//! Names that are known to run code when they are called.
//!
//! The list makes a finding worse. It never makes one better: a name that is not here is as unknown as before.

/// Whether a name is known to run code, or to reach what does.
#[must_use]
pub fn is_gadget(module: &str, name: &str) -> bool {
    let top = module.split('.').next().unwrap_or_default();
    MODULES.contains(&top)
        || SUBMODULES.iter().any(|sub| {
            module.strip_prefix(sub).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
        || NAMES.iter().any(|(in_module, names)| {
            *in_module == module && names.split(' ').any(|known| known == first(name))
        })
}

fn first(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

/// Modules of which every name counts, and every module in them.
const MODULES: &[&str] = &[
    "os",
    "posix",
    "nt",
    "posixpath",
    "ntpath",
    "subprocess",
    "sys",
    "pty",
    "commands",
    "popen2",
    "shutil",
    "runpy",
    "importlib",
    "imp",
    "pkgutil",
    "zipimport",
    "code",
    "codeop",
    "timeit",
    "cProfile",
    "profile",
    "trace",
    "pdb",
    "bdb",
    "doctest",
    "pydoc",
    "idlelib",
    "lib2to3",
    "ensurepip",
    "venv",
    "pip",
    "setuptools",
    "distutils",
    "ctypes",
    "_ctypes",
    "cffi",
    "socket",
    "_socket",
    "ssl",
    "socketserver",
    "asyncio",
    "multiprocessing",
    "threading",
    "_thread",
    "concurrent",
    "webbrowser",
    "antigravity",
    "inspect",
    "types",
    "functools",
    "operator",
    "_operator",
    "itertools",
    "marshal",
    "pickle",
    "_pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "tempfile",
    "http",
    "urllib",
    "ftplib",
    "smtplib",
    "telnetlib",
    "imaplib",
    "poplib",
    "nntplib",
    "xmlrpc",
    "requests",
    "aiohttp",
    "httpx",
    "_pyrepl",
    "_osx_support",
    "_aix_support",
    "test",
    "tkinter",
    "winreg",
    "_winreg",
    "msilib",
    "sqlite3",
    "gc",
    "atexit",
    "signal",
    "resource",
    "fcntl",
    "mmap",
    "platform",
    "linecache",
    "fileinput",
    "glob",
    "compileall",
    "py_compile",
    "mailcap",
    "_bootsubprocess",
    "_posixsubprocess",
    "_xxsubinterpreters",
    "_interpreters",
    "execnet",
    "paramiko",
    "fabric",
    "IPython",
    "sympy",
    "nose",
    "pytest",
    "_pytest",
    "unittest",
    "logging",
];

/// Modules in other modules, and every module in them.
const SUBMODULES: &[&str] = &[
    "numpy.f2py",
    "numpy.testing",
    "numpy.distutils",
    "torch.utils.bottleneck",
    "torch.utils.collect_env",
    "torch.utils.data.datapipes",
    "torch.utils.cpp_extension",
    "torch.utils._config_module",
    "torch._dynamo",
    "torch._inductor",
    "torch.fx",
    "torch.jit",
    "torch.hub",
    "torch.distributed",
    "torch.multiprocessing",
    "torch.package",
    "torch.testing",
    "torch.cuda.nccl",
    "keras.layers.core.lambda_layer",
    "keras.src.layers.core.lambda_layer",
    "logging.config",
];

/// Single names of other modules, between spaces.
const NAMES: &[(&str, &str)] = &[
    (
        "builtins",
        "eval exec execfile compile open input getattr setattr delattr hasattr globals locals vars __import__ \
         breakpoint help  map filter apply reload type object super classmethod staticmethod property iter next",
    ),
    (
        "__builtin__",
        "eval exec execfile compile open file input raw_input getattr setattr delattr globals locals vars __import__ \
         apply reload map filter",
    ),
    ("io", "FileIO open open_code"),
    ("_io", "FileIO open open_code"),
    ("codecs", "open"),
    ("uuid", "_get_command_stdout _popen _netstat_getnode _ifconfig_getnode _arp_getnode"),
    ("copyreg", "add_extension pickle constructor __newobj__ __newobj_ex__ _reconstructor"),
    ("torch", "load save compile hub jit"),
    ("torch.serialization", "load save"),
    ("torch.storage", "_load_from_bytes"),
    ("numpy", "load fromfile memmap loadtxt genfromtxt save"),
    ("numpy.lib.npyio", "load fromfile save"),
    ("pandas", "read_pickle eval"),
    ("pandas.io.pickle", "read_pickle"),
    ("datasets", "load_dataset"),
    ("transformers", "pipeline"),
    ("yaml", "load unsafe_load full_load"),
    ("jsonpickle", "decode loads"),
    ("collections", "namedtuple"),
    ("string", "Formatter"),
    ("site", "main execsitecustomize execusercustomize addpackage"),
    ("zipfile", "main ZipFile PyZipFile"),
    ("tarfile", "main open TarFile"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known;

    #[test]
    fn names_of_the_published_attacks_are_known() {
        for (module, name) in [
            ("os", "system"),
            ("posix", "system"),
            ("nt", "system"),
            ("subprocess", "Popen"),
            ("builtins", "eval"),
            ("builtins", "getattr.__call__"),
            ("pip", "main"),
            ("pip._internal.cli.main", "main"),
            ("ssl", "get_server_certificate"),
            ("asyncio.unix_events", "_UnixSubprocessTransport._start"),
            ("pkgutil", "resolve_name"),
            ("importlib", "import_module"),
            ("operator", "attrgetter"),
            ("_operator", "methodcaller"),
            ("timeit", "timeit"),
            ("cProfile", "runctx"),
            ("idlelib.run", "Executive.runcode"),
            ("lib2to3.pgen2.pgen", "ParserGenerator.make_label"),
            ("uuid", "_get_command_stdout"),
            ("imaplib", "IMAP4_stream"),
            ("pty", "spawn"),
            ("ctypes", "CDLL"),
            ("pydoc", "pipepager"),
            ("distutils.file_util", "write_file"),
            ("io", "FileIO"),
            ("torch.utils.bottleneck.__main__", "run_cprofile"),
            ("torch._dynamo.guards", "GuardBuilder.get"),
            ("torch.fx.experimental.symbolic_shapes", "ShapeEnv.evaluate_guards_expression"),
            ("torch.utils.collect_env", "run"),
            ("torch.jit.unsupported_tensor_ops", "execWrapper"),
            ("torch._inductor.codecache", "compile_file"),
            ("numpy.f2py.crackfortran", "getlincoef"),
            ("numpy.testing._private.utils", "runstring"),
            ("types", "CodeType"),
            ("marshal", "loads"),
            ("runpy", "run_path"),
            ("code", "InteractiveInterpreter"),
            ("torch.storage", "_load_from_bytes"),
        ] {
            assert!(is_gadget(module, name), "{module}.{name}");
        }
    }

    #[test]
    fn ordinary_names_are_not() {
        for (module, name) in [
            ("ostrich", "system"),
            ("torch.nn.modules.linear", "Linear"),
            ("numpy", "float64"),
            ("numpy.f2pyx", "run"),
            ("builtins", "evaluate"),
            ("", ""),
        ] {
            assert!(!is_gadget(module, name), "{module}.{name}");
        }
    }

    #[test]
    fn a_name_with_a_meaning_is_no_gadget_but_the_one_that_unpickles() {
        let both: std::vec::Vec<_> = known::all()
            .filter(|(module, name, _)| is_gadget(module, name))
            .map(|(_, name, _)| name)
            .collect();
        assert_eq!(both, ["_load_from_bytes"]);
    }
}

"""``python -m weigh run``: an unmodified program that uses ``safetensors``."""

from __future__ import annotations

import io
import os
import sys
import types

from weigh.safetensors._install import install

_USAGE = """usage: python -m weigh run PROGRAM.py [ARGUMENT ...]
       python -m weigh run -m MODULE [ARGUMENT ...]

Runs a program as python does, with `import safetensors` meaning weigh.safetensors.
"""


def run(argv):
    """Runs a program with its arguments, as ``python PROGRAM.py …`` or ``python -m MODULE …`` do.

    Args:
        argv: the program and its arguments.
    """
    if not argv or argv[0] in ("-h", "--help"):
        (sys.stdout if argv else sys.stderr).write(_USAGE)
        sys.exit(0 if argv else 2)
    is_module = argv[0] == "-m"
    if (is_module and len(argv) < 2) or (not is_module and argv[0].startswith("-")):
        sys.stderr.write(_USAGE)
        sys.exit(2)
    install()
    if is_module:
        _run_module(argv[1], argv[2:])
    else:
        _run_file(argv[0], argv[1:])


def _run_module(name, arguments):
    import runpy

    sys.argv = [name, *arguments]
    # The first place to look is the current folder, as it was for this module.
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _run_file(path, arguments):
    sys.argv = [path, *arguments]
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        import runpy

        runpy.run_path(path, run_name="__main__")
        return
    try:
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
    except OSError as error:
        sys.stderr.write(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}\n")
        sys.exit(2)
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__builtins__ = __builtins__
    main.__loader__ = None
    # What is pickled, or started again by multiprocessing, looks for it here; it stays until the end.
    sys.modules["__main__"] = main
    exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)

"""``import safetensors``, made to mean this package."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
import threading

from weigh.safetensors._version import __version__

_OWN = "weigh.safetensors"
_THEIRS = "safetensors"

_lock = threading.RLock()
#: The modules that were imported under their name before, while ours are.
_before = None
#: The installations that are not undone.
_current: set[Installed] = set()


class _Loader(importlib.abc.Loader):
    """Gives a module of ours another name, and leaves it as it is."""

    def __init__(self, own):
        self._own = own

    def create_module(self, spec):
        module = importlib.import_module(self._own)
        # The import system is about to write over these.
        self._kept = {name: getattr(module, name) for name in ("__spec__", "__loader__") if hasattr(module, name)}
        return module

    def exec_module(self, module):
        for name, value in self._kept.items():
            setattr(module, name, value)


class _Finder(importlib.metadata.DistributionFinder):
    """Finds ours for their names, and their version."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != _THEIRS and not fullname.startswith(_THEIRS + "."):
            return None
        own = "weigh." + fullname
        found = importlib.util.find_spec(own)
        if found is None:
            return None
        is_package = found.submodule_search_locations is not None
        return importlib.machinery.ModuleSpec(fullname, _Loader(own), origin=found.origin, is_package=is_package)

    def find_distributions(self, context=None):
        if context is None or context.name is None or context.name == _THEIRS:
            yield _Distribution()

    def invalidate_caches(self):
        return None


class _Distribution(importlib.metadata.Distribution):
    """What is known of a package that is installed."""

    _FILES = {
        "METADATA": f"Metadata-Version: 2.1\nName: {_THEIRS}\nVersion: {__version__}\n",
        "top_level.txt": f"{_THEIRS}\n",
        "INSTALLER": "weigh\n",
    }

    def read_text(self, filename):
        return self._FILES.get(filename)

    def locate_file(self, path):
        import pathlib

        return pathlib.Path(__file__).parent / path


_finder = _Finder()


class Installed:
    """One installation, what `install` returns: leaving it as a context undoes this one, once, and no other."""

    def __enter__(self):
        if self not in _current:
            raise RuntimeError("this installation was undone: call install() again")
        return sys.modules[_OWN]

    def __exit__(self, *_):
        _undo({self})


def install():
    """Makes ``import safetensors``, and of its submodules, mean this package, until it is undone.

    What imported names of the original before keeps them: install first. Other processes are not concerned; those
    that are forked have it.

    It may be installed several times, one in another and in any thread: the name means this package until the last
    is undone. One whose context is never entered stays until `uninstall`, which undoes all that there are.

    Returns:
        A context manager that undoes it, when it is left:

        >>> with weigh.safetensors.install():
        ...     import safetensors.torch
    """
    global _before
    installed = Installed()
    with _lock:
        _current.add(installed)
        if _before is None:
            _before = _taken_out()
            sys.meta_path.insert(0, _finder)
            sys.modules[_THEIRS] = sys.modules[_OWN]
            importlib.invalidate_caches()
    return installed


def uninstall():
    """Undoes all of `install`, however often it was called: ``import safetensors`` means what it meant, if anything.

    Contexts that are left afterwards change nothing more.
    """
    with _lock:
        _undo(set(_current))


def _undo(installations):
    """Forgets installations. With the last that there is, the name means again what it meant."""
    global _before
    with _lock:
        _current.difference_update(installations)
        if _before is not None and not _current:
            sys.meta_path.remove(_finder)
            _taken_out()
            sys.modules.update(_before)
            _before = None
            importlib.invalidate_caches()


def _taken_out():
    names = [name for name in sys.modules if name == _THEIRS or name.startswith(_THEIRS + ".")]
    return {name: sys.modules.pop(name) for name in names}

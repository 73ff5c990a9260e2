"""Exceptions, those of `weigh.safetensors` and our own: what they say survives pickling and copying."""

import copy
import errno
import pickle

import pytest

from weigh import _errors as own
from weigh import safetensors as ours
from weigh.safetensors import _errors

FINDING = own.Finding("data-gap", "error", "a gap", "write it again", "x", "t", (3, 5), {"needed": 8})


def of_system(kind):
    """What a failure to write becomes, as it is raised."""
    return _errors.not_written(kind(errno.EIO, "what the system said", "a path"))


#: Every class, made as it is where it is raised.
MADE = {
    "SafetensorError": lambda: _errors.made("a message", "data-gap", help="a way out", findings=[FINDING]),
    "SafetensorOSError": lambda: of_system(OSError),
    "SafetensorFileNotFoundError": lambda: of_system(FileNotFoundError),
    "SafetensorIsADirectoryError": lambda: of_system(IsADirectoryError),
    "SafetensorNotADirectoryError": lambda: of_system(NotADirectoryError),
    "SafetensorPermissionError": lambda: of_system(PermissionError),
    "UnreadableFileError": lambda: _errors.not_opened(PermissionError(errno.EACCES, "said", "a path"), "a path"),
    "WeighError": lambda: own.WeighError("a message", "budget", "a way out", [FINDING]),
    "FormatError": lambda: own.FormatError("a message", "data-gap", "a way out", [FINDING]),
    "TensorNotFoundError": lambda: own.TensorNotFoundError("a message", "no-tensor"),
    "SliceError": lambda: own.SliceError("a message", "slice-step"),
    "CancelledError": lambda: own.CancelledError("a message", "cancelled"),
}

#: What of them has to be the same again.
KEPT = ("args", "code", "help", "findings", "errno", "strerror", "filename", "__notes__")


def test_the_table_has_every_class():
    classes = {
        name
        for module in (own, _errors)
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    }
    assert classes == set(MADE)


def described(error):
    return type(error), str(error), {name: getattr(error, name) for name in KEPT if hasattr(error, name)}


@pytest.mark.parametrize("kind", MADE)
def test_an_exception_is_the_same_after_pickling_and_copying(kind):
    error = MADE[kind]()
    assert type(error).__name__ == kind
    before = described(error)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert described(pickle.loads(pickle.dumps(error, protocol))) == before, protocol
    assert described(copy.copy(error)) == before
    assert described(copy.deepcopy(error)) == before
    # Once more of what was unpickled.
    assert described(pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(error))))) == before


@pytest.mark.parametrize("kind", [name for name in MADE if name.startswith("Safetensor") and name != "SafetensorError"])
def test_what_the_system_reports_while_writing_has_its_number_its_path_and_the_words_of_the_original(kind):
    error = MADE[kind]()
    assert isinstance(error, ours.SafetensorError) and isinstance(error, OSError)
    assert (error.code, error.errno, error.filename, error.findings) == ("io", errno.EIO, "a path", [])
    assert str(error) == 'Error while serializing: I/O error: Input/output error (os error 5) at path "a path"'


def test_a_file_that_may_not_be_read_is_both_exceptions():
    error = MADE["UnreadableFileError"]()
    assert isinstance(error, PermissionError) and isinstance(error, FileNotFoundError)
    assert str(error) == "[Errno 13] said: 'a path'"


def test_an_exception_of_the_system_takes_its_arguments_as_those_do():
    error = _errors.SafetensorOSError(errno.EIO, "said", "a path")
    assert (error.args, error.errno, error.filename) == ((errno.EIO, "said"), errno.EIO, "a path")
    assert str(error) == "[Errno 5] said: 'a path'"
    assert described(pickle.loads(pickle.dumps(error))) == described(error)
    assert str(_errors.SafetensorOSError()) == ""

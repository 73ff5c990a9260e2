"""Errors: which class, what they carry, and that they survive being copied and pickled."""

import copy
import errno
import os
import pickle
import traceback

import pytest

import weigh

OWN = [weigh.FormatError, weigh.TensorNotFoundError, weigh.SliceError, weigh.CancelledError]


def test_all_are_value_errors_and_some_are_more():
    for kind in OWN:
        assert issubclass(kind, weigh.WeighError)
    assert issubclass(weigh.WeighError, ValueError)
    assert issubclass(weigh.TensorNotFoundError, KeyError)
    assert issubclass(weigh.SliceError, IndexError)
    assert not issubclass(weigh.WeighError, OSError)


@pytest.mark.parametrize("kind", [weigh.WeighError, *OWN])
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_they_can_be_copied_and_pickled(kind, again):
    finding = weigh.Finding("a-code", "error", "what is wrong", "what to do", "f", "t", (1, 2), {"n": 3})
    error = kind("a message", "a-code", "what to do", [finding])
    made = again(error)
    assert type(made) is kind
    assert (str(made), made.code, made.help, made.findings) == ("a message", "a-code", "what to do", [finding])
    assert made.args == ("a message",)


def test_defaults_are_little():
    error = weigh.WeighError("a message")
    assert (error.code, error.help, error.findings) == ("error", None, [])


def test_the_help_is_under_the_traceback():
    try:
        raise weigh.WeighError("a message", "a-code", "what to do")
    except weigh.WeighError as error:
        lines = traceback.format_exception(error)
    assert lines[-1].strip() == "help: what to do"
    assert lines[-2].strip() == "weigh._errors.WeighError: a message"


@pytest.fixture
def sound(write):
    return write({"w": ("F32", (2, 2), bytes(16))})


def test_an_unsound_file_is_a_format_error_with_findings(sound, tmp_path):
    content = sound.read_bytes()
    for name, broken, code in [
        ("empty", b"", "not-safetensors"),
        ("short", content[:7], "file-too-short"),
        ("long", content + b"x", None),
        ("cut", content[:-1], None),
        ("overlap", content.replace(b"[0, 16]", b"[0, 15]"), None),
    ]:
        path = tmp_path / name
        path.write_bytes(broken)
        with pytest.raises(weigh.FormatError) as caught:
            weigh.open(path)
        error = caught.value
        first = next(finding for finding in error.findings if finding.severity == "error")
        assert error.code == first.code and code in (None, error.code), name
        assert str(path) in str(error) and error.help
        assert [f for f in weigh.check(path) if f.severity == "error"] == [
            f for f in error.findings if f.severity == "error"
        ]


def test_findings_compare_print_and_pickle():
    given = ("a-code", "note", "what", "help", "f", None, (0, 8), {"n": 3})
    finding = weigh.Finding(*given)
    assert finding == weigh.Finding(*given) and finding != weigh.Finding(*given[:-1]) and finding != given
    assert pickle.loads(pickle.dumps(finding)) == copy.deepcopy(finding) == finding
    assert str(finding) == "note[a-code]: what"
    assert repr(finding) == "Finding(note[a-code]: 'what')"
    assert weigh.Finding("c", "note", "m", "h").evidence == {}
    with pytest.raises(TypeError):
        hash(finding)
    # What a file says cannot steer a terminal.
    assert "\x1b" not in str(weigh.Finding("c", "note", "\x1b[2J", "h"))


def test_a_hostile_name_is_escaped(write):
    path = write({"\x1b[2J\n": ("U8", (1,), b"a")})
    checkpoint = weigh.open(path)
    assert "\x1b" not in repr(checkpoint["\x1b[2J\n"])
    with pytest.raises(weigh.SliceError) as caught:
        checkpoint["\x1b[2J\n"][5]
    assert "\x1b" not in str(caught.value)


def test_what_the_system_says_is_an_os_error_with_number_and_path(sound, tmp_path):
    numpy = pytest.importorskip("numpy")
    cases = [
        (FileNotFoundError, errno.ENOENT, tmp_path / "none", weigh.open),
        (FileNotFoundError, errno.ENOENT, tmp_path / "none", weigh.check),
        (FileExistsError, errno.EEXIST, sound, lambda path: weigh.save({"w": numpy.ones(1)}, path, replace=False)),
    ]
    if os.geteuid() != 0:
        secret = tmp_path / "secret"
        secret.write_bytes(sound.read_bytes())
        secret.chmod(0)
        cases.append((PermissionError, errno.EACCES, secret, weigh.open))
    for kind, number, path, call in cases:
        with pytest.raises(kind) as caught:
            call(path)
        assert not isinstance(caught.value, weigh.WeighError)
        assert caught.value.errno == number
        assert caught.value.filename == str(path)


def test_a_file_that_changes_meanwhile_is_an_os_error(sound):
    checkpoint = weigh.open(sound)
    os.truncate(sound, 20)
    with pytest.raises(OSError) as caught:
        checkpoint["w"].tobytes()
    assert caught.value.errno == errno.EIO and caught.value.filename == str(sound)


def test_a_load_that_memory_is_too_small_for_is_refused(tmp_path):
    path = tmp_path / "huge.safetensors"
    size = 1 << 50
    header = b'{"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (size, size)
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        try:
            file.truncate(8 + len(header) + size)
        except OSError:
            pytest.skip("the file system has no files that large")
    with pytest.raises(MemoryError):
        weigh.open(path).load()
    assert weigh.open(path)["w"][5:8].tobytes() == bytes(3)


def test_help_speaks_of_python(sound):
    with pytest.raises(KeyError) as caught:
        weigh.open(sound)["q"]
    assert caught.value.help == "List the names with `.keys()`."
    assert str(caught.value) == "there is no tensor q"


def wrong_arguments():
    """What is wrong with a call, its exception, and a word of what that says."""
    numpy = pytest.importorskip("numpy")
    one = numpy.ones(1, "f4")
    array = numpy.array([True, False])
    opening = [
        ("names that are no text", lambda path: weigh.load(path, {1: None}), TypeError, "strings, not int"),
        ("a name that is no text", lambda path: weigh.load(path, 1), TypeError, "iterable"),
        ("names of bytes", lambda path: weigh.load(path, [b"w"]), TypeError, "strings, not bytes"),
        ("no glob", lambda path: weigh.load(path, "["), weigh.WeighError, "glob"),
        ("no glob to leave out", lambda path: weigh.load(path, exclude="["), weigh.WeighError, "glob"),
        ("an array of truths", lambda path: weigh.load(path, {"w": array}), weigh.SliceError, "w: .*not by ndarray"),
        ("a truth", lambda path: weigh.load(path, {"w": True}), weigh.SliceError, "w: .*not by bool"),
        ("a float", lambda path: weigh.load(path, {"w": 1.0}), weigh.SliceError, "w: .*not by float"),
        ("a slice of floats", lambda path: weigh.load(path, {"w": slice(0.5, 1)}), weigh.SliceError, "w: .*by float"),
        ("a list", lambda path: weigh.load(path, {"w": [0, 1]}), weigh.SliceError, "w: .*not by list"),
        ("a new axis", lambda path: weigh.load(path, {"w": (None, 0)}), weigh.SliceError, "w: None"),
        ("numpy's dtype", lambda path: weigh.load(path, dtype=numpy.float32), TypeError, '"F32"'),
        ("numpy's other dtype", lambda path: weigh.load(path, dtype=numpy.dtype("f4")), TypeError, '"F32"'),
        ("a dtype for a stream", lambda path: weigh.open(path).stream(dtype=numpy.float32), TypeError, '"F32"'),
        ("a dtype that is none", lambda path: weigh.load(path, dtype="f33"), weigh.WeighError, "'f33'"),
        ("no budget", lambda path: weigh.open(path).stream(budget=0), ValueError, "1 MiB"),
        ("a budget that is too small", lambda path: weigh.open(path).stream(budget=(1 << 20) - 1), ValueError, "1 MiB"),
        ("half a byte", lambda path: weigh.open(path).stream(budget=2e9), TypeError, "float"),
        ("an option that is none", lambda path: weigh.load(path, budget=1 << 20), TypeError, "budget"),
    ]
    saving = [
        ("a list of tensors", lambda path: weigh.save([one], path), TypeError, "mapping"),
        ("a list as metadata", lambda path: weigh.save({"w": one}, path, metadata=[1]), TypeError, "not a list"),
        ("a text as metadata", lambda path: weigh.save({"w": one}, path, metadata="pt"), TypeError, "not a str"),
        ("metadata of bytes", lambda path: weigh.to_bytes({"w": one}, metadata={"a": b""}), TypeError, "'a'.*bytes"),
        ("a state within another", lambda path: weigh.save({"w": {"a": one}}, path), TypeError, "^w: a dict"),
        ("nothing", lambda path: weigh.save({"w": None}, path), TypeError, "^w: a NoneType"),
        ("rows of two lengths", lambda path: weigh.save({"w": [[1], [1, 2]]}, path), TypeError, "^w: a list"),
        ("objects", lambda path: weigh.save({"w": numpy.array([None])}, path), TypeError, "^w: .*object"),
        ("no path", lambda path: weigh.save({"w": one}, 3), TypeError, "not a int"),
        ("no name", lambda path: weigh.save({1: one}, path), TypeError, "strings, not int"),
    ]
    return opening + saving


@pytest.mark.parametrize(("call", "kind", "said"), [pytest.param(*rest, id=name) for name, *rest in wrong_arguments()])
def test_wrong_arguments_are_told_what_is_wrong(sound, call, kind, said):
    before = sound.read_bytes()
    with pytest.raises(kind, match=said) as caught:
        call(sound)
    assert type(caught.value) is kind
    if isinstance(caught.value, weigh.WeighError):
        assert caught.value.code != "error"
    assert sound.read_bytes() == before

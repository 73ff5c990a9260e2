"""Progress: bytes done and bytes in all, to a callable or a bar."""

import pytest

import weigh

numpy = pytest.importorskip("numpy")

SIZE = 40 << 20


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("progress") / "x"
    weigh.save({"w": numpy.ones(SIZE // 2, "u1"), "v": numpy.ones(SIZE // 2, "u1")}, path)
    return path


def test_a_callable_hears_of_all_bytes(path, tmp_path):
    for work in (
        lambda tell: weigh.open(path).load(progress=tell),
        lambda tell: weigh.save({"w": numpy.ones(SIZE, "u1")}, tmp_path / "x", progress=tell),
        lambda tell: weigh.save({"w": numpy.ones(SIZE, "u1")}, tmp_path / "set", max_shard_size="1GB", progress=tell),
    ):
        told = []
        work(lambda done, total: told.append((done, total)))
        done, total = told[-1]
        assert done == total >= SIZE
        assert [done for done, _ in told] == sorted(done for done, _ in told)
        assert all(type(number) is int and number >= 0 for pair in told for number in pair)


def test_a_small_load_is_told_of_too(path):
    told = []
    weigh.open(path).load({"w": slice(0, 10)}, progress=lambda *pair: told.append(pair))
    assert told[-1] == (10, 10)
    weigh.open(path).load([], progress=lambda *pair: told.append(pair))
    assert told[-1] == (0, 0)


def test_what_a_callable_raises_is_raised(path, tmp_path):
    def stop(done, total):
        raise ZeroDivisionError("enough")

    with pytest.raises(ZeroDivisionError, match="enough"):
        weigh.open(path).load(progress=stop)
    with pytest.raises(ZeroDivisionError, match="enough"):
        weigh.save({"w": numpy.ones(SIZE, "u1")}, tmp_path / "x", progress=stop)
    with pytest.raises(TypeError):
        weigh.open(path).load(progress=lambda: None)


def test_a_bar_is_tqdms(path, capsys):
    pytest.importorskip("tqdm")
    weigh.open(path).load(progress=True)
    said = capsys.readouterr().err
    assert "loading" in said and "41.9M" in said


def test_without_tqdm_a_bar_says_what_is_missing(path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="pip install tqdm"):
        weigh.open(path).load(progress=True)
    assert weigh.open(path).load("w", progress=False)


@pytest.mark.parametrize("progress", [3, "bar", object()])
def test_what_is_no_progress_is_said(path, progress):
    with pytest.raises(TypeError, match="callable"):
        weigh.open(path).load(progress=progress)

"""Progress, told to a callable or to a bar of tqdm."""

from contextlib import contextmanager


@contextmanager
def follow(progress, what):
    """What native code is to call with the bytes done and those in all, or ``None``."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise ImportError("a progress bar needs tqdm: install it, or give a callable") from error
        with tqdm(desc=what, unit="B", unit_scale=True) as bar:

            def tell(done, total):
                bar.total = total
                bar.update(done - bar.n)

            yield tell
    else:
        yield progress

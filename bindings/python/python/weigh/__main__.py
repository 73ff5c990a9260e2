"""``python -m weigh``: the program, and ``python -m weigh run SCRIPT`` for a program that uses ``safetensors``."""

from __future__ import annotations

import sys


def program() -> None:
    """Runs the program ``weigh`` with the arguments of this process, and exits with its code."""
    import signal

    from weigh import _weigh

    # Python's own handler only sets a flag, which nothing would look at: the program has to end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_weigh.main(sys.argv))


def main() -> None:
    """Does what the arguments of ``python -m weigh`` say."""
    if len(sys.argv) > 1 and sys.argv[1] == "run":
        from weigh.safetensors._run import run

        run(sys.argv[2:])
    else:
        sys.argv[0] = "weigh"
        program()


if __name__ == "__main__":
    main()

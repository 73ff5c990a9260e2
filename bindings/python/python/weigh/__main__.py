"""``python -m weigh``: the program, and ``python -m weigh run SCRIPT`` for a program that uses ``safetensors``."""

import sys


def program():
    """Runs the program ``weigh`` with the arguments of this process."""
    import signal

    from weigh import _weigh

    # Python's own handlers only set a flag, which nothing would look at: the program has its own.
    for number in (signal.SIGINT, getattr(signal, "SIGPIPE", None)):
        if number is signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)
    sys.exit(_weigh.main(sys.argv))


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "run":
        from weigh.safetensors._run import run

        run(sys.argv[2:])
    else:
        sys.argv[0] = "weigh"
        program()


if __name__ == "__main__":
    main()

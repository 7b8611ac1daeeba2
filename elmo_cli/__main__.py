"""The program `elmo`, also as `python -m elmo_cli`."""

import signal


def main() -> None:
    """Run the command line; until it is loaded, Ctrl-C ends the process without a word."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from elmo_cli.commands.app import main as run

    run()


if __name__ == "__main__":
    main()

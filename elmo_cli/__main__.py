"""`python -m elmo_cli`: the same as `elmo`."""

from elmo_cli.commands.app import main

if __name__ == "__main__":
    main()

"""Where a command's answer goes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast


@contextmanager
def output_stream(output: Path | None) -> Iterator[BinaryIO]:
    """Open the target: a file that appears whole or not at all, or standard output for None and ``-``."""
    from elmo_cli.storage.files import output_error, whole_file

    if output is not None and str(output) != "-":
        with whole_file(output) as file:
            yield file
        return
    try:
        yield cast(BinaryIO, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise output_error(Path("standard output"), error) from error

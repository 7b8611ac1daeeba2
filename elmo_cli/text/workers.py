"""Processes that make something of blocks of lines, in order, while the main process does something else.

The main process reads and hands on blocks; it holds one end of a pipe to each worker. A worker ends at once when the
other end is gone, however the main process came to its end.
"""

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import cycle
from multiprocessing.connection import Connection, Pipe
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Final, Generic, TypeVar

from elmo_cli.errors import ElmoError
from elmo_cli.text.reader import TextOptions, line_blocks, sentences_of_block
from elmo_cli.text.sentence import Sentence
from elmo_cli.text.sources import Line
from elmo_cli.text.tokenizer import Tokenizer

Made = TypeVar("Made")

_BLOCKS_A_WORKER: Final = 3  # under way at most: one in work, one waiting, one on its way back


class BlockWorkers(Generic[Made]):
    """Worker processes, started at once and ended with the context; without any, the work is done in this process.

    Args:
        work: a function of a module, called with a block, the options, and a tokenizer or None.
        options: how to read.
        count: of processes; 0 for none.
    """

    def __init__(
        self, work: Callable[[list[Line], TextOptions, Tokenizer | None], Made], options: TextOptions, count: int
    ) -> None:
        self._work = work
        self._options = options
        self._tokenizer = None if count else options.make_tokenizer()
        self._workers: list[_Worker] = []
        try:
            for _ in range(count):
                self._workers.append(_Worker(work, options))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "BlockWorkers[Made]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        for worker in self._workers:
            worker.end()

    def map(self, blocks: Iterable[list[Line]]) -> Iterator[Made]:
        """Yield what becomes of each block, in order, reading a few blocks ahead.

        May be called again; what is under way of an earlier call, given up before its end, is forgotten.

        Raises:
            ElmoError: what ``blocks`` or the work raised, after all that came of the blocks before; or a process died.
        """
        if not self._workers:
            for lines in blocks:
                yield self._work(lines, self._options, self._tokenizer)
            return
        for worker in self._workers:
            worker.forget()
        under_way: deque[_Worker] = deque()
        turns = cycle(self._workers)
        errors: list[ElmoError] = []
        for lines in _until_error(blocks, errors):
            worker = next(turns)
            worker.send(lines)
            under_way.append(worker)
            if len(under_way) > _BLOCKS_A_WORKER * len(self._workers):
                yield under_way.popleft().receive()
        while under_way:
            yield under_way.popleft().receive()
        if errors:
            raise errors[0]


class SentenceReader:
    """Reads sentences, tokenized by other processes if asked; what is read does not depend on their number.

    The processes start now and load spaCy while this one may load torch.

    Args:
        options: how to read.
        workers: processes that tokenize; 0 to do it in this one.
    """

    def __init__(self, options: TextOptions, workers: int) -> None:
        self._options = options
        self._workers = BlockWorkers(_sentences_before_error, options, workers)

    def __enter__(self) -> "SentenceReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workers.close()

    def read(self, sources: Sequence[str]) -> Iterator[Sentence]:
        """Yield the sentences of some sources, in order and in constant memory, as `read_sentences` does.

        Raises:
            ConfigError: there is no such mode or language.
            DataError: a source cannot be read or is not of the form that the mode asks for.
        """
        blocks = line_blocks(sources, mode=self._options.mode, errors=self._options.errors)
        for sentences, error in self._workers.map(blocks):
            yield from sentences
            if error is not None:
                raise error


def _sentences_before_error(
    lines: list[Line], options: TextOptions, tokenizer: Tokenizer | None
) -> tuple[list[Sentence], ElmoError | None]:
    """Return the sentences of a block; those before the first that cannot be read, and the error, if there is one."""
    sentences: list[Sentence] = []
    try:
        for sentence in sentences_of_block(lines, mode=options.mode, tokenizer=tokenizer, column=options.column):
            sentences.append(sentence)
    except ElmoError as error:
        return sentences, error
    return sentences, None


def _until_error(blocks: Iterable[list[Line]], errors: list[ElmoError]) -> Iterator[list[Line]]:
    try:
        yield from blocks
    except ElmoError as error:
        errors.append(error)


class _Worker:
    """One process, and this process's end of the pipe to it."""

    def __init__(self, work: Callable[..., Any], options: TextOptions) -> None:
        self._pipe, theirs = Pipe()
        # A fresh Python: a fork of a process that runs threads (torch's) may hang, and multiprocessing's spawn would
        # import the command line once more. Standard input and output stay with this process.
        code = (
            f"import sys; sys.path[:] = {sys.path!r}\nfrom elmo_cli.text.workers import serve\nserve({theirs.fileno()})"
        )
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                process_group=0,  # Ctrl-C goes to this process alone, which answers it
            )
        self._under_way = self._forgotten = 0  # blocks sent without an answer yet; those of them nobody waits for
        self._hand_over((work, options))

    def send(self, lines: list[Line]) -> None:
        self._hand_over(lines)
        self._under_way += 1

    def forget(self) -> None:
        self._forgotten = self._under_way

    def receive(self) -> Any:  # noqa: ANN401 (what the work returns)
        """Return what became of the first block under way that is not forgotten."""
        try:
            for _ in range(self._forgotten):
                self._pipe.recv()
            made, problem = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise self._death() from error
        self._under_way -= self._forgotten + 1
        self._forgotten = 0
        if problem is not None:
            raise problem
        return made

    def end(self) -> None:
        self._pipe.close()
        self._process.kill()
        self._process.wait()

    def _hand_over(self, what: object) -> None:
        try:
            self._pipe.send(what)
        except OSError as error:
            raise self._death() from error

    def _death(self) -> ElmoError:
        code = self._process.wait()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return ElmoError(
            f"a process that tokenizes has died ({how})", fix="see whether memory ran out, or try --workers 0"
        )


def serve(descriptor: int) -> None:
    """Do the work of a worker process, until the other end of the pipe is closed."""
    # Hiding torch from spaCy, which would import it, saves seconds and 200 MB.
    sys.modules["torch"] = None  # type: ignore[assignment]
    pipe: Connection[Any, Any] = Connection(descriptor)
    work, options = pipe.recv()
    blocks: SimpleQueue[list[Line]] = SimpleQueue()
    Thread(target=_fetch, args=(pipe, blocks), daemon=True).start()
    tokenizer = options.make_tokenizer()
    if tokenizer is not None:
        with suppress(ElmoError):  # told with the first text that needs it
            tokenizer.load()
    while True:
        lines = blocks.get()
        answer: tuple[object, ElmoError | None]
        try:
            answer = work(lines, options, tokenizer), None
        except ElmoError as error:
            answer = None, error
        pipe.send(answer)


def _fetch(pipe: "Connection[Any, Any]", blocks: "SimpleQueue[list[Line]]") -> None:
    """Take blocks as they come, so that the main process never waits for this one; end the process with the pipe."""
    try:
        while True:
            blocks.put(pipe.recv())
    finally:
        os._exit(0)

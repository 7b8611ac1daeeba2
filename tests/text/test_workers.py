"""Worker processes change when sentences are tokenized, never which ones come, nor what goes wrong."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from source_files import Feed, Write

from elmo_cli.errors import ConfigError, DataError, ElmoError, Place
from elmo_cli.text.reader import TextOptions, read_sentences
from elmo_cli.text.sentence import Sentence
from elmo_cli.text.sources import Line
from elmo_cli.text.tokenizer import SpacyTokenizer, Tokenizer
from elmo_cli.text.workers import BlockWorkers, SentenceReader

DATA = Path(__file__).parents[1] / "data"
TOKENS = TextOptions(mode="tokens")


def read(options: TextOptions, workers: int, *sources: str) -> list[Sentence]:
    with SentenceReader(options, workers) as reader:
        return list(reader.read(sources))


def read_until_error(options: TextOptions, workers: int, source: str) -> tuple[list[int | None], DataError]:
    """Return the line numbers of the sentences before an error, and the error."""
    found = []
    with SentenceReader(options, workers) as reader:
        try:
            for sentence in reader.read([source]):
                found.append(sentence.place.line)
        except DataError as error:
            return found, error
    raise AssertionError("there was no error")


def count_or_fail(lines: list[Line], options: TextOptions, tokenizer: Tokenizer | None) -> int:
    """Stand for work: the lines of a block, in a process that may be told to fail, to die or to be slow."""
    if lines[0].text == "fail":
        raise DataError("cannot be counted", where=lines[0].place, fix="count it yourself")
    if lines[0].text == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if lines[0].text == "sleep":
        time.sleep(60)
    return len(lines)


def block(text: str, size: int = 1) -> list[Line]:
    return [Line(text, Place("a.txt", number)) for number in range(1, size + 1)]


def is_running(process: int) -> bool:
    """Tell whether a process is there; one that has ended and waits for its parent is not."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def children_of(process: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(stat.parent.name))
    return found


def wait_until(holds: Callable[[], object], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(holds())


@pytest.mark.parametrize(("mode", "counts"), [("lines", (0, 1, 3)), ("text", (0, 2)), ("jsonl", (0, 2))])
def test_sentences_do_not_depend_on_the_number_of_workers(write: Write, mode: str, counts: tuple[int, ...]) -> None:
    lines = (DATA / "world.txt").read_text(encoding="utf-8").split("\n") * 20
    sources = [write("\n".join(lines).encode()), str(DATA / "letters.txt"), write(b"")]
    if mode == "jsonl":
        sources = [write("".join(f'{{"n": 1.0, "text": {json.dumps(line)}}}\n' for line in lines).encode())]
    options = TextOptions(mode=mode)
    expected = list(read_sentences(sources, mode=mode, tokenizer=SpacyTokenizer()))
    assert len(expected) > 300
    for workers in counts:
        assert read(options, workers, *sources) == expected


def test_standard_input_is_read_by_the_main_process(stdin: Feed) -> None:
    stdin(b"It's so.\n")
    assert [sentence.tokens for sentence in read(TextOptions(), 1, "-")] == [["It", "'s", "so", "."]]


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_what_stands_before_an_error_comes_first(write: Write, workers: int) -> None:
    source = write(b'{"tokens": ["a"]}\n' * 700 + b"{\n" + b"\xff")
    found, error = read_until_error(TextOptions(mode="jsonl"), workers, source)
    # The bad byte stands in the block of the broken line, which is therefore never whole.
    assert found == list(range(1, 513))
    assert str(error).startswith(f"{source}:702: byte 0xff at offset 12602 is not UTF-8")


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_an_error_in_a_block_comes_behind_the_sentences_before_it(write: Write, workers: int) -> None:
    source = write(b'{"tokens": ["a"]}\n' * 300 + b"{\n" + b'{"tokens": []}\n' * 2_000)
    found, error = read_until_error(TextOptions(mode="jsonl"), workers, source)
    assert found == list(range(1, 301))
    assert error.where == Place(source, 301)
    assert error.fix is not None


@pytest.mark.parametrize("workers", [0, 1])
def test_an_unknown_language_is_told_with_the_first_text(write: Write, workers: int) -> None:
    options = TextOptions(language="english")
    assert read(options, workers, write(b"")) == []
    with pytest.raises(ConfigError) as error:
        read(options, workers, write(b"a\n"))
    assert str(error.value) == "spaCy has no language 'english'\n  fix: did you mean en?"


def test_blocks_are_worked_on_in_order_and_a_few_are_read_ahead() -> None:
    taken = []

    def blocks() -> Iterator[list[Line]]:
        for size in range(1, 30):
            taken.append(size)
            yield block("a", size)

    with BlockWorkers(count_or_fail, TOKENS, 2) as workers:
        results = workers.map(blocks())
        assert next(results) == 1
        assert len(taken) == 7
        assert list(results) == list(range(2, 30))


def test_what_was_given_up_does_not_come_with_the_next_call() -> None:
    with BlockWorkers(count_or_fail, TOKENS, 2) as workers:
        assert next(workers.map(block("a", size) for size in range(1, 9))) == 1
        assert list(workers.map(block("b", size) for size in range(20, 24))) == [20, 21, 22, 23]


def test_an_error_keeps_its_place_and_its_remedy() -> None:
    with BlockWorkers(count_or_fail, TOKENS, 1) as workers, pytest.raises(DataError) as error:
        list(workers.map([block("fail")]))
    assert str(error.value) == "a.txt:1: cannot be counted\n  fix: count it yourself"


def test_a_process_that_dies_is_told() -> None:
    with BlockWorkers(count_or_fail, TOKENS, 1) as workers, pytest.raises(ElmoError) as error:
        list(workers.map([block("die")]))
    assert str(error.value) == (
        "a process that tokenizes has died (signal 9)\n  fix: see whether memory ran out, or try --workers 0"
    )


def test_a_block_larger_than_a_pipe_does_not_stop_the_work() -> None:
    large = [Line("x" * 1_000_000, Place("a.txt", 1))]
    with BlockWorkers(count_or_fail, TOKENS, 1) as workers:
        assert list(workers.map([large] * 8)) == [1] * 8


def test_the_end_of_the_context_ends_the_processes_whatever_they_do() -> None:
    before = set(children_of(os.getpid()))
    started = time.monotonic()
    with BlockWorkers(count_or_fail, TOKENS, 2) as workers:
        processes = set(children_of(os.getpid())) - before
        with suppress(RuntimeError):
            for _ in workers.map([block("a"), *[block("sleep")] * 8]):
                raise RuntimeError("enough")
    assert len(processes) == 2
    assert not any(is_running(process) for process in processes)
    assert time.monotonic() - started < 30


def test_workers_end_with_a_process_that_is_killed() -> None:
    code = (
        "import test_workers as t, sys\n"
        "with t.BlockWorkers(t.count_or_fail, t.TOKENS, 2) as workers:\n"
        "    for done in workers.map([t.block('a'), *[t.block('sleep')] * 8]): print(done, flush=True)\n"
    )
    folders = os.pathsep.join([str(Path(__file__).parent), str(DATA.parent)])
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": folders}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        workers = children_of(process.pid)
        assert len(workers) == 2
        process.kill()
    assert wait_until(lambda: not any(is_running(worker) for worker in workers))

"""What a terminal shows: bars that leave no rest, and columns that stay columns, whatever its width and encoding."""

import io
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Answer, elmo_program

Elmo = Callable[..., Answer]


class Terminal(io.TextIOWrapper):
    """A stream in memory that says that it is a terminal."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding=encoding, errors="backslashreplace", write_through=True)

    def isatty(self) -> bool:
        return True

    @property
    def shown(self) -> str:
        return self.bytes.getvalue().decode(self.encoding)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Terminal]:
    """Put a terminal in the place of a standard stream."""

    def place(name: str, *, encoding: str = "utf-8", columns: int = 80, kind: str = "xterm") -> Terminal:
        for variable in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("TERM", kind)
        monkeypatch.setenv("COLUMNS", str(columns))
        stream = Terminal(encoding)
        monkeypatch.setattr(sys, name, stream)
        return stream

    return place


def on_terminal(*command: object, columns: int = 80, typed: bytes = b"", **variables: str) -> str:
    """Return what a terminal shows of a command all of whose streams it is."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm", **variables}
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    run = subprocess.Popen([elmo_program(), *map(str, command)], env=environment, **streams)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 1 << 16):
            shown += part
            if typed and b"Ctrl-D" in shown:
                time.sleep(2)  # for a bar, as it were
                os.write(ours, typed)
                typed = b""
    except OSError:  # the end, on Linux
        pass
    os.close(ours)
    assert run.wait() == 0, shown.decode()
    return shown.decode()


def test_a_terminal_that_cannot_erase_gets_lines_in_place_of_a_bar(terminal: Callable[..., Terminal]) -> None:
    from elmo_cli.commands.console import BarProgress, ConsoleReporter, PlainProgress

    reporter = ConsoleReporter(quiet=False)
    for kind, progress in (("xterm", BarProgress), ("dumb", PlainProgress)):
        terminal("stderr", kind=kind)
        assert type(reporter.progress("embedding", None, "tokens")) is progress


def test_the_title_of_a_bar_is_no_markup_and_steers_nothing(terminal: Callable[..., Terminal]) -> None:
    from elmo_cli.commands.console import ConsoleReporter

    stream = terminal("stderr", kind="xterm")
    with ConsoleReporter(quiet=False).progress("layers of [bold]/[/red].\x1b[2J\n.conll", 5, "[/x]") as progress:
        progress.update(1, "[/y]")
    assert "layers of [bold]/[/red].\\x1b[2J\\n.conll" in stream.shown
    assert "1/5 [/x]" in stream.shown


def test_a_bar_that_is_cut_short_fits_a_terminal_of_another_encoding(terminal: Callable[..., Terminal]) -> None:
    from elmo_cli.commands.console import ConsoleReporter

    stream = terminal("stderr", encoding="latin-1", columns=60)
    with ConsoleReporter(quiet=False).progress("training", 5, "steps") as progress:
        progress.update(1, "a word on the state " * 10)
    assert "a word on" in stream.shown
    assert "\\u" not in stream.shown


def test_rows_on_the_terminal_have_no_bar_among_them(model: Path, here: Path) -> None:
    (here / "x.txt").write_text("A line .\n" * 3)
    options = ("x.txt", "-m", model, "--input", "tokens", "--device", "cpu")
    rows = on_terminal("surprisal", *options).splitlines()
    assert (rows[0].split()[0], rows[1].split()[0], len(rows)) == ("line", "1", 11)
    rows = on_terminal("embed", *options, "--pool", "mean", "-f", "jsonl").splitlines()
    assert [row[:8] for row in rows] == ['{"id": 1', '{"id": 2', '{"id": 3', "3 x 64 f"]


def test_what_is_typed_is_not_wiped_away(model: Path, here: Path) -> None:
    typed = b"A line .\n\x04"
    shown = on_terminal("embed", "-o", "x.npy", "-m", model, "--input", "tokens", "--device", "cpu", typed=typed)
    assert shown.splitlines() == [
        "reading text from the terminal; end it with Ctrl-D",
        "A line .",
        f"3 x 64 float32 from 1 sentence, 3 tokens (model {model.name})",
    ]


@pytest.mark.parametrize(("output", "bars"), [(None, False), (Path("-"), False), (Path("x.tsv"), True)])
def test_an_answer_that_is_shown_as_it_comes_goes_alone(
    terminal: Callable[..., Terminal], output: Path | None, bars: bool
) -> None:
    from elmo_cli.commands.console import ConsoleReporter
    from elmo_cli.commands.streams import show_answer_alone

    terminal("stdout")
    reporter = ConsoleReporter(quiet=False)
    show_answer_alone(output, reporter)
    assert reporter.bars == bars


def test_an_answer_into_a_pipe_goes_alone_and_into_a_file_does_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from elmo_cli.commands.console import ConsoleReporter
    from elmo_cli.commands.streams import show_answer_alone

    reading, writing = os.pipe()
    for target, bars in (((tmp_path / "x").open("w"), True), (os.fdopen(writing, "w"), False)):
        reporter = ConsoleReporter(quiet=False)
        with target, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", target)
            show_answer_alone(None, reporter)
        assert reporter.bars == bars
    os.close(reading)


def test_names_of_files_do_not_break_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    from elmo_cli.commands.console import answer_table

    answer_table([("file", "n"), ("a\nb", "1"), ("e\x1b[31m\t", "2"), ("汉字", "3")])
    assert capsys.readouterr().out == "file         n\na\\nb         1\ne\\x1b[31m\\t  2\n汉字         3\n"


def test_a_table_in_another_encoding_is_aligned(terminal: Callable[..., Terminal]) -> None:
    from elmo_cli.commands.console import answer_table

    stream = terminal("stdout", encoding="latin-1")
    answer_table([("file", "n"), ("汉字", "1"), ("é", "2")])
    assert stream.shown == "file          n\n\\u6c49\\u5b57  1\né             2\n"


def test_facts_are_wrapped_by_the_columns_that_they_take(terminal: Callable[..., Terminal]) -> None:
    from elmo_cli.commands.console import answer_facts

    stream = terminal("stdout", columns=40)
    answer_facts([("corpora", "汉字汉字 汉字汉字 汉字汉字, size"), ("tool", "elmo")])
    assert stream.shown.splitlines() == [
        "corpora         汉字汉字 汉字汉字",
        "                汉字汉字, size",
        "tool            elmo",
    ]


def test_a_name_of_two_lines_in_a_note_is_no_second_message(terminal: Callable[..., Terminal]) -> None:
    from elmo_cli.commands.console import ConsoleReporter

    stream = terminal("stderr")
    reporter = ConsoleReporter(quiet=False)
    reporter.note("a\nelmo: error: b.txt: read")
    with reporter.progress("training", 5, "steps"):
        reporter.warn("a\nb.txt: read")
    assert "a\\nelmo: error: b.txt: read\n" in stream.shown
    assert "elmo: warning: a\\nb.txt: read" in stream.shown


def test_the_curve_of_a_run_takes_the_room_there_is(model: Path) -> None:
    def curve(columns: int, **variables: str) -> str:
        header, row = on_terminal("runs", model, columns=columns, **variables).splitlines()
        assert max(len(header), len(row)) <= columns
        return row.partition(" ago")[2].strip()

    whole = curve(80)
    short = curve(66)
    assert re.fullmatch("[▁-█]+", whole)
    assert 5 <= len(short) < len(whole)
    assert curve(54) == ""
    assert re.fullmatch("8[1-8]*1", curve(80, PYTHONIOENCODING="latin-1"))


def test_bars_of_weights_are_plain_where_there_are_no_others(terminal: Callable[..., Terminal]) -> None:
    from elmo_cli.commands import mix_tables

    for encoding, bar in (("utf-8", "██████▍"), ("ascii", "######")):
        terminal("stdout", encoding=encoding)
        assert mix_tables._bar(0.32) == bar
    assert mix_tables._spread([0.5, 0.5]) == "0.500 +- 0.000"


def test_a_line_of_a_concordance_has_room_for_escapes() -> None:
    from elmo_cli.neighbors.concordance import Hit, concordance

    hit = Hit(1, 0.5, "play", "字.txt", 3, 1, 3, 7, "汉字 play 游戏，孩子们都很高兴", ("play",))
    shown = str.encode
    [line] = concordance([hit], 60, mark="...", shown=lambda text: shown(text, "ascii", "backslashreplace").decode())
    assert str(line).endswith("  \\u5b57.txt:3")
    assert len(str(line)) == 60


def test_words_of_like_spelling_stand_in_columns(elmo: Elmo, model: Path, here: Path) -> None:
    (here / "x.txt").write_text("play plays playful 游戏 a b\n")
    answer = elmo("neighbors", "play", "--corpus", "x.txt", "--input", "tokens", "-f", "text", "-m", model)
    rows = answer.text.splitlines()
    assert len({len(row) + row.count("游戏") * 2 for row in rows}) == 1
    assert len(rows) == 5


def test_a_narrow_list_of_commands_has_whole_sentences() -> None:
    text = on_terminal("--help", columns=60)
    assert "Learn, apply and look at weighted sums of layers." in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 60

"""Any values of any options, on tiny texts: an answer or a refusal with one of the exit codes, never a traceback."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strange import TEXTS, examples
from typer.testing import CliRunner

from elmo_cli.commands.app import app

NUMBERS = (
    "0",
    "1",
    "2",
    "-1",
    "3.5",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "1e-999",
    "99999999999999999999",
    "9" * 400,
    "0x10",
    "1_0",
    "٣",
)
WORDS = (
    "all",
    "top",
    "average",
    "0,1",
    "0,0",
    "0,2,1",
    "1-2",
    ",",
    "-",
    "--",
    "mean",
    "none",
    "npy",
    "jsonl",
    "hdf5",
    "tokens",
)
MORE = (
    "conll",
    "conllu",
    "jsonl",
    "float16",
    "int8",
    "cpu",
    "meta",
    "cuda:99",
    "en",
    "xx",
    "zh-jieba",
    "a.b",
    "t.txt",
    "rows.tsv",
)
NAMES = (
    "no/x.npy",
    ".",
    "/",
    "/dev/null",
    "x.npy",
    "x.npz",
    "x.vec",
    "new.mix.json",
    "t.mix.json",
    "%s",
    "{0}",
    "[bold]",
    "~",
)
values = st.sampled_from((*NUMBERS, *WORDS, *MORE, *NAMES, *(text for text in TEXTS if len(text) < 400))) | st.text(
    max_size=6
)

# What keeps a command small, behind whatever is drawn; the last of an option's values counts.
SMALL: dict[str, list[str]] = {
    "train": ["--max-steps=1", "--preset=tiny", "--device=cpu"],
    "finetune": ["--max-steps=1", "--softmax-epochs=1", "--device=cpu", "--extend-vocab=3"],
    "mix learn": ["--epochs=1", "--seeds=1", "--no-compare", "--no-cache"],
}
ARGUMENTS: dict[str, list[str]] = {
    "train": ["t.txt"],
    "finetune": ["t.txt", "-m", "MODEL"],
    "embed": ["t.txt", "-m", "MODEL"],
    "perplexity": ["t.txt", "-m", "MODEL"],
    "surprisal": ["t.txt", "-m", "MODEL"],
    "neighbors": ["boat", "the boat left", "--corpus", "t.txt", "-m", "MODEL"],
    "index": ["t.txt", "-m", "MODEL", "-o", "t.idx"],
    "convert": ["MODEL", "--to", "allennlp", "-o", "theirs"],
    "info": ["MODEL"],
    "runs": ["."],
    "mix learn": ["t.conll", "-m", "MODEL", "-o", "t.mix.json"],
    "mix apply": ["layers.npy", "--weights", "0.2,0.3,0.5", "-o", "mixed.npy"],
    "mix show": ["t.mix.json"],
    "mix predict": ["t.conll", "--mix", "t.mix.json", "-m", "MODEL"],
}
# Options that only start processes or threads, as many as are asked for.
COUNTED = {"--workers": ("0", "-1", "x", "nan", ""), "--threads": ("1", "0", "-1", "x", "9" * 30)}
HELD_BACK = {"--help", "--show-completion", "--install-completion", "--tensorboard", "--check", "--resume"}


def options_of(name: str) -> Iterator[Any]:
    """Yield the options of a command, as Typer knows them."""
    import typer

    command: Any = typer.main.get_command(app)
    for part in name.split():
        command = command.commands[part]
    yield from (parameter for parameter in command.params if parameter.param_type_name == "option")


@st.composite
def command_lines(draw: st.DrawFn, name: str) -> list[str]:
    """Draw a command line: the sound one, with up to four options that may be anything."""
    options = [option for option in options_of(name) if not HELD_BACK & set(option.opts)]
    line = list(ARGUMENTS[name])
    for option in draw(st.lists(st.sampled_from(options), max_size=4)):
        long = max(option.opts, key=len)
        if option.is_flag:
            line.append(draw(st.sampled_from([*option.opts, *option.secondary_opts])))
        else:
            value = draw(st.sampled_from(COUNTED[long]) if long in COUNTED else values)
            line.append(f"{long}={value}")
    if draw(st.integers(0, 9)) == 0:
        line[draw(st.integers(0, len(line) - 1))] = draw(values)
    return [*line, *SMALL.get(name, [])]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, sound_model: Path) -> Iterator[Path]:
    """A folder with tiny inputs of all kinds."""
    folder = tmp_path_factory.mktemp("options") / "deep" / "deeper" / "here"
    folder.mkdir(parents=True)
    (folder / "t.txt").write_text("the boat left\nA boat !\n\nthe boat\n" * 3)
    (folder / "t.conll").write_text("the D\nboat N\n\nA D\nboat N\n\n" * 4)
    np.save(folder / "layers.npy", np.ones((4, 3, 16), np.float32))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("ELMO_CACHE", str(folder / "cache"))
        yield folder


@pytest.mark.parametrize("name", ARGUMENTS)
def test_any_options_are_an_answer_or_a_refusal(name: str, here: Path, sound_model: Path) -> None:
    if name in ("mix show", "mix predict") and not (here / "t.mix.json").exists():
        run(["mix", "learn", *ARGUMENTS["mix learn"], *SMALL["mix learn"]], sound_model)

    @settings(examples(8))
    @given(line=command_lines(name))
    def check(line: list[str]) -> None:
        run([*name.split(), *line], sound_model)

    check()


def run(line: list[str], model: Path) -> None:
    """Run a command line in this process, and check its end."""
    arguments = [str(model) if part == "MODEL" else part for part in line]
    result = CliRunner().invoke(app, arguments, input=b"boat\n")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise AssertionError(json.dumps(line)) from result.exception
    assert result.exit_code in (0, 1, 2, 3), line
    assert "Traceback" not in result.stderr, line
    with suppress(ValueError):
        assert result.exit_code == 0 or "error" in result.stderr.lower() or "Usage" in result.stderr, line


@pytest.mark.parametrize("name", ["embed", "index", "neighbors", "perplexity", "surprisal"])
def test_an_unknown_input_mode_is_a_wrong_command_line(name: str, here: Path, sound_model: Path) -> None:
    arguments = [str(sound_model) if part == "MODEL" else part for part in ARGUMENTS[name]]
    result = CliRunner().invoke(app, [name, *arguments, "--input=0", "--device=cpu"])
    assert result.exit_code == 2, result.stderr
    assert "--input '0' is not known" in result.stderr

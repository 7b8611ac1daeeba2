"""Where the vectors of `elmo embed` go: one output for all texts, or one for each in a folder; and whether they fit."""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmo_cli.commands.options import choose, refuse_own_input, would_replace
from elmo_cli.commands.streams import is_stdout, mode_of_stdout
from elmo_cli.embedding.size import estimate_size
from elmo_cli.errors import ConfigError, OutputError, Place
from elmo_cli.reporting import Reporter
from elmo_cli.storage.vector_formats import FORMATS, SPOOLED_FORMATS, TEXT_FORMATS, VectorForm, format_of
from elmo_cli.text.sources import STDIN, find_sources

_WORTH_SAYING = 1e8  # bytes of vectors
_CERTAIN = 0.7  # an estimate by the beginnings of texts is seldom further off than this


@dataclass(frozen=True, slots=True)
class Job:
    """Texts whose vectors go into one output.

    Attributes:
        sources: of text, as `find_sources` names them.
        output: where to; None for standard output.
        table: of tokens; None for no table.
    """

    sources: list[str]
    output: Path | None
    table: Path | None


@dataclass(frozen=True, slots=True)
class Targets:
    """What the command line says of the outputs.

    Attributes:
        form: one of `FORMATS`.
        output: one file for all; None or ``-`` for standard output.
        out_dir: a folder with an output for each text; None for one output.
        tokens_out: the table of tokens, or the folder of tables.
        force: replace what is there.
        skip_existing: leave out texts whose outputs are there.
    """

    form: str
    output: Path | None
    out_dir: Path | None
    tokens_out: Path | None
    force: bool
    skip_existing: bool

    def check(self) -> None:
        """Refuse options that do not go together.

        Raises:
            ConfigError: with what to do.
        """
        if self.out_dir is not None and self.output is not None:
            raise ConfigError("-o names one output, --out-dir a folder of them", fix="give one of the two")
        if self.skip_existing and self.out_dir is None:
            raise ConfigError("--skip-existing is for the outputs in --out-dir", fix="add --out-dir DIR")
        if self.skip_existing and self.force:
            raise ConfigError("--skip-existing keeps what is there, --force replaces it", fix="give one of the two")
        if self.tokens_out is not None and self.out_dir is None and self.tokens_out == (self.output or Path("-")):
            raise ConfigError(
                f"vectors and table would both go to {self.tokens_out}", fix="choose another --tokens-out"
            )

    def of_text(self) -> list[Path | None]:
        """Return where lines of text go, if not into a folder; None is standard output."""
        if self.out_dir is not None:
            return []
        vectors = [self.output] if self.form in TEXT_FORMATS else []
        return vectors + ([] if self.tokens_out is None else [self.tokens_out])

    def jobs(self, arguments: Sequence[str], suffixes: Sequence[str]) -> list[Job]:
        """Return what is to be done, with everything wrong about inputs and outputs found before it begins.

        Args:
            arguments: texts as named on the command line.
            suffixes: of the files that are taken from a folder.

        Raises:
            ConfigError: an output exists or is one of the texts, or two texts would have the same one.
            DataError: a text is not there.
        """
        if self.out_dir is None:
            job = Job(find_sources(arguments, suffixes), self.output, self.tokens_out)
            refuse_own_input((job.output, job.table), job.sources)
            _refuse_existing([job], force=self.force)
            return [job]
        jobs = list(self._jobs_in(self.out_dir, arguments, suffixes))
        _refuse_same_output(jobs)
        paths = [path for job in jobs for path in (job.output, job.table) if path is not None]
        refuse_own_input(paths, [source for job in jobs for source in job.sources])
        if self.skip_existing:
            return [job for job in jobs if not all(path.exists() for path in (job.output, job.table) if path)]
        _refuse_existing(jobs, force=self.force)
        return jobs

    def _jobs_in(self, out_dir: Path, arguments: Sequence[str], suffixes: Sequence[str]) -> Iterator[Job]:
        ending = FORMATS[self.form][0]
        for argument in arguments:
            if argument == STDIN:
                raise ConfigError(
                    "--out-dir names outputs after files, and standard input has no name",
                    fix="name files or folders, or write one output with -o FILE",
                )
            if ending in suffixes and _is_below(out_dir, Path(argument)):
                raise ConfigError(
                    f"outputs in {out_dir} would be taken for texts of {argument} the next time",
                    fix="choose an --out-dir outside of it",
                )
            for source in find_sources([argument], suffixes):
                name = os.path.relpath(source, argument) if os.path.isdir(argument) else os.path.basename(source)
                table = None if self.tokens_out is None else self.tokens_out / f"{name}.tsv"
                yield Job([source], out_dir / f"{name}{ending}", table)


def choose_format(form: str | None, output: Path | None, *, to_stdout: bool) -> str:
    """Return the output's format: as asked, by the file's name, or npy; never binary on a terminal.

    Raises:
        ConfigError: there is no such format, or the name does not tell it.
    """
    if form is not None:
        choose("--format", form, tuple(FORMATS))
    elif output is not None and output.suffix:
        form = format_of(output)
        if form is None and not output.is_char_device() and not output.is_fifo():
            endings = [ending for endings in FORMATS.values() for ending in endings]
            raise ConfigError(
                f"the name {output} does not tell the format", fix=f"end it in {' or '.join(endings)}, or add -f"
            )
    form = form or "npy"
    if to_stdout and form not in TEXT_FORMATS and sys.stdout.isatty():
        raise ConfigError(
            "not writing binary vectors to a terminal", fix="add -o vectors.npy or > vectors.npy, or choose -f jsonl"
        )
    return form


def announce_size(targets: Targets, form: VectorForm, sources: Sequence[str], mode: str, reporter: Reporter) -> None:
    """Say how large a large output will be, and whether there is room for it, where this can be known cheaply.

    Args:
        targets: where to.
        form: of the vectors.
        sources: of text.
        mode: what the text is.
        reporter: told the size; warned where it may not fit.

    Raises:
        OutputError: it will not fit.
    """
    size = estimate_size(sources, mode)
    if size is None:
        return
    needed = size.vector_bytes(form)
    if needed >= _WORTH_SAYING:
        reporter.note(f"about {_bytes_text(needed)} of vectors ({form.format})")
    for name, free in _free_space(targets):
        room = f"{_bytes_text(free)} are free on the disk of {name}"
        if needed * _CERTAIN > free:
            raise OutputError(
                f"about {_bytes_text(needed)} of vectors do not fit: {room}",
                fix="choose another disk, --pool mean, --dtype float16 or fewer layers",
            )
        if needed > free:
            reporter.warn(f"about {_bytes_text(needed)} of vectors may not fit: {room}")


def _free_space(targets: Targets) -> Iterator[tuple[str, int]]:
    """Yield each place on a disk that the vectors go through, and the bytes that are free there."""
    goal = targets.out_dir or targets.output
    if goal is not None and not is_stdout(goal):
        if goal.is_char_device() or goal.is_fifo():
            return
        folder = next(parent for parent in (goal.absolute(), *goal.absolute().parents) if parent.is_dir())
        yield str(goal), shutil.disk_usage(folder).free
    elif stat.S_ISREG(mode_of_stdout()):
        disk = os.fstatvfs(sys.stdout.fileno())
        yield "standard output", disk.f_bavail * disk.f_frsize
    else:
        return
    if targets.form in SPOOLED_FORMATS:
        folder = Path(tempfile.gettempdir())
        yield f"temporary files (TMPDIR, {folder})", shutil.disk_usage(folder).free


def _is_below(path: Path, folder: Path) -> bool:
    return folder.is_dir() and path.resolve().is_relative_to(folder.resolve())


def _refuse_same_output(jobs: Sequence[Job]) -> None:
    sources: dict[Path, str] = {}
    for job in jobs:
        if job.output is None:
            continue
        other = sources.setdefault(job.output, job.sources[0])
        if other is not job.sources[0]:
            raise ConfigError(
                f"the vectors of {other} and of {job.sources[0]} would both go to {job.output}",
                fix="name the folder above them, or run the command twice",
            )


def _refuse_existing(jobs: Sequence[Job], *, force: bool) -> None:
    paths = [path for job in jobs for path in (job.output, job.table) if path is not None and would_replace(path)]
    if not paths or force:
        return
    if len(jobs) == 1:
        raise ConfigError(
            "the file exists", where=Place(str(paths[0])), fix="replace it with --force, or choose another -o"
        )
    more = f", and so do {len(paths) - 1:,} more" if len(paths) > 1 else ""
    raise ConfigError(
        f"the file exists{more}",
        where=Place(str(paths[0])),
        fix="keep what is there with --skip-existing, or replace it with --force",
    )


def _bytes_text(size: float) -> str:
    """Return bytes in the unit that fits: ``340 MB``, ``1.2 GB``."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB"

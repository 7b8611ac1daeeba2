"""The work of `elmo embed` once its command line is understood: one output after the other, by one model."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from elmo_cli.commands.embed_target import Job, Targets
from elmo_cli.commands.streams import output_stream, show_answer_alone
from elmo_cli.reporting import Progress, Reporter
from elmo_cli.storage.vector_formats import VectorForm

if TYPE_CHECKING:
    from elmo_cli.embedding.write import SentenceEmbedder, WhatToWrite, Written
    from elmo_cli.text.sentence import Sentence


@dataclass(frozen=True, slots=True)
class EmbedWork:
    """All that is the same for every output.

    Attributes:
        targets: where the vectors go.
        form: of the outputs.
        what: layers and pooling of the vectors.
        embedder: computes them.
        read: returns the sentences of some texts.
    """

    targets: Targets
    form: VectorForm
    what: "WhatToWrite"
    embedder: "SentenceEmbedder"
    read: "Callable[[list[str]], Iterator[Sentence]]"

    def run(self, jobs: list[Job], reporter: Reporter) -> "Written":
        """Write one output after the other and return what was written in all."""
        from elmo_cli.embedding.write import Written

        written = Written()
        for target in self.targets.of_text():
            show_answer_alone(target, reporter)
        done = 0
        try:
            with reporter.progress("embedding", None, "tokens") as progress:
                for job in jobs:
                    status = f"file {done + 1:,}/{len(jobs):,}" if self.targets.out_dir is not None else ""
                    self._run_one(job, written, progress, status)
                    done += 1
        finally:
            if 0 < done < len(jobs) and self.targets.out_dir is not None:
                reporter.note(f"{done:,} of {len(jobs):,} outputs are written; --skip-existing goes on from there")
        return written

    def _run_one(self, job: Job, written: "Written", progress: Progress, status: str) -> None:
        from elmo_cli.embedding.write import embed_into
        from elmo_cli.storage.files import make_folder
        from elmo_cli.storage.token_table import TokenTableWriter

        if self.targets.out_dir is not None:
            for path in (job.output, job.table):
                if path is not None:
                    make_folder(path.parent)
        with ExitStack() as open_files:
            stream = open_files.enter_context(output_stream(job.output))
            table = None
            if job.table is not None:
                table_stream = open_files.enter_context(output_stream(job.table))
                table = TokenTableWriter(table_stream, pooled=self.form.pooled)
            sink = open_files.enter_context(self.form.sink(stream))
            embed_into(
                sink,
                self.read(job.sources),
                self.embedder,
                self.what,
                table=table,
                progress=progress,
                written=written,
                status=status,
            )

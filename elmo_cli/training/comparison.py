"""Perplexities of a text before and after fine-tuning."""

from dataclasses import dataclass
from typing import Any

from elmo_cli.evaluation.perplexity import Perplexity
from elmo_cli.reporting import counted


@dataclass(frozen=True, slots=True)
class Comparison:
    """One text, measured by the models of one fine-tuning.

    Attributes:
        base: of the base as it was, with its own vocabulary; None if it has no softmax.
        start: of the model that the training of all weights began with, where it predicts other words than the base:
            with words added, or with a softmax just learned; None where it is the base.
        after: of the model that was kept; None before it has been measured.
    """

    base: Perplexity | None
    start: Perplexity | None
    after: Perplexity | None = None

    @property
    def before(self) -> Perplexity:
        """What `after` is to be compared with: both predict the same words."""
        found = self.start or self.base
        if found is None:
            raise ValueError("a text was measured by no model")
        return found

    def to_json(self) -> dict[str, Any]:
        """Return what a model's config records."""
        figures = {"base": self.base, "start": self.start, "after": self.after}
        return {name: found.to_json() for name, found in figures.items() if found is not None}

    def line(self, name: str) -> str:
        """Return the comparison as a line of text for a person."""
        before, after = self.before, self.after
        parts = [f"{before.both:,.2f} before"]
        rates = [f"{before.oov_rate:.2%}"]
        if self.start is not None and self.base is not None:
            parts = [f"{self.base.both:,.2f} before ({before.both:,.2f} once its words are added)"]
            rates = [f"{self.base.oov_rate:.2%} before, {before.oov_rate:.2%} after"]
        elif self.start is not None:
            parts = [f"{before.both:,.2f} with a new softmax"]
        if after is not None:
            parts.append(f"{after.both:,.2f} after")
        return (
            f"{name} perplexity {', '.join(parts)}, on {counted(before.tokens, 'token')}; "
            f"outside the vocabulary: {', '.join(rates)}"
        )

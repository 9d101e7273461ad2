"""One run of a bench: its results so far, and its output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from confluent_kafka import KafkaException
from rich.console import Console

from .java import ToolFailed
from .report import Results
from .rows import Figure

_FAILURES = (ToolFailed, KafkaException, RuntimeError, OSError, EOFError, AssertionError)


class Run:
    """``names`` are those of the brokers or clusters; if there are two, ratios are of the first to the second.

    ``beside`` is the name of one that runs some loads, too, and is not compared.
    """

    def __init__(self, names: Sequence[str], beside: str | None = None) -> None:
        self.results = Results(names[0], names[1] if len(names) > 1 else None, beside)
        self.failures: list[str] = []
        self.profiles: dict[str, Counter[str]] = {}
        self._console = Console(stderr=True, highlight=False)

    def _measure(self, load: str, name: str, pair: int, figures: Iterable[Figure]) -> None:
        """Run a load and add its figures; if it fails, the others still run."""
        try:
            found = self.results.add(name, pair, figures)
        except _FAILURES as error:
            self.failures.append(f"{load}, {name}")
            self._console.print(f"[red]{load}, {name}: {error}[/red]")
            return
        shown = ", ".join(f"{figure.value:,.4g} {figure.unit}" for figure in found)
        self._console.print(f"{load}, {name}: {shown}")

    def _warm_up(self, name: str, figures: Iterable[Figure]) -> None:
        """Run a load that isn't counted."""
        rate = next(iter(figures)).value
        self._console.print(f"warm-up, {name}: {rate:,.4g} records/s, not counted")

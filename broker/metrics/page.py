"""``python -m ottla.broker.metrics.page FILE`` rewrites the table of all metrics, between its two marks in a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from .families import FAMILIES

BEGIN = "<!-- metrics: written by `make docs` -->"
END = "<!-- end of metrics -->"


def with_table(page: str) -> str:
    """The page with its table made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return "\n".join([before + BEGIN, *_table(), END + after])


def _table() -> Iterator[str]:
    yield "| metric | kind | labels | meaning | in Kafka |"
    yield "| --- | --- | --- | --- | --- |"
    for family in FAMILIES:
        labels = ", ".join(f"`{label}`" for label in family.labels)
        kafka = f"`{family.kafka}`" if ":" in family.kafka else family.kafka
        yield f"| `{family.name}` | {family.kind.value} | {labels} | {family.meaning} | {kafka} |"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(with_table(file.read_text()))

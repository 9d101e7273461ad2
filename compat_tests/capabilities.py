"""Which client can do what on this broker: the record that a run keeps, and the table it writes.

Every test carries ``@pytest.mark.capability("…")``, the row. Its column is the client: the ``client`` parameter for the
Python clients, ``pytest.mark.client("…")`` of the module for everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

WORST_FIRST = ("FAIL", "skipped", "ok")


@dataclass
class Record:
    """Outcomes by (client, capability)."""

    outcomes: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    not_offered: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, client: str, capability: str, outcome: str) -> None:
        """One test's result: ok, FAIL or skipped."""
        self.outcomes.setdefault((client, capability), []).append(outcome)

    def cell(self, client: str, capability: str) -> str:
        """The worst of a capability's results and their number."""
        if (client, capability) in self.not_offered:
            return "n/a"
        outcomes = self.outcomes.get((client, capability), [])
        for kind in WORST_FIRST:
            if kind in outcomes:
                return kind if kind == "ok" or len(outcomes) == 1 else f"{kind} {outcomes.count(kind)}/{len(outcomes)}"
        return ""

    def write(self, path: Path, heading: str, versions: Mapping[str, str]) -> None:
        """The table as Markdown."""
        clients = sorted({client for client, _ in self.outcomes})
        shared = [client for client in clients if any(name == client for name, _ in self.not_offered)]
        lines = [heading, "", "| client | version |", "|---|---|"]
        lines += [f"| {client} | {versions[client]} |" for client in clients if client in versions]
        columns = [client for client in clients if client in shared or client in versions]
        rows = sorted({capability for client, capability in self.outcomes if client in columns})
        lines += ["", "## Python clients", "", *table(columns, rows, self)]
        for client in clients:
            if client not in columns:
                own = sorted({capability for name, capability in self.outcomes if name == client})
                lines += ["", f"## {client}", "", *table([client], own, self)]
        if self.not_offered:
            lines += ["", "n/a: the client's public API has no such thing.", ""]
            lines += [f"* {client}, {row}: {why}" for (client, row), why in sorted(self.not_offered.items())]
        path.write_text("\n".join(lines) + "\n")


def table(columns: list[str], rows: list[str], record: Record) -> list[str]:
    """Capabilities down, clients across."""
    lines = ["| capability | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    return lines + [f"| {row} | " + " | ".join(record.cell(client, row) for client in columns) + " |" for row in rows]

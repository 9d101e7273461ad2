"""Which client can do what on this broker: the record that a run keeps, and the table it writes.

Every test carries ``@pytest.mark.capability("…")``, the row. Its column is the client: the ``client_name`` parameter for
the client libraries, ``pytest.mark.client("…")`` of the module for everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

WORST_FIRST = ("FAIL", "skipped", "ok")


@dataclass
class Record:
    """Outcomes by (client, capability). ``not_offered`` says what a client's public API has no way to ask for."""

    outcomes: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    not_offered: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, client: str, capability: str, outcome: str) -> None:
        """One test's result: ok, FAIL or skipped."""
        self.outcomes.setdefault((client, capability), []).append(outcome)

    def cell(self, client: str, capability: str) -> str:
        """The worst of a capability's results, with their number when not all are like that."""
        if (client, capability) in self.not_offered:
            return "n/a"
        outcomes = self.outcomes.get((client, capability), [])
        for kind in WORST_FIRST:
            if count := outcomes.count(kind):
                return kind if count == len(outcomes) else f"{kind} ({count} of {len(outcomes)} tests)"
        return ""

    def clients(self) -> list[str]:
        """Everybody who took part."""
        return sorted({client for client, _ in self.outcomes})

    def rows(self, clients: Iterable[str]) -> list[str]:
        """The capabilities that these clients have results for."""
        wanted = set(clients)
        return sorted({capability for client, capability in self.outcomes if client in wanted})

    def table(self, clients: list[str]) -> list[str]:
        """Capabilities down, clients across."""
        lines = ["| capability | " + " | ".join(clients) + " |", "|---" * (len(clients) + 1) + "|"]
        return lines + [
            f"| {row} | " + " | ".join(self.cell(client, row) for client in clients) + " |"
            for row in self.rows(clients)
        ]

    def page(self, heading: str, introduction: str, libraries: Iterable[str], versions: Mapping[str, str]) -> str:
        """All of it as Markdown."""
        present = self.clients()
        together = [client for client in libraries if client in present]
        tests = sum(map(len, self.outcomes.values()))
        failed = sum(outcomes.count("FAIL") for outcomes in self.outcomes.values())
        lines = [f"# {heading}", "", introduction, f"{tests} tests, {failed} of them failed.", ""]
        if versions:
            lines += ["| client | version |", "|---|---|"]
            lines += [f"| {client} | {version} |" for client, version in sorted(versions.items())]
        if together:
            lines += ["", "## Client libraries", "", *self.table(together)]
        for client in present:
            if client not in together:
                lines += ["", f"## {client}", "", *self.table([client])]
        why = [
            f"- {client}, {row}: {reason}" for (client, row), reason in self.not_offered.items() if client in present
        ]
        if why:
            lines += ["", "n/a: the client's public API has no such thing.", "", *sorted(why)]
        return "\n".join(lines) + "\n"

"""The results of a run: outages by system, event and producer, the faults found, and a table."""

from __future__ import annotations

import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterable

from .outages import Outage


class Report:
    """``wrong`` are records lost, doubled or reordered; ``errors`` what clients reported, by system and event."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.errors: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._found: dict[str, list[Outage]] = defaultdict(list)

    def add(self, system: str, outages: Iterable[Outage]) -> None:
        """Add and print what the producers saw of one event."""
        for outage in outages:
            self._found[system].append(outage)
            after = "" if outage.after_session is None else f", {outage.after_session:.3f} s after the session's end"
            began = time.strftime("%H:%M:%S", time.localtime(outage.gap_began)) + f"{outage.gap_began % 1:.3f}"[1:]
            self.say(
                f"{system}: {outage.event}: {outage.producer} had no response for {outage.gap:.3f} s from {began} on{after}"
            )

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def text(self) -> str:
        """The report in Markdown."""
        lines = [
            "| event | producer | "
            + " | ".join(f"{system}: {what}" for system in self._found for what in _COLUMNS)
            + " |",
            "|---|---|" + "---:|" * (len(_COLUMNS) * len(self._found)),
        ]
        rows = dict.fromkeys((o.event, o.producer) for found in self._found.values() for o in found)
        rows |= dict.fromkeys((event, "all") for event, _ in rows)
        for event, producer in sorted(rows):
            cells = []
            for found in self._found.values():
                chosen = [o for o in found if o.event == event and producer in ("all", o.producer)]
                cells += [_times(o.after_session for o in chosen), _times(o.gap for o in chosen)]
            lines.append(f"| {event} | {producer} | " + " | ".join(cells) + " |")
        lines += [
            f"- {system}, {event}: a client's errors: {each}" for (system, event), each in self.errors.items() if each
        ]
        lines += [f"- WRONG: {each}" for each in self.wrong] or ["- nothing lost, doubled or reordered"]
        return "\n".join(lines)


_COLUMNS = ("after the session's end", "whole gap")


def _times(seconds: Iterable[float | None]) -> str:
    """Median and maximum, as text."""
    known = [each for each in seconds if each is not None]
    return f"{statistics.median(known):.2f} (at most {max(known):.2f}) s" if known else ""

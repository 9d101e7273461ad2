"""``python -m ottla.tools.prose``: sentences that break a rule of plain English, beyond those that the baseline allows.

The baseline has the number of findings of each file that had some when it was made; a file that is not in it has none. A number
only falls: ``--lower`` writes the numbers of now where they are lower.

With files as arguments all their findings are printed, and none is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from .rules import Breach, breaches
from .texts import ROOT, Sentence, sentences, sources

BASELINE = Path(__file__).with_name("baseline.txt")


class Finding(NamedTuple):
    """A sentence and a rule that it breaks."""

    sentence: Sentence
    breach: Breach

    def __str__(self) -> str:
        where, why = self.sentence, self.breach
        return f"{where.path}:{where.line}: {why.rule}: {why.words!r} ({why.advice}): {where.shown}"


def findings(files: Iterable[Path]) -> Iterator[Finding]:
    """The findings in these files, in their order."""
    for file in files:
        for sentence in sentences(file):
            for breach in breaches(sentence.text, is_heading=sentence.is_heading):
                yield Finding(sentence, breach)


def read_baseline() -> dict[str, int]:
    """The number of findings that each file may have."""
    rows = (line.split(" ", 1) for line in BASELINE.read_text().splitlines())
    return {path: int(number) for number, path in rows}


def beyond(found: Iterable[Finding], allowed: Mapping[str, int]) -> list[Finding]:
    """The findings of files that have more than they may."""
    by_file: dict[str, list[Finding]] = {}
    for finding in found:
        by_file.setdefault(finding.sentence.path, []).append(finding)
    return [each for path, those in by_file.items() if len(those) > allowed.get(path, 0) for each in those]


def lowered(found: Iterable[Finding], allowed: Mapping[str, int]) -> dict[str, int]:
    """The baseline with the numbers of now where they are lower; a file without findings has no entry."""
    counts = dict.fromkeys(allowed, 0)
    for finding in found:
        if finding.sentence.path in counts:
            counts[finding.sentence.path] += 1
    return {path: min(count, allowed[path]) for path, count in sorted(counts.items()) if count}


def main(arguments: list[str]) -> int:
    """Print findings; 1 if a file has more than the baseline allows."""
    files = [Path(argument).resolve() for argument in arguments if not argument.startswith("-")]
    found = list(findings(files or sources()))
    if files:
        print(*found, sep="\n")
        print(f"{len(found)} findings")
        return 0
    allowed = read_baseline()
    if "--lower" in arguments:
        new = lowered(found, allowed)
        BASELINE.write_text("".join(f"{count} {path}\n" for path, count in new.items()))
        allowed = new
    much = beyond(found, allowed)
    for finding in much:
        print(finding)
    for path in sorted({finding.sentence.path for finding in much}):
        count = sum(finding.sentence.path == path for finding in much)
        print(f"{path}: {count} findings, {allowed.get(path, 0)} are allowed")
    if not much:
        print(f"{len(found):,} findings, {sum(allowed.values()):,} are allowed")
    return bool(much)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))


__all__ = ["ROOT", "Finding", "beyond", "findings", "lowered", "read_baseline"]

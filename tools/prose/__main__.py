"""``python -m ottla.tools.prose [FILE]...``: sentences that break a rule of plain English.

Without files it reads all pages, help texts, messages, log lines and templates. Exit status 1 if there are any.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from .rules import Breach, breaches
from .texts import Sentence, sentences, sources


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


def main(arguments: list[str]) -> int:
    """Print the findings; 1 if there are any."""
    found = list(findings([Path(argument).resolve() for argument in arguments] or sources()))
    for finding in found:
        print(finding)
    print(f"{len(found)} findings")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

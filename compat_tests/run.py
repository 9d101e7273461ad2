"""``ottla compat``: pytest on this folder, wherever it is installed and whatever pytest settings surround it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent


def main(argv: Sequence[str]) -> int:
    """Run the suite with pytest's arguments; the exit status. File names among them are relative to this folder."""
    targets = [str(FOLDER / word) for word in argv if names_a_test(word)] or [str(FOLDER)]
    options = [word for word in argv if not names_a_test(word)]
    fixed = ["-c", os.devnull, f"--rootdir={FOLDER}", "--import-mode=importlib", "-p", "no:cacheprovider", "-ra"]
    return int(pytest.main([*fixed, "--strict-markers", *options, *targets]))


def names_a_test(word: str) -> bool:
    """Whether an argument is a file or a folder/ of the suite, perhaps with ``::test``."""
    path = word.partition("::")[0]
    return path.endswith((".py", "/")) and (FOLDER / path).exists()

"""Processes of ``ottla serve``, which end with the test."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..helpers.served import Served


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """Starts broker processes, which end with the test."""
    started: list[Served] = []

    def start(*arguments: str) -> Served:
        started.append(Served(*arguments))
        return started[-1]

    yield start
    for broker in started:
        if broker.process.poll() is None:
            broker.stop(signal.SIGKILL)


@pytest.fixture
def served(serve: Callable[..., Served], tmp_path: Path) -> Served:
    return serve("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data"))

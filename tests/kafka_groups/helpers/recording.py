"""A walk that has been played on a broker of Apache Kafka, kept in a file: it is played again without one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .steps import Ask, Response, Responses, Step


def write_recording(file: Path, seed: int, played: Sequence[tuple[Step, Responses]]) -> None:
    """A line for each step, after one for the seed and the number of requests."""
    requests = sum(isinstance(step, Ask) for step, _ in played)
    steps = ({"step": str(step), "responses": responses} for step, responses in played)
    lines = [{"seed": seed, "requests": requests}, *steps]
    file.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


class RecordedPlayer:
    """Plays the steps of the recording, in their order. ``seed`` is that of its walk, ``count`` its requests."""

    def __init__(self, file: Path) -> None:
        first, *lines = map(json.loads, file.read_text().splitlines())
        self.seed: int = first["seed"]
        self.count: int = first["requests"]
        self._lines = iter(lines)

    def play(self, step: Step) -> Mapping[str, Any]:
        """What came at this step."""
        line = next(self._lines)
        assert line["step"] == str(step), f"walks have changed: record this one again\n{line['step']}\n{step}"
        responses: Mapping[str, Any] = line["responses"]
        return responses

    def wait(self, who: str) -> None:
        """Nothing has come for this connection at this step."""

    def in_walks_names(self, who: str, response: Any) -> Response:
        """As they were recorded."""
        return {"error_code": "no response"} if response is None else response

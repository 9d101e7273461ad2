"""A walk on two brokers in lock step, and the differences between their responses."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

from .broker_player import BrokerPlayer
from .steps import ADMIN, Ask, Response, Responses, Step
from .walk import LATER, TOPICS, Walk


@dataclasses.dataclass
class Difference:
    """Two responses to one request."""

    number: int
    """Of the step."""
    step: Step
    """The last one; an earlier request may have waited until it."""
    who: str
    responses: tuple[Response, Response]
    history: Sequence[str]
    """The steps of the group before, and the responses."""

    def __str__(self) -> str:
        fields = differing(*self.responses)
        found = "\n".join(f"  {field}: {first!r} | {second!r}" for field, first, second in fields)
        return f"step {self.number} at {self.who}: {self.step}\n{found}"


def differing(first: Any, second: Any, field: str = "") -> list[tuple[str, Any, Any]]:
    """The fields in which two responses differ, by path, with both values."""
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        return [each for name in first for each in differing(first[name], second[name], f"{field}.{name}".lstrip("."))]
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        pairs = enumerate(zip(first, second, strict=True))
        return [each for place, pair in pairs for each in differing(*pair, f"{field}[{place}]")]
    return [] if first == second else [(field, first, second)]


class Comparison:
    """Two brokers that a walk is played on. ``counts`` has the responses by request and error code."""

    def __init__(self, first: str, second: str) -> None:
        self._players = [BrokerPlayer(address, TOPICS, LATER) for address in (first, second)]
        self.differences: list[Difference] = []
        self.counts: Counter[str] = Counter()
        self.led_by_others = 0
        """Groups that have chosen different leaders, which is for each broker to choose."""
        self._histories: dict[str, list[str]] = {}

    def close(self) -> None:
        """Close all connections."""
        for player in self._players:
            player.close()

    def run(self, seed: int, count: int, most: int = 1) -> None:
        """So many requests, or until there are ``most`` differences. A group that differs is left alone from then on."""
        walk = Walk(seed)
        steps = walk.steps()
        step = next(steps)
        number = 0
        while number < count and len(self.differences) < most:
            number += isinstance(step, Ask)
            step = steps.send(self._play(number, step, walk.left_alone))

    def _play(self, number: int, step: Step, left_alone: set[str]) -> Responses:
        come = [player.play(step) for player in self._players]
        found: Responses = {}
        for who in sorted({*come[0], *come[1]}):
            raw = [
                mine[who] if who in mine else player.wait(who) for mine, player in zip(come, self._players, strict=True)
            ]
            pair = [
                _without(player.in_walks_names(who, each), left_alone)
                for player, each in zip(self._players, raw, strict=True)
            ]
            found[who] = pair[0]
            name = type(raw[0]).__name__.removesuffix("Response")
            self.counts[f"{name} {pair[0].get('error_code', '')}"] += 1
            self._note(who, step, pair[0])
            if pair[0] != pair[1]:
                self._differ(number, step, who, (pair[0], pair[1]), left_alone)
        return found

    def _note(self, who: str, step: Step, response: Response) -> None:
        group = _group_of(who, step)
        self._histories.setdefault(group, []).append(f"{step}\n    {who}: {response}")

    def _differ(self, number: int, step: Step, who: str, pair: tuple[Response, Response], left_alone: set[str]) -> None:
        group = _group_of(who, step)
        fields = {field.partition("[")[0] for field, _, _ in differing(*pair)}
        left_alone |= {group} if group else _groups_in(*pair)
        if fields <= {"leader", "members"} and "generation_id" in pair[0]:
            self.led_by_others += 1
        else:
            self.differences.append(Difference(number, step, who, pair, self._histories[group]))


def _group_of(who: str, step: Step) -> str:
    """The group of a connection or, for the admin's, of the request; empty where it is of several or none."""
    if who != ADMIN or not isinstance(step, Ask):
        return who.rpartition("/")[0]
    request: Any = step.request
    names = (
        getattr(request, "group_ids", None) or getattr(request, "groups", None) or getattr(request, "groups_names", [])
    )
    return getattr(request, "group_id", "") or (names[0] if len(names) == 1 else "")


def _groups_in(first: Response, second: Response) -> set[str]:
    """Those that are not alike."""
    found = [{each["group_id"]: each for each in response.get("groups", [])} for response in (first, second)]
    return {name for name in {*found[0], *found[1]} if found[0].get(name) != found[1].get(name)}


def _without(response: Response, groups: set[str]) -> Response:
    """A response without some groups."""
    if not isinstance(response.get("groups"), list):
        return response
    return {**response, "groups": [each for each in response["groups"] if each["group_id"] not in groups]}

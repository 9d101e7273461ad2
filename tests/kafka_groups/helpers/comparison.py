"""A walk on brokers in lock step, and the differences between their responses."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Protocol

from .steps import ADMIN, Ask, Response, Responses, Step


class RandomWalk(Protocol):
    """What is asked next."""

    left_alone: set[str]
    """Groups that are asked no more, because brokers differ in them. Another one takes the place of each."""

    def steps(self) -> Generator[Step, Responses, None]:
        """Steps without end, which are sent the responses to each."""
        ...


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


def shown(differences: Sequence[Difference]) -> str:
    """With what the group was asked before."""
    return "\n".join("\n    ".join([str(each), *each.history[-12:]]) for each in differences)


def differing(first: Any, second: Any, field: str = "") -> list[tuple[str, Any, Any]]:
    """The fields in which two responses differ, by path, with both values."""
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        return [each for name in first for each in differing(first[name], second[name], f"{field}.{name}".lstrip("."))]
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        pairs = enumerate(zip(first, second, strict=True))
        return [each for place, pair in pairs for each in differing(*pair, f"{field}[{place}]")]
    return [] if first == second else [(field, first, second)]


class Player(Protocol):
    """A broker that steps are played on, or what one has answered once."""

    def play(self, step: Step) -> Mapping[str, Any]:
        """The responses that have come, by connection; that of the step may not be there yet."""
        ...

    def wait(self, who: str) -> Any:
        """The response that this connection waits for; None where none comes."""
        ...

    def in_walks_names(self, who: str, response: Any) -> Response:
        """A response as walks know it."""
        ...


class Comparison:
    """A walk on some brokers. ``counts`` has the first one's responses by request and error code."""

    def __init__(self, make_walk: Callable[[int], RandomWalk], *players: Player) -> None:
        """``make_walk`` takes a seed."""
        self._make_walk = make_walk
        self._players = players
        self.differences: list[Difference] = []
        self.counts: Counter[str] = Counter()
        self.played: list[tuple[Step, Responses]] = []
        """The steps, and the responses of the first broker."""
        self.led_by_others = 0
        """Groups that have chosen different leaders, which is for each broker to choose."""
        self._histories: dict[str, list[str]] = {}

    def run(self, seed: int, count: int, most: int = 1) -> None:
        """So many requests, or until there are ``most`` differences. A group that differs is left alone from then on."""
        walk = self._make_walk(seed)
        steps = walk.steps()
        step = next(steps)
        number = 0
        while number < count and len(self.differences) < most:
            number += isinstance(step, Ask)
            responses = self._play(number, step, walk.left_alone)
            self.played.append((step, responses))
            step = steps.send(responses)

    def _play(self, number: int, step: Step, left_alone: set[str]) -> Responses:
        come = [player.play(step) for player in self._players]
        found: Responses = {}
        for who in sorted({who for mine in come for who in mine}):
            same = []
            for player, mine in zip(self._players, come, strict=True):
                raw = mine[who] if who in mine else player.wait(who)
                same.append(_comparable(player.in_walks_names(who, raw), left_alone))
            first = found[who] = same[0]
            self._note(who, step, first)
            for other in same[1:]:
                if first != other:
                    self._differ(number, step, who, (first, other), left_alone)
        return found

    def _note(self, who: str, step: Step, response: Response) -> None:
        group = _group_of(who, step)
        self._histories.setdefault(group, []).append(f"{step}\n    {who}: {response}")
        if isinstance(step, Ask) and who == step.who:
            self.counts[f"{type(step.request).__name__.removesuffix('Request')} {response.get('error_code', '')}"] += 1

    def _differ(self, number: int, step: Step, who: str, pair: tuple[Response, Response], left_alone: set[str]) -> None:
        group = _group_of(who, step)
        fields = {field.partition("[")[0] for field, _, _ in differing(*pair)}
        groups = {group} if group else _groups_in(*pair)
        left_alone |= groups
        if fields <= {"leader", "members"} and "generation_id" in pair[0]:
            self.led_by_others += 1
        else:
            history = [line for each in sorted(groups) for line in self._histories.get(each, ())]
            self.differences.append(Difference(number, step, who, pair, history))


def _group_of(who: str, step: Step) -> str:
    """The group of a connection or, for the admin's, of the request; empty where it is of several or none."""
    if who != ADMIN or not isinstance(step, Ask):
        return who.rpartition("/")[0]
    request: Any = step.request
    given = (getattr(request, name, None) for name in ("group_ids", "groups", "groups_names"))
    names = [getattr(each, "group_id", each) for each in next(filter(None, given), [])]
    return getattr(request, "group_id", "") or (names[0] if len(names) == 1 else "")


def _groups_in(first: Response, second: Response) -> set[str]:
    """Those that are not alike."""
    found = [{each["group_id"]: each for each in response.get("groups", [])} for response in (first, second)]
    return {name for name in {*found[0], *found[1]} if found[0].get(name) != found[1].get(name)}


def _comparable(response: Response, left_alone: set[str]) -> Response:
    """A response without the groups that are left alone, and without what is each broker's own."""
    if not isinstance(response.get("groups"), list):
        return response
    groups = [each for each in response["groups"] if each["group_id"] not in left_alone]
    return {**response, "groups": [_without_old_assignments(each) for each in groups]}


def _without_old_assignments(group: Response) -> Response:
    """During a rebalance, Kafka describes the assignments of before, and Ottla none."""
    if group.get("group_state") == "Stable" or "protocol_data" not in group:
        return group
    return {**group, "members": [{**member, "member_assignment": None} for member in group["members"]]}

"""A client of a schema registry with Confluent's API: schemas by id (GET /schemas/ids/N).

Only the address that the console was told of is asked, over http or https, and no redirection is followed. What is known of a
number stays known, for it never changes; what could not be had is asked for again after ``_FAILURE_SECONDS``. Numbers come from
records, so from anyone: at most ``_MOST_A_MINUTE`` are asked for, each for ``_SECONDS``, with ``_MOST_BYTES`` of a response.
"""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import trio

from ..view.http_client import HttpError, ask, read_address
from .avro import AvroSchema, SchemaError
from .trees import DecodeError, Tree, tree_of_json

_SECONDS = 5.0
_FAILURE_SECONDS = 30.0
_MOST_BYTES = 1 << 20
_MOST_KNOWN = 1000
_MOST_A_MINUTE = 120
_AT_ONCE = 4
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
_HEAD = 5
"""Confluent's framing: a byte 0, and the schema's number in four bytes, the highest first."""


class _Failure(NamedTuple):
    why: str
    at: float


class SchemaRegistry:
    """The schemas of one registry. ``load`` asks for them; ``read`` decodes with those that are known."""

    def __init__(self, url: str) -> None:
        """Raises ValueError."""
        self.address = read_address(url, "a schema registry", "http://127.0.0.1:8081")
        self._known: OrderedDict[int, AvroSchema | None] = OrderedDict()
        self._failed: dict[int, _Failure] = {}
        self._loading: dict[int, trio.Event] = {}
        self._asked: deque[float] = deque(maxlen=_MOST_A_MINUTE)

    # --- what is known ------------------------------------------------------------------------------------------------

    @staticmethod
    def number(data: bytes) -> int | None:
        """Of the schema with which the data was written; None where it is not framed so."""
        return int.from_bytes(data[1:_HEAD], "big", signed=True) if len(data) >= _HEAD and data[0] == 0 else None

    def is_known(self, number: int) -> bool:
        """Whether there is no need to ask for it, for it is there or cannot be had now; may be called in a worker thread."""
        return number in self._known or number in self._failed

    def read(self, data: bytes) -> Tree:
        """What framed data has in it. Raises DecodeError; may be called in a worker thread."""
        number = self.number(data)
        if number is None:
            raise DecodeError("This does not begin with a byte 0 and the number of a schema.")
        try:
            schema = self._known[number]
        except KeyError:
            failure = self._failed.get(number)
            raise DecodeError(failure.why if failure else f"Schema {number} is not known yet.") from None
        if schema is None:
            return tree_of_json(data[_HEAD:].decode("utf-8", "replace"))
        return schema.read(data[_HEAD:])

    # --- asking -------------------------------------------------------------------------------------------------------

    def forget_failures(self) -> None:
        """Those of some time ago."""
        old = trio.current_time() - _FAILURE_SECONDS
        self._failed = {number: failure for number, failure in self._failed.items() if failure.at > old}

    async def load(self, numbers: Iterable[int]) -> None:
        """Ask for those that are not known; afterwards each is known, or it is known why it is not."""
        wanted = [number for number in dict.fromkeys(numbers) if not self.is_known(number)]
        turns = trio.CapacityLimiter(_AT_ONCE)
        async with trio.open_nursery() as nursery:
            for number in wanted:
                nursery.start_soon(self._load_one, number, turns)

    async def _load_one(self, number: int, turns: trio.CapacityLimiter) -> None:
        if (other := self._loading.get(number)) is not None:  # several pages may need the same schema at once
            await other.wait()
            return
        done = self._loading[number] = trio.Event()
        try:
            async with turns:
                await self._ask(number)
        finally:
            del self._loading[number]
            done.set()

    async def _ask(self, number: int) -> None:
        now = trio.current_time()
        try:
            if len(self._asked) == _MOST_A_MINUTE and now - self._asked[0] < 60:
                raise DecodeError(
                    f"Schema {number} was not asked for: there were {_MOST_A_MINUTE} others within a minute."
                )
            self._asked.append(now)
            target = f"/schemas/ids/{number}"
            answer = await ask(self.address, target, accept=_ACCEPT, seconds=_SECONDS, most_bytes=_MOST_BYTES)
            self._know(number, _schema(number, answer.status, answer.body))
            self._failed.pop(number, None)
        except DecodeError as error:
            self._fail(number, str(error))
        except SchemaError as error:
            self._fail(number, f"Schema {number}: {error}")
        except HttpError as error:
            self._fail(number, f"Schema {number}: the registry {error}.")
        except ValueError as error:
            self._fail(number, f"Schema {number}: the registry cannot be queried: {error}.")

    def _know(self, number: int, schema: AvroSchema | None) -> None:
        self._known[number] = schema
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)

    def _fail(self, number: int, why: str) -> None:
        if len(self._failed) >= _MOST_KNOWN:
            self._failed.clear()
        self._failed[number] = _Failure(why, trio.current_time())


def _schema(number: int, status: int, body: bytes) -> AvroSchema | None:
    """None for a schema of JSON, of which nothing is needed. Raises DecodeError, SchemaError, ValueError."""
    if status == 404:
        raise DecodeError(f"The registry has no schema {number}.")
    if status != 200:
        raise DecodeError(f"Schema {number}: the registry responded with status {status}.")
    answer: Any = json.loads(body)
    kind = answer.get("schemaType", "AVRO") if isinstance(answer, dict) else None
    if kind == "JSON":
        return None
    if kind != "AVRO" or not isinstance(answer.get("schema"), str):
        raise DecodeError(f"Schema {number} is one of {kind}, which the console cannot read.")
    return AvroSchema(answer["schema"])

"""Operations of an active controller as text: requests, responses and records, as the captured files have them.

A message is a dict of its fields that differ from their defaults; ``error_code`` is a name, and bytes are hexadecimal. What is
chosen anew with each run has a name instead:

- a uuid is ``uuid 7``, in the order of appearance, or a name that the program gave it. Its 16 bytes are made of the name, so
  that a file can be replayed.
- a time in ms is ``now``, the time of the step itself, or ``step 12``, that of another, with a number of ms added.
- the HMAC of a delegation token is ``hmac of uuid 7``.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.wire.metadata_records import RECORD_TYPES, VersionedRecord, metadata_record_class
from ottla.wire.schema import Array, Message, Primitive, Struct, WireType

HERE = Path(__file__).parent.parent
TOKEN_SECRET = "the secret of the delegation tokens"
RESERVED = {"migrating": 0, "unassigned": 1, "lost": 2}
"""Directory ids that mean something."""
RECORDS = {metadata_record_class(number).__name__: metadata_record_class(number) for number in RECORD_TYPES}
STEP_MS = 10_001
"""How far apart the steps of a replay are: no whole number of seconds, so that it is told from how long tokens live."""
_BASE_MS = 1_700_000_000_000
_TIMES = (
    "issue_timestamp",
    "max_timestamp",
    "expiration_timestamp",
    "issue_timestamp_ms",
    "max_timestamp_ms",
    "expiry_timestamp_ms",
)
_LONGEST_MS = 8 * 24 * 3_600_000


def uuid_of(name: str) -> bytes:
    """The uuid of a name."""
    if name in RESERVED:
        return RESERVED[name].to_bytes(16, "big")
    return hashlib.sha256(name.encode()).digest()[:16]


def written(uuid: bytes) -> str:
    """A uuid as Kafka writes one."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode()


def hmac_of(token_id: str) -> bytes:
    return hmac.digest(TOKEN_SECRET.encode(), token_id.encode(), "sha512")


def replay_time(step: int) -> int:
    """The time of a step in a replay, in ms."""
    return _BASE_MS + step * STEP_MS


class Names:
    """The names of one run."""

    def __init__(self) -> None:
        self._names = {uuid_of(name): name for name in RESERVED}
        self._uuids = {name: uuid for uuid, name in self._names.items()}
        self._made = 0
        self._tokens: dict[bytes, str] = {}
        self.nows: dict[int, int] = {}
        """The times of steps, by their numbers."""

    # --- from a message to text ---------------------------------------------------------------------------------------

    def new_uuid(self) -> bytes:
        """What the next uuid that is chosen is to be, in a replay."""
        return self._uuid(f"uuid {self._made + 1}")

    def next_token_id(self) -> str:
        """That of the next token, in a replay; it stays the next one if no token is made."""
        return written(uuid_of(f"uuid {self._made + 1}"))

    def name_of(self, uuid: bytes) -> str:
        if uuid not in self._names:
            self._made += 1
            self._names[uuid] = f"uuid {self._made}"
            self._uuids[self._names[uuid]] = uuid
        return self._names[uuid]

    def _uuid(self, name: str) -> bytes:
        """The uuid that has appeared under a name, or that the name stands for."""
        if name not in self._uuids:
            self._uuids[name] = uuid_of(name)
            self._names[uuid_of(name)] = name
            if name.startswith("uuid "):
                self._made = max(self._made, int(name.removeprefix("uuid ")))
        return self._uuids[name]

    def text(self, struct: Struct, step: int) -> dict[str, Any]:
        """The fields of a struct that are not their defaults."""
        return {
            spec.name: self._value(spec.name, spec.type, getattr(struct, spec.name), step)
            for spec in struct.fields
            if getattr(struct, spec.name) != spec.make_default()
        }

    def records(self, records: Sequence[VersionedRecord], step: int) -> list[dict[str, Any]]:
        return [
            {"type": type(record).__name__, "version": version, **self.text(record, step)}
            for record, version in records
        ]

    def _value(self, name: str, kind: WireType, value: Any, step: int) -> Any:
        if value is None:
            return None
        if isinstance(kind, Array):
            return [self._value(name, kind.element, each, step) for each in value]
        if isinstance(kind, Primitive):
            return self._plain(name, kind, value, step)
        return self.text(value, step)

    def _plain(self, name: str, kind: Primitive, value: Any, step: int) -> Any:
        if name.endswith("error_code"):
            return ErrorCode(value).name
        if kind.name == "uuid":
            return self.name_of(bytes(value))
        if name == "token_id":
            named = self.name_of(base64.urlsafe_b64decode(value + "=="))
            self._tokens[hmac_of(value)] = named
            return named
        if name == "hmac" and bytes(value) in self._tokens:
            return f"hmac of {self._tokens[bytes(value)]}"
        if name in _TIMES and value > 0:
            return self._time(value, step)
        return bytes(value).hex() if kind.name == "bytes" else value

    def _time(self, value: int, step: int) -> str:
        """Relative to the step, or else to the last one before that can be meant."""
        for number in sorted(self.nows, key=lambda each: (each != step, -each)):
            added = value - self.nows[number]
            if 0 <= added < _LONGEST_MS and (added % 1_000 == 0 or added < 1_000):
                return f"{'now' if number == step else f'step {number}'}{f' + {added}' if added else ''}"
        raise AssertionError(f"the time {value} of step {step} belongs to none of {self.nows}")

    # --- from text to a message ---------------------------------------------------------------------------------------

    def message(self, cls: type[Struct], text: Mapping[str, Any], step: int) -> Any:
        """The opposite of ``text``."""
        kinds = {spec.name: spec.type for spec in cls.fields}
        return cls(**{name: self._read(name, kinds[name], value, step) for name, value in text.items()})

    def versioned(self, texts: Sequence[Mapping[str, Any]], step: int) -> Iterator[VersionedRecord]:
        """The opposite of ``records``."""
        for text in texts:
            fields = {name: value for name, value in text.items() if name not in ("type", "version")}
            record = self.message(RECORDS[text["type"]], fields, step)
            assert isinstance(record, Message)
            yield record, text["version"]

    def _read(self, name: str, kind: WireType, value: Any, step: int) -> Any:
        if value is None:
            return None
        if isinstance(kind, Array):
            return [self._read(name, kind.element, each, step) for each in value]
        if not isinstance(kind, Primitive):
            return self.message(kind, value, step)
        if name.endswith("error_code"):
            return ErrorCode[value]
        if kind.name == "uuid":
            return self._uuid(value)
        if name == "token_id":
            token_id = written(self._uuid(value))
            self._tokens[hmac_of(token_id)] = value
            return token_id
        if name == "hmac" and value.startswith("hmac of "):
            return hmac_of(written(self._uuid(value.removeprefix("hmac of "))))
        if name in _TIMES and isinstance(value, str):
            of, _, added = value.partition(" + ")
            number = step if of == "now" else int(of.removeprefix("step "))
            return replay_time(number) + int(added or 0)
        return bytes.fromhex(value) if kind.name == "bytes" else value


def dump(captured: Mapping[str, Any]) -> str:
    """The text of a file: a line for each request, response and record."""
    head = {name: value for name, value in captured.items() if name != "steps"}
    lines = [f"{json.dumps(name)}: {json.dumps(value, indent=1)}" for name, value in head.items()]
    return "{\n" + ",\n".join(lines) + ',\n"steps": [\n' + ",\n".join(map(_dump_step, captured["steps"])) + "\n]\n}\n"


def _dump_step(step: Mapping[str, Any]) -> str:
    parts = []
    for name, value in step.items():
        if isinstance(value, list) and value:
            parts.append(f"{json.dumps(name)}: [\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]")
        else:
            parts.append(f"{json.dumps(name)}: {json.dumps(value)}")
    return "{" + ",\n ".join(parts) + "}"


def load(name: str) -> Any:
    """A captured file."""
    return json.loads((HERE / name).read_text())

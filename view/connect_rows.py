"""Row types of Kafka Connect, and how they are read from the JSON that a worker answers with.

As in ``rows``: never changed. The value of a setting that may be a secret is not kept, so no page, search or error can show it.
Texts are those of whoever has made a connector, of any content and length; a stack trace is kept up to ``MOST_TRACE``.

Format of ``GET /connectors?expand=info&expand=status`` (KIP-465): an object with an entry for each connector, by name::

    {"info": {"config": {…}, "type": "sink"},
     "status": {"connector": {"state": "RUNNING", "worker_id": "host:port", "trace": "…"},
                "tasks": [{"id": 0, "state": "FAILED", "worker_id": "host:port", "trace": "…"}]}}

``trace`` is there where something has failed.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

MOST_TRACE = 16 * 1024
"""Characters of a stack trace."""
RUNNING, FAILED, UNASSIGNED = "RUNNING", "FAILED", "UNASSIGNED"
_SECRET = re.compile(
    r"pass(?:word|wd|phrase)|\bpwd|secret|token|credential|jaas|user\.?info|basic\.auth|authorization|auth[._-]?header"
    r"|(?:private|api|access|account|encryption|master|shared|sas|keystore|service)[._-]?key\b"
)
"""In the name of a setting, in small letters."""
_SECRET_INSIDE = re.compile(r"://[^/\s@:]*:[^/\s@]*@|(?:pass(?:word|wd)?|pwd|secret|token|(?:account|access)_?key)\s*=")
"""In a value, in small letters: a URL with a user's password, a property of a connection string."""
_REFERENCE = re.compile(r"\$\{[^{}]*\}")
"""A value that a config provider has (KIP-297): the worker looks it up, so this is no secret."""


@dataclasses.dataclass(frozen=True, slots=True)
class ConnectTaskRow:
    """A task of a connector."""

    number: int
    state: str
    """RUNNING, FAILED, PAUSED, UNASSIGNED, RESTARTING, or what a newer worker calls it."""
    worker: str
    """The worker that it runs on, HOST:PORT as that worker calls itself."""
    trace: str = ""
    """Why it has failed; empty if it has not."""

    @property
    def is_failed(self) -> bool:
        return self.state == FAILED


@dataclasses.dataclass(frozen=True, slots=True)
class ConnectorRow:
    """A connector with its tasks. Two are equal where workers tell the same of them: then both are of one Connect cluster."""

    name: str
    place: str = dataclasses.field(compare=False)
    """The worker that was asked, by the host, port and path of its URL."""
    kind: str
    """source or sink."""
    class_name: str
    state: str
    """As of a task, and STOPPED."""
    worker: str
    trace: str
    tasks: tuple[ConnectTaskRow, ...]
    config: tuple[tuple[str, str | None], ...]
    """The settings by name; None stands for a value that is hidden."""
    topics: tuple[str, ...]
    """Of a sink those that it is told to read; of a source none, for each class has a setting of its own."""
    topics_regex: str
    group: str | None
    """The group that a sink reads as; None for a source."""
    running: int
    failed: int
    unassigned: int
    """How many of its tasks are so; no worker has those that are unassigned."""

    @property
    def short_class(self) -> str:
        return self.class_name.rpartition(".")[2] or self.class_name

    @property
    def is_failed(self) -> bool:
        return self.state == FAILED

    @property
    def has_failed(self) -> bool:
        """Whether it, or one of its tasks, has failed."""
        return self.is_failed or self.failed > 0


@dataclasses.dataclass(frozen=True, slots=True)
class ConnectWorkerRow:
    """A worker that is asked, and its connectors."""

    place: str
    """The host, port and path of its URL."""
    url: str
    connectors: tuple[ConnectorRow, ...] = ()
    version: str = ""
    cluster_id: str = ""
    """Of the Kafka cluster that it has its own topics in."""
    why_not: str = ""
    """Why nothing is known of it, as the end of a sentence; empty if it has answered."""


def hidden(name: str, value: str) -> bool:
    """Whether the value of a setting may be a secret. A reference to a config provider is none."""
    if not value or _REFERENCE.fullmatch(value):
        return False
    if _SECRET.search(name.lower()):
        return True
    return ("=" in value or "@" in value) and _SECRET_INSIDE.search(value.lower()) is not None


def read_connectors(body: bytes, place: str) -> tuple[ConnectorRow, ...]:
    """Those of a worker's response, by name. Raises ValueError, RecursionError for what is no such response."""
    answer = _object(json.loads(body, object_hook=_as_it_is), "a list of connectors")
    return tuple(_connector(name, answer[name], place) for name in sorted(answer))


def _as_it_is(each: dict[str, Any]) -> dict[str, Any]:
    """A long list is read by a worker thread: calls of Python in between let the loop's thread go on."""
    return each


def read_tasks(body: bytes) -> tuple[ConnectTaskRow, ...]:
    """The tasks in the response to a request about one connector. Raises the same."""
    return _tasks(_object(json.loads(body), "a connector's state"))


def read_topics(body: bytes, name: str) -> tuple[str, ...]:
    """The topics that a connector has used (KIP-558). Raises the same."""
    answer = _object(json.loads(body), "a connector's topics").get(name)
    topics = answer.get("topics") if isinstance(answer, dict) else None
    return tuple(sorted({_utf8(each) for each in topics if isinstance(each, str)})) if isinstance(topics, list) else ()


def read_worker(body: bytes) -> tuple[str, str]:
    """A worker's version, and the id of its Kafka cluster. Raises the same."""
    answer = _object(json.loads(body), "the description of a Connect worker")
    return _text(answer, "version"), _text(answer, "kafka_cluster_id")


def read_message(body: bytes) -> str:
    """The reason in the response to a request that was refused; empty where it has none."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    return _text(answer, "message") if isinstance(answer, dict) else ""


def _connector(name: str, told: Any, place: str) -> ConnectorRow:
    entry = _object(told, "a connector")
    info, status = _part(entry, "info"), _part(entry, "status")
    state = _part(status, "connector")
    told_settings = _part(info, "config")
    settings = {_utf8(key): _text(told_settings, key) for key in told_settings}
    kind = _text(info, "type") or _text(status, "type")
    topics = [topic.strip() for topic in settings.get("topics", "").split(",")] if kind == "sink" else []
    name = _utf8(name)
    tasks = _tasks(status)
    states = Counter(task.state for task in tasks)
    return ConnectorRow(
        name,
        place,
        kind,
        settings.get("connector.class", ""),
        _text(state, "state") or "not known",
        _text(state, "worker_id"),
        _text(state, "trace")[:MOST_TRACE],
        tasks,
        tuple((key, None if hidden(key, settings[key]) else settings[key]) for key in sorted(settings)),
        tuple(topic for topic in topics if topic),
        settings.get("topics.regex", "") if kind == "sink" else "",
        settings.get("consumer.override.group.id") or f"connect-{name}" if kind == "sink" else None,
        states[RUNNING],
        states[FAILED],
        states[UNASSIGNED],
    )


def _tasks(status: Mapping[str, Any]) -> tuple[ConnectTaskRow, ...]:
    tasks = status.get("tasks")
    rows = [_task(task) for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []
    return tuple(sorted(rows, key=lambda row: row.number))


def _task(told: Mapping[str, Any]) -> ConnectTaskRow:
    number = told.get("id")
    return ConnectTaskRow(
        number if isinstance(number, int) else -1,
        _text(told, "state") or "not known",
        _text(told, "worker_id"),
        _text(told, "trace")[:MOST_TRACE],
    )


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"its response is not {what}")
    return value


def _part(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = of.get(name)
    return found if isinstance(found, dict) else {}


def _text(of: Mapping[str, Any], name: str) -> str:
    found = of.get(name)
    return _utf8(found) if isinstance(found, str) else ""


def _utf8(text: str) -> str:
    """JSON can have halves of surrogate pairs, of which neither an address nor a page can be made."""
    return text.encode("utf-8", "replace").decode()


def once(workers: Sequence[ConnectWorkerRow]) -> tuple[ConnectorRow, ...]:
    """The connectors of all workers, by name and in the workers' order; what two of them tell alike stands there once."""
    found = dict.fromkeys(row for worker in workers for row in worker.connectors)
    return tuple(sorted(found, key=lambda row: row.name))

"""Regular expressions of topic names (KIP-848), matched by RE2 in time linear in the length of a name.

The whole name has to match. Every topic is looked at, internal ones like any other, as in Kafka's TopicRegexResolver.

Kafka has RE2/J, the port of RE2 to Java; here it is RE2 itself (``google-re2``). An expression that both accept matches the same
topics. Few are accepted by one alone:

================  ==================================================================================================
accepted by       expressions
================  ==================================================================================================
RE2 alone         two groups of one name; names of groups outside ASCII; ``\\C``; a repeat behind a lone ``{``; scripts of newer
                  versions of Unicode
RE2/J alone       repeats that make more than 1000 of one part when multiplied, as in ``(a{100}){100}``; ``\\é``, an escape of a
                  character outside ASCII; programs that need more than ``MOST_MEMORY``
================  ==================================================================================================

Python's ``re`` is no substitute: it goes back, so one expression could hold up the broker for ever. Where there is no wheel of
``google-re2``, expressions are refused.

RE2 lets other threads run while it compiles or matches. A long expression takes it 0.6 s to compile, and the worst one 30 ms for
a name of 249 characters. So both are work for a worker thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..base.errors import ErrorCode, KafkaError
from .assignors.assignor import Steps

MOST_MEMORY = 512 << 10
"""Bytes that RE2 may take for one expression. It is enough for all that fits a request, unless that has repeats or classes of
Unicode. RE2 keeps the last 128 expressions."""

WORK_OF_A_STEP = 4_000_000
"""Instructions of the program times characters of the name. They take 1 to 4 ms, and with the worst expressions 20."""
_WORK_OF_A_MATCH = 1000
"""The part of it that does not depend on either."""
_NAMES_OF_A_STEP = 200
_LONGEST_SHOWN = 200


class _Pattern(Protocol):
    """A pattern of ``google-re2``."""

    @property
    def programsize(self) -> int: ...
    def fullmatch(self, text: bytes) -> object | None: ...


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """One expression. Any thread may use it."""

    expression: str
    """As the member sent it."""
    size: int
    """Instructions of its program, which bound the time that a character takes."""
    pattern: _Pattern

    def matches(self, topic_name: str) -> bool:
        """Whether the whole name matches."""
        return self.pattern.fullmatch(topic_name.encode()) is not None


def compiled(expression: str) -> CompiledExpression:
    """The expression, ready to match. KafkaError INVALID_REGULAR_EXPRESSION, whose text is Kafka's with RE2's reason."""
    try:
        import re2  # takes 4 ms and 3 MiB, and most brokers never see an expression
    except ImportError:
        why = "this broker has no google-re2, which reads them (pip install google-re2)"
        raise _refusal(expression, f"cannot be read: {why}") from None
    options = re2.Options()
    options.max_mem = MOST_MEMORY
    options.never_capture = True
    options.log_errors = False
    try:
        pattern: _Pattern = re2.compile(expression, options)
    except re2.error as error:
        why = error.args[0].decode(errors="replace")
        raise _refusal(expression, f"is not a valid regular expression: {why}") from None
    return CompiledExpression(expression, pattern.programsize, pattern)


def matching_topics(expressions: Iterable[str], topic_names: Iterable[str]) -> Steps[dict[str, frozenset[str] | None]]:
    """The topics that each expression matches; None where it cannot be read, which the log of another broker may hold.

    The steps are for a worker thread.
    """
    found: dict[str, set[str] | None] = {}
    readable: list[tuple[CompiledExpression, set[str]]] = []
    for expression in sorted(set(expressions)):
        topics: set[str] = set()
        try:
            readable.append((compiled(expression), topics))
            found[expression] = topics
        except KafkaError:
            found[expression] = None
        yield
    work = 0
    for name in topic_names:
        for one, topics in readable:
            if one.matches(name):
                topics.add(name)
            work += _WORK_OF_A_MATCH + one.size * len(name)
            if work >= WORK_OF_A_STEP:
                work = 0
                yield
    return {expression: None if topics is None else frozenset(topics) for expression, topics in found.items()}


def describable_topics(
    topics_of: Mapping[str, frozenset[str] | None], may_describe: Callable[[str], bool]
) -> Steps[dict[str, frozenset[str] | None]]:
    """Without the topics that the client may not describe. They are left out without an error, and nothing is logged of them.

    ``may_describe`` is asked once for each topic. The steps are for the loop, to which the authorizer belongs.
    """
    names: set[str] = set()
    for topics in topics_of.values():
        names.update(topics or ())
        yield
    denied: set[str] = set()
    for count, name in enumerate(sorted(names), 1):
        if not may_describe(name):
            denied.add(name)
        if not count % _NAMES_OF_A_STEP:
            yield
    described: dict[str, frozenset[str] | None] = {}
    for expression, topics in topics_of.items():
        described[expression] = None if topics is None else topics - denied
        yield
    return described


def _refusal(expression: str, why: str) -> KafkaError:
    shown = expression if len(expression) <= _LONGEST_SHOWN else f"{expression[:_LONGEST_SHOWN]}…"
    return KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"SubscribedTopicRegex `{shown}` {why}.")

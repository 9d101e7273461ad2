"""Shell commands that copy the same records as the console: ``ottla consume`` into ``ottla produce``, with ``jq`` between.

What ``ottla consume`` prints has each record's partition and timestamp, and ``ottla produce`` keeps them; ``jq`` takes them away
and picks records. A filter that no such line is equal to (of bytes, or a JSON path, whose numbers jq rounds) has no command.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from .action_commands import moment
from .commands import Command, line, named
from .copying import ORIGIN_HEADER, CopyOrder
from .questions import Question, Rest

_MOST_LINES = 10
_LATEST = 253_402_300_799_999
"""The end of the year 9999 in ms; commands write times as dates."""


def copy(server: str, order: CopyOrder, question: Question, rest: Sequence[Rest]) -> Command | None:
    """``rest``: the ranges, if they are what another copy has left; else ``question`` says it. None if there is no command."""
    steps = _steps(order, question)
    if steps is None or len(rest) > _MOST_LINES or _is_too_late(question):
        return None
    if rest:
        wheres = [("-p", str(each.number), "-o", f"{each.low}:{each.high}") for each in rest]
    else:
        partition = () if question.partition is None else ("-p", str(question.partition))
        wheres = [(*partition, "-o", _where(question))]
    programme = f" | {line('jq', '-c', ' | '.join(steps))}" if steps else ""
    produce = line("ottla", "produce", "-b", server, "--json", *named(order.target))
    return Command("\n".join(f"{_consume(server, order.source, where)}{programme} | {produce}" for where in wheres))


def _is_too_late(question: Question) -> bool:
    return question.start != "offset" and max(question.at, question.until or 0) > _LATEST


def _consume(server: str, topic: str, where: Sequence[str]) -> str:
    isolation = ("--isolation-level", "read_committed")
    return line("ottla", "consume", "-b", server, *where, "-e", *isolation, "--json", *named(topic))


def _where(question: Question) -> str:
    until = question.until
    if question.start == "offset":
        return f"{question.at}" if until is None else f"{question.at}:{until}"
    if question.start == "time":
        return f"@{moment(question.at)}" if until is None else f"@{moment(question.at)}:{moment(until)}"
    return "start" if until is None else f"@{moment(0)}:{moment(until)}"


def _steps(order: CopyOrder, question: Question) -> list[str] | None:
    if question.path or any(text.startswith("hex:") for text in (question.key, question.contains)):
        return None
    steps = []
    if question.key:
        steps.append(f"select(.key == {json.dumps(question.key)})")
    if question.contains:
        values = '.value // "", (.value_base64 // "" | @base64d)'  # of bytes that are no UTF-8 the text between stays
        steps.append(f"select(any({values}; contains({json.dumps(question.contains)})))")
    if question.header:
        name, has_value, text = question.header.partition("=")
        if text.startswith("hex:"):
            return None
        is_so = f".key == {json.dumps(name)}" + (f" and .value == {json.dumps(text)}" if has_value else "")
        steps.append(f"select(any(.headers[]; {is_so}))")
    if order.names_origin:
        steps.append(f'.headers += [{{key: "{ORIGIN_HEADER}", value: "\\(.topic):\\(.partition):\\(.offset)"}}]')
    dropped = [
        name for name, kept in ((".partition", order.keeps_partition), (".timestamp", order.keeps_time)) if not kept
    ]
    if dropped:
        steps.append(f"del({', '.join(dropped)})")
    return steps

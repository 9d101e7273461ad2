"""The refusal of a name on the command line that does not exist: one sentence, with the nearest name that does.

Every command words it here. What exists is asked for only then: a command that is typed right costs no further request, unless
it writes to a topic (``records.target_topic``). A user who may not see what exists is told no names.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

import kafka.errors

from ...base.wording import listed, meant, nearest
from .running import ToolError, UsageError

if TYPE_CHECKING:
    from .client import Admin

_MOST_BROKERS = 20
_DIGITS = re.compile("[0-9]+")
_NEARLY_THE_SAME = 0.8
"""The likeness of names of which one is a typing error: a new name may be like an existing one."""


def absent(kind: str, name: str, known: Collection[str], otherwise: str, code: str = "") -> ToolError:
    """What to raise for something that is not there; ``otherwise`` is how to go on where no name is like it."""
    return ToolError(_sentence(kind, name, known, otherwise) + (f" ({code})" if code else ""))


def no_choice(kind: str, name: str, choices: Iterable[str]) -> UsageError:
    """What to raise for a word that is none of a few."""
    known = list(choices)
    return UsageError(
        _sentence(kind, name, known, "") + (f", only {', '.join(known)}" if not meant(name, known) else "")
    )


def no_topic(name: str, known: Collection[str]) -> ToolError:
    """``known`` are the topics that there are."""
    return absent("topic", name, known, "'ottla topics list' shows all topics", "UNKNOWN_TOPIC_OR_PARTITION")


def no_group(name: str, known: Collection[str]) -> ToolError:
    """``known`` are the groups that there are."""
    return absent("group", name, known, "'ottla groups list' shows all groups", "GROUP_ID_NOT_FOUND")


def no_broker(strange: Iterable[int], known: Iterable[int], code: str = "") -> ToolError:
    """Numbers have no nearest one: the error names those that there are."""
    ids, there = ", ".join(map(str, strange)), listed([str(each) for each in sorted(known)], _MOST_BROKERS)
    return ToolError(f"there is no broker {ids}, only {there}" + (f" ({code})" if code else ""))


def topic_names(admin: Admin) -> Collection[str]:
    """The topics that this user may see; none where brokers do not tell."""
    return _told(lambda: admin.list_topics())


def group_names(admin: Admin) -> Collection[str]:
    """The groups that this user may see; none where brokers do not tell."""
    return _told(lambda: [group["group_id"] for group in admin.list_groups()])


def transactional_ids(admin: Admin) -> Collection[str]:
    """Those that this user may see; none where brokers do not tell."""
    return _told(lambda: [each.transactional_id for found in admin.list_transactions().values() for each in found])


def tell_of_like_group(admin: Admin, name: str) -> None:
    """Say on the standard error that a group is not there and another one like it is, where a command may be about a new one."""
    tell_of_like(f"group {name} yet", name, group_names(admin))


def tell_of_like(what: str, name: str, known: Collection[str]) -> None:
    """Say on the standard error what may have been meant, where the command itself does not fail without such a thing.

    Names that differ in digits only are one more of a series, and not mistyped.
    """
    close = nearest(name, known, least=_NEARLY_THE_SAME) if name and name not in known else None
    if close is not None and _DIGITS.sub("", close) != _DIGITS.sub("", name):
        print(f"there is no {what}; did you mean {close}?", file=sys.stderr)


def _told(ask: Callable[[], Collection[str]]) -> Collection[str]:
    try:
        return ask()
    except kafka.errors.KafkaError:
        return ()


def _sentence(kind: str, name: str, known: Collection[str], otherwise: str) -> str:
    return f"there is no {kind} {name}" + (meant(name, known) or (otherwise and f"; {otherwise}"))

"""``ssl.principal.mapping.rules``: the mapping of a certificate's distinguished name to a principal name.

Rules are tried in their order, and the first that matches the whole name decides; where none does, the client is refused. A rule
is ``DEFAULT`` (the name as it is) or ``RULE:pattern/replacement/``, with ``L`` or ``U`` behind it for lower or upper case
(Kafka's SslPrincipalMapper, KIP-371). Commas separate rules, but a rule may contain commas. A slash in a rule has a backslash
before it.

Patterns are Java's regular expressions, read by Python's ``re``. Named groups are translated. What Python does not know or
reads differently (``\\p{Alpha}``, intersections of classes) is refused at the start.
"""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Callable

_TEXT = re.compile(r"(?:\\.|[^\\/])*")
_END = re.compile(r"\s*(?:,|\Z)")
_BETWEEN = re.compile(r"[\s,]*")
_DEFAULT = "DEFAULT"
_RULE = "RULE:"
_NAMED_GROUP = re.compile(r"(?<!\\)\(\?<(?=[A-Za-z])")


class NoMatchingRuleError(Exception):
    """No rule matches a name; the client is refused."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    replacement: Callable[[re.Match[str]], str]
    change_case: Callable[[str], str]

    def apply(self, name: str) -> str | None:
        """As Java's replaceAll does: an expression that matches the empty string matches once more at the end."""
        if self.pattern.fullmatch(name) is None:
            return None
        return self.change_case(self.pattern.sub(self.replacement, name))


class PrincipalRules:
    """The rules of one listener."""

    def __init__(self, text: str) -> None:
        """Raises ValueError, which says what is wrong."""
        self._rules = list(_parse(text.strip()))

    def name(self, distinguished_name: str) -> str:
        """The name of the principal. Raises NoMatchingRuleError."""
        for rule in self._rules:
            name = distinguished_name if rule is None else rule.apply(distinguished_name)
            if name is not None:
                return name
        raise NoMatchingRuleError(f"no rule of ssl.principal.mapping.rules matches {distinguished_name}")


def _parse(text: str) -> list[_Rule | None]:
    """None stands for DEFAULT."""
    rules: list[_Rule | None] = []
    position = _position_after(_BETWEEN, text, 0)
    while position < len(text):
        start = position
        if text.startswith(_DEFAULT, position):
            rule, position = None, position + len(_DEFAULT)
        elif text.startswith(_RULE, position):
            rule, position = _parse_rule(text, position + len(_RULE))
        else:
            raise ValueError(f"{text[start:]!r} begins with neither {_DEFAULT} nor {_RULE}")
        if _END.match(text, position) is None:
            raise ValueError(f"{text[position:]!r} after {text[start:position]!r}")
        rules.append(rule)
        position = _position_after(_BETWEEN, text, position)
    return rules


def _parse_rule(text: str, position: int) -> tuple[_Rule, int]:
    """The rule whose pattern begins there, and where it ends."""
    pattern, position = _parse_up_to_slash(text, position)
    replacement, position = _parse_up_to_slash(text, position)
    case = text[position : position + 1]
    change_case = {"L": str.lower, "U": str.upper}.get(case)
    compiled = _compile(pattern)
    rule = _Rule(compiled, _replacement(replacement, compiled), change_case or str)
    return rule, position if change_case is None else position + 1


def _parse_up_to_slash(text: str, position: int) -> tuple[str, int]:
    end = _position_after(_TEXT, text, position)
    if text[end : end + 1] != "/":
        raise ValueError(f"{text[position:]!r} does not end with /")
    return text[position:end], end + 1


def _position_after(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    assert found is not None  # they match the empty string, too
    return found.end()


def _compile(pattern: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a class that Java would read as a set operation
        try:
            return re.compile(_NAMED_GROUP.sub("(?P<", pattern), re.ASCII)
        except (re.error, Warning) as error:
            raise ValueError(f"{pattern!r} is not a regular expression that Python knows: {error}") from None


def _replacement(text: str, pattern: re.Pattern[str]) -> Callable[[re.Match[str]], str]:
    """Makes the text that replaces a match: ``$n`` is a group, a character after a backslash is itself.

    ``$12`` is group 12 if there is one, otherwise group 1 and the character 2; a ``$n`` without such a group is plain text.
    Raises ValueError.
    """
    pieces: list[str | int] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\":
            if position == len(text):
                raise ValueError(f"{text!r} ends with a backslash")
            pieces.append(text[position])
            position += 1
        elif character == "$":
            group, position = _group(text, position, pattern)
            pieces.append(group)
        else:
            pieces.append(character)

    def replace(found: re.Match[str]) -> str:
        return "".join(piece if isinstance(piece, str) else found[piece] or "" for piece in pieces)

    return replace


def _group(text: str, position: int, pattern: re.Pattern[str]) -> tuple[int | str, int]:
    named = re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}").match(text, position)
    if named is not None:
        if named[1] not in pattern.groupindex:
            raise ValueError(f"{text!r} names a group that {pattern.pattern!r} does not have")
        return pattern.groupindex[named[1]], named.end()
    end = position
    while end < len(text) and text[end] in "0123456789" and int(text[position : end + 1]) <= pattern.groups:
        end += 1
    if end > position:
        return int(text[position:end]), end
    if not text[position : position + 1].isdigit():
        raise ValueError(f"{text!r} has a $ that no group follows")
    return "$", position

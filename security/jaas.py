"""The text of ``sasl.jaas.config``: a login module, a control flag, and the module's options.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="x" user_alice="y";

It is read as by Kafka's JaasConfig, which uses Java's StreamTokenizer: values are in single or double quotes, with the escapes of
C, or words of letters, digits, ``.``, ``_``, ``$`` and ``-``; ``/`` begins a comment to the end of the line, ``/*`` one to
``*/``. A number needs quotes. No error message here contains any part of the text: where a quote is missing, or there is one too
many, what looks like a name may be a part of a password.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHBEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"

_FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r"""(?P<skipped>[\x00-\x20]+|/\*.*?(?:\*/|\Z)|/[^\r\n]*)
      | (?P<number>-?(?:\d+\.?\d*|\.\d+))
      | (?P<word>[A-Za-z_$\xa0-\U0010ffff][A-Za-z0-9_$.\xa0-\U0010ffff-]*)
      | "(?P<double>(?:\\.|[^"\\\r\n])*)(?:"|(?=[\r\n])|\Z)
      | '(?P<single>(?:\\.|[^'\\\r\n])*)(?:'|(?=[\r\n])|\Z)
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-3][0-7]{0,2}|[4-7][0-7]?)|(.))", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasError(ValueError):
    """The text is not a login module. ``str()`` is one line without any part of the text."""


@dataclasses.dataclass(frozen=True, slots=True)
class LoginModule:
    """A module's class and its options, which may be secret."""

    name: str
    options: Mapping[str, str] = dataclasses.field(repr=False)


def parse_jaas(text: str) -> LoginModule:
    """The login module of a configuration. Raises JaasError, also where there are several, as Kafka does."""
    tokens = _tokens(text)
    modules: list[LoginModule] = []
    for kind, name in tokens:
        if kind not in ("word", "quoted"):
            raise JaasError("a login module is expected" if modules else "no login module in it")
        modules.append(_parse_module(name, tokens))
    if not modules:
        raise JaasError("no login module in it")
    if len(modules) > 1:
        raise JaasError(f"{len(modules)} login modules in it, where one is expected")
    return modules[0]


def _parse_module(name: str, tokens: Iterator[tuple[str, str]]) -> LoginModule:
    flag = next(tokens, None)
    if flag is None or flag[1].lower() not in _FLAGS:
        raise JaasError(f"after the login module a control flag is expected: {', '.join(_FLAGS)}")
    options: dict[str, str] = {}
    for kind, key in tokens:
        if (kind, key) == ("sign", ";"):
            return LoginModule(name, options)
        if kind not in ("word", "quoted"):
            raise JaasError("an option's name or a semicolon is expected")
        value = next(tokens, None) if next(tokens, None) == ("sign", "=") else None
        if value is None or value[0] not in ("word", "quoted"):
            raise JaasError(f"option {len(options) + 1} has no value, or one that needs quotes")
        options[key] = value[1]
    raise JaasError("it does not end with a semicolon")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Kind (word, quoted, number, sign) and text of each token."""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind in ("double", "single"):
            yield "quoted", _ESCAPE.sub(_unescaped, match[kind])
        elif kind is not None and kind != "skipped":
            yield kind, match[kind]


def _unescaped(match: re.Match[str]) -> str:
    octal, character = match.groups()
    return chr(int(octal, 8)) if octal else _ESCAPED.get(character, character)

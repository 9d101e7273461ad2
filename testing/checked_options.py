"""Checks of the options of ``ottla.Broker`` and ``ottla.Cluster``: a wrong one is one sentence, raised in the caller's own call.

The sentence names the option, the given value and the expected ones. A value of a wrong type is a TypeError, any other a
ValueError. For a property that is a SettingError, in Kafka's words. ``create_topic`` has the types of its configs checked here.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec

from ..base.addresses import split_host_port
from ..base.secret_names import HIDDEN, is_secret
from ..base.settings import SettingError
from ..base.wording import meant, shortened
from ..broker.config_file import load_config, refuse_unknown

P = ParamSpec("P")

TOPIC_CONFIGS = "a dict of Kafka's topic configs"
"""The expected value of ``create_topic``."""
_MOST_SHOWN = 80
"""So many characters of a given value are shown."""

__tracebackhide__ = True  # a failure points at the caller's line


def named_options(init: Callable[P, None]) -> Callable[P, None]:
    """A constructor that refuses an unknown option with a TypeError, which has the option that may have been meant."""
    made = init.__qualname__.partition(".")[0]

    @functools.wraps(init)
    def refuse_others(*args: P.args, **options: P.kwargs) -> None:
        names = _options_of(init)
        for name in options:
            if name not in names:
                hint = _of_the_other(name) or meant(name, names) or f"; its options are {', '.join(names)}"
                raise TypeError(f"ottla.{made} has no option {name}{hint}")
        init(*args, **options)

    return refuse_others


def _options_of(init: Callable[..., None]) -> list[str]:
    return [*inspect.signature(init).parameters][1:]


def _of_the_other(name: str) -> str:
    """The end of the sentence for an option that only the other class has; empty for any other name."""
    import ottla  # which imports this module

    others = [made.__name__ for made in (ottla.Broker, ottla.Cluster) if name in _options_of(made.__init__)]
    return "".join(f"; ottla.{made} (fixture ottla_{made.lower()}) has it" for made in others)


def check_type(
    option: str, given: object, types: type | tuple[type, ...], expected: str, *, hidden: bool = False
) -> None:
    """Raise TypeError unless ``given`` is of these types: bool is not int. ``hidden``: the value is not shown."""
    allowed = types if isinstance(types, tuple) else (types,)
    if not isinstance(given, allowed) or (isinstance(given, bool) and bool not in allowed):
        text = HIDDEN if hidden else shortened(repr(given), _MOST_SHOWN)
        raise TypeError(f"{option} is {text} ({type(given).__name__}); it must be {expected}")


def check_address(option: str, given: object) -> None:
    """Raise TypeError or ValueError unless ``given`` is ``HOST:PORT``."""
    check_type(option, given, str, "HOST:PORT (str)")
    try:
        split_host_port(str(given).strip())
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None


def checked_properties(option: str, given: object, defaults: Mapping[str, str] | None = None) -> dict[str, str]:
    """Broker properties as texts, without ``defaults``, which hold where nothing is given. Raises TypeError, SettingError."""
    texts = written(option, given, "a dict of Kafka's broker properties")
    try:
        refuse_unknown(texts)
        load_config({**(defaults or {}), **texts})
    except SettingError as error:
        raise error.with_traceback(None) from None  # without the broker's frames
    return texts


def written(option: str, given: object, expected: str) -> dict[str, str]:
    """Properties or configs with their values as Kafka writes them ("true", "3"); empty for None. Raises TypeError."""
    texts = {}
    for name, value in _items(option, given, expected):
        label, types = f"{option}[{name!r}]", (str, int, float, bool)
        check_type(label, value, types, "a str, int, float or bool", hidden=is_secret(name))
        texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


def checked_users(given: object) -> dict[str, str]:
    """Names with passwords. Raises TypeError, ValueError."""
    users = {}
    for name, password in _items("users", given, "a dict of names and passwords"):
        check_type(f"users[{name!r}]", password, str, "a password (str)", hidden=True)
        if not name or not password:
            empty = f"the password of {name!r}" if name else "a name"
            raise ValueError(f"{empty} in users is empty; a user needs a name and a password")
        users[name] = password
    return users


def _items(option: str, given: Any, expected: str) -> list[tuple[str, Any]]:
    """The items of a dict whose keys are names; none for None. Raises TypeError."""
    if given is None:
        return []
    check_type(option, given, Mapping, expected)
    for name in given:
        check_type(f"a name in {option}", name, str, "a str")
    return list(given.items())

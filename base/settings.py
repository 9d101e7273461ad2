"""Settings declared once, under Kafka's names, types, defaults and ranges.

Settings are declared as classes, in the package that uses them::

    class LogSettings(Settings):
        segment_bytes: int = setting(
            "log.segment.bytes", topic="segment.bytes", default=1 << 30, at_least=14, doc="Size at which a segment rolls."
        )

From that declaration come the parsed value (``LogSettings.from_properties(properties).segment_bytes``), the topic
override (``settings.with_topic_overrides({"segment.bytes": "1048576"})``), the response of DescribeConfigs, the check of
``server.properties`` and the reference page. An instance is never changed; a new value is a new instance.

``fallbacks`` are other broker properties read when the first one is not given, each with the factor to its unit:
``log.retention.ms`` falls back on ``log.retention.minutes`` (60,000) and ``log.retention.hours`` (3,600,000). The first of them
that is given counts, as in Kafka.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, ClassVar, TypeVar

from .secret_names import shown

S = TypeVar("S", bound="Settings")


class ConfigValueType(IntEnum):
    """The type of a setting, numbered as in DescribeConfigs (KIP-226)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9
    UNKNOWN = 0


_RANGES = {
    ConfigValueType.SHORT: (-(1 << 15), (1 << 15) - 1),
    ConfigValueType.INT: (-(1 << 31), (1 << 31) - 1),
    ConfigValueType.LONG: (-(1 << 63), (1 << 63) - 1),
}
_KIND_OF_TYPE = {
    bool: ConfigValueType.BOOLEAN,
    int: ConfigValueType.INT,
    float: ConfigValueType.DOUBLE,
    str: ConfigValueType.STRING,
    tuple: ConfigValueType.LIST,
}


class SettingError(ValueError):
    """A value that a setting does not accept. ``str()`` is one line for the user, without the value if it is a secret."""

    def __init__(self, name: str, value: str, why: str) -> None:
        super().__init__(f"Invalid value {shown(name, value)} for configuration {name}: {why}")
        self.name = name
        self.value = value
        self.why = why


@dataclasses.dataclass(frozen=True)
class Fallback:
    """Another broker property that sets the same value in a larger unit."""

    name: str
    factor: int
    """How many times as large the unit is."""
    default: int | None = None
    """Kafka's default of this property; None for none."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """One declared setting."""

    name: str | None
    """The broker property; None where Kafka has the setting for topics only."""
    topic: str | None
    """The topic config that overrides it; None for none."""
    default: Any
    kind: ConfigValueType
    at_least: float | None
    at_most: float | None
    choices: tuple[str, ...] | None
    check: Callable[[Any], str | None] | None
    """Returns why a value is refused, or None."""
    fallbacks: tuple[Fallback, ...]
    """Properties that are read when ``name`` is not given; the first that is given counts."""
    doc: str
    dynamic: bool = False
    """Whether it can be changed while the broker runs; see ``is_dynamic``."""
    attribute: str = ""
    """Its name in the Settings class."""

    def parse(self, text: str, *, name: str | None = None) -> Any:
        """Parse and check ``text``. Raises SettingError."""
        named = name or self.name or self.topic or self.attribute
        try:
            value = _parse(self.kind, text.strip())
        except ValueError:
            raise SettingError(named, text, _expectation(self.kind)) from None
        if self.at_least is not None and not isinstance(value, str | tuple) and value < self.at_least:
            raise SettingError(named, text, f"Value must be at least {self.at_least}")
        if self.at_most is not None and not isinstance(value, str | tuple) and value > self.at_most:
            raise SettingError(named, text, f"Value must be no more than {self.at_most}")
        if self.kind is ConfigValueType.LIST and (self.choices or self.check) and _has_empty_item(text):
            raise SettingError(named, text, "values must not be empty")
        for item in value if isinstance(value, tuple) else (value,):
            if self.choices is not None and item not in self.choices:
                raise SettingError(named, str(item), f"String must be one of: {', '.join(self.choices)}")
        if self.check is not None and (why := self.check(value)):
            raise SettingError(named, text, why)
        if self.choices is not None and isinstance(value, tuple):
            return tuple(dict.fromkeys(value))  # without repetitions, as Kafka's ConfigDef.ValidList
        return value

    def render(self, value: Any) -> str | None:
        """The value as Kafka prints it, or None."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        return str(value).replace("e+", "E")  # as Java prints large doubles

    @property
    def is_dynamic(self) -> bool:
        """Whether it can be changed while the broker runs; true of all that a topic can override, as in Kafka (KIP-226)."""
        return self.name is not None and (self.dynamic or self.topic is not None)

    def names(self) -> tuple[str, ...]:
        """Every broker property that sets this value, in the order in which they count."""
        return (*((self.name,) if self.name else ()), *(fallback.name for fallback in self.fallbacks))

    def read(self, properties: Mapping[str, str]) -> Any:
        """The value in ``properties`` (broker names), or the default. Raises SettingError."""
        if self.name is not None and self.name in properties:
            return self.parse(properties[self.name])
        for fallback in self.fallbacks:
            if fallback.name in properties:
                value = _parse_long(fallback.name, properties[fallback.name])
                return value if value < 0 else value * fallback.factor
        return self.default


def _expectation(kind: ConfigValueType) -> str:
    """Why a text cannot be read, in the words of Kafka's ConfigDef."""
    if kind is ConfigValueType.BOOLEAN:
        return "Expected value to be either true or false"
    return f"Not a number of type {kind.name}"


def _parse(kind: ConfigValueType, text: str) -> Any:
    if kind is ConfigValueType.BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    if kind in (ConfigValueType.INT, ConfigValueType.SHORT, ConfigValueType.LONG):
        number = int(text)
        lowest, highest = _RANGES[kind]
        if "_" in text or not lowest <= number <= highest:
            raise ValueError(text)
        return number
    if kind is ConfigValueType.DOUBLE:
        return float(text)
    if kind is ConfigValueType.LIST:
        return tuple(item.strip() for item in text.split(",") if item.strip())
    return text


def _has_empty_item(text: str) -> bool:
    return bool(text.strip()) and not all(item.strip() for item in text.split(","))


def _parse_long(name: str, text: str) -> int:
    try:
        return int(_parse(ConfigValueType.LONG, text.strip()))
    except ValueError:
        raise SettingError(name, text, _expectation(ConfigValueType.LONG)) from None


def setting(
    name: str | None,
    *,
    default: Any,
    topic: str | None = None,
    kind: ConfigValueType | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    choices: Iterable[str] | None = None,
    check: Callable[[Any], str | None] | None = None,
    fallbacks: Iterable[Fallback] = (),
    dynamic: bool = False,
    doc: str = "",
) -> Any:
    """Declare a setting in a Settings class.

    ``kind`` is taken from the annotation (int means INT); name LONG, SHORT, PASSWORD and CLASS. ``check`` returns why a
    value is refused, or None. ``dynamic``: it can be changed while the broker runs (``Config.change_dynamic``).
    """
    return Setting(
        name=name,
        topic=topic,
        default=default,
        kind=kind or ConfigValueType.STRING,
        at_least=at_least,
        at_most=at_most,
        choices=tuple(choices) if choices is not None else None,
        check=check,
        fallbacks=tuple(fallbacks),
        doc=doc,
        dynamic=dynamic,
        attribute="" if kind is None else "=",  # marks a given kind, until ``__init_subclass__`` puts the name there
    )


def _kind_of(annotation: Any) -> ConfigValueType:
    if isinstance(annotation, types.UnionType):
        annotation = next(a for a in typing.get_args(annotation) if a is not types.NoneType)
    return _KIND_OF_TYPE[typing.get_origin(annotation) or annotation]


class Settings:
    """Base class of declared settings; see the module's docstring."""

    declared: ClassVar[dict[str, Setting]] = {}
    """attribute -> Setting."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.declared = {}
        hints = typing.get_type_hints(cls)
        for attribute, value in list(vars(cls).items()):
            if isinstance(value, Setting):
                kind = value.kind if value.attribute == "=" else _kind_of(hints[attribute])
                cls.declared[attribute] = dataclasses.replace(value, attribute=attribute, kind=kind)
                delattr(cls, attribute)

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        """Defaults, with ``values`` (attribute -> parsed value) over them."""
        for attribute, declared in self.declared.items():
            self.__dict__[attribute] = declared.default
        if values:
            assert values.keys() <= self.declared.keys(), values.keys() - self.declared.keys()
            self.__dict__.update(values)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"settings are not changed in place: {name}")

    @classmethod
    def from_properties(cls: type[S], properties: Mapping[str, str]) -> S:
        """Parse Kafka's broker properties; other names are ignored. Raises SettingError."""
        settings = cls({attribute: s.read(properties) for attribute, s in cls.declared.items()})
        settings.check_relations()
        return settings

    def check_relations(self) -> None:
        """Overridden where settings have to fit each other. Raises SettingError."""

    def with_topic_overrides(self: S, overrides: Mapping[str, str]) -> S:
        """These settings with the overrides of a topic; other names are ignored. Raises SettingError."""
        if not overrides:
            return self
        values = {attribute: self.__dict__[attribute] for attribute in self.declared}
        for attribute, declared in self.declared.items():
            if declared.topic is not None and declared.topic in overrides:
                values[attribute] = declared.parse(overrides[declared.topic], name=declared.topic)
        return type(self)(values)

    @classmethod
    def topic_settings(cls) -> dict[str, Setting]:
        """Topic-level name -> Setting."""
        return {s.topic: s for s in cls.declared.values() if s.topic is not None}

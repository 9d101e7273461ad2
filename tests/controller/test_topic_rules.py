"""Topic names, and which overrides a topic may have."""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.configs.topic_configs import ConfigChange, ConfigOpType, apply_changes, check_overrides
from ottla.log.settings import LogSettings
from ottla.metadata.rules.topic_names import check_collision, check_name, why_invalid

SETTINGS = LogSettings()


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 249, "__consumer_offsets"])
def test_legal_names(name: str) -> None:
    assert why_invalid(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ä", "a\n", "a:b", "\0"])
def test_illegal_names(name: str) -> None:
    with pytest.raises(KafkaError) as caught:
        check_name(name)
    assert caught.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_names_that_differ_in_dots_and_underscores_collide() -> None:
    with pytest.raises(KafkaError, match=r"collides with existing topics: a\.b_c, a_b\.c"):
        check_collision("a_b_c", ["a.b_c", "a_b.c", "a.b.d", "abc"])
    check_collision("a.b", ["a.b", "a-b", "ab"])
    check_collision("plain", ["pl.ain"])


@pytest.mark.parametrize(
    "overrides",
    [
        {"nope": "1"},
        {"retention.ms": "soon"},
        {"retention.ms": "-2"},
        {"retention.ms": None},
        {"cleanup.policy": "shred"},
        {"min.insync.replicas": "0"},
        {"preallocate": "yes"},
        {"min.compaction.lag.ms": "500", "max.compaction.lag.ms": "5"},
        {"remote.storage.enable": "true"},
    ],
)
def test_overrides_that_are_refused(overrides: dict[str, str | None]) -> None:
    with pytest.raises(KafkaError) as caught:
        check_overrides(SETTINGS, overrides)
    assert caught.value.code == ErrorCode.INVALID_CONFIG
    assert caught.value.message


def test_overrides_that_are_taken() -> None:
    overrides: dict[str, str | None] = {"cleanup.policy": "compact,delete", "retention.ms": "-1"}
    assert check_overrides(SETTINGS, overrides) == overrides


def changed(overrides: dict[str, str], *changes: tuple[str, ConfigOpType, str | None]) -> dict[str, str | None]:
    return apply_changes(
        LogSettings.topic_settings(),
        overrides,
        [ConfigChange(*change) for change in changes],
        lambda name, change: f"{name}: {change.name}",
    )


def test_set_and_delete() -> None:
    before = {"retention.ms": "1", "segment.bytes": "2"}
    assert changed(before, ("retention.ms", ConfigOpType.SET, "5"), ("segment.bytes", ConfigOpType.DELETE, None)) == {
        "retention.ms": "5"
    }
    assert changed({}, ("retention.ms", ConfigOpType.DELETE, None)) == {}
    assert before == {"retention.ms": "1", "segment.bytes": "2"}


def test_append_starts_from_the_value_that_is_set_or_from_the_default() -> None:
    assert changed({}, ("cleanup.policy", ConfigOpType.APPEND, "compact")) == {"cleanup.policy": "delete,compact"}
    assert changed({"cleanup.policy": "compact"}, ("cleanup.policy", ConfigOpType.APPEND, "compact,delete")) == {
        "cleanup.policy": "compact,delete"
    }


def test_subtract_down_to_nothing_leaves_an_empty_list() -> None:
    assert changed({"cleanup.policy": "compact,delete"}, ("cleanup.policy", ConfigOpType.SUBTRACT, "delete")) == {
        "cleanup.policy": "compact"
    }
    assert changed({"cleanup.policy": "compact"}, ("cleanup.policy", ConfigOpType.SUBTRACT, "compact")) == {
        "cleanup.policy": ""
    }
    assert changed({"cleanup.policy": ""}, ("cleanup.policy", ConfigOpType.APPEND, "compact")) == {
        "cleanup.policy": "compact"
    }
    assert changed({}, ("cleanup.policy", ConfigOpType.SUBTRACT, "nothing.of.it")) == {"cleanup.policy": "delete"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([("retention.ms", ConfigOpType.APPEND, "5")], ErrorCode.INVALID_CONFIG),
        ([("nope", ConfigOpType.APPEND, "5")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", ConfigOpType.SET, None)], ErrorCode.INVALID_REQUEST),
        ([("cleanup.policy", ConfigOpType.APPEND, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_changes_that_are_refused(changes: list[tuple[str, ConfigOpType, str | None]], code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as caught:
        changed({}, *changes)
    assert caught.value.code == code

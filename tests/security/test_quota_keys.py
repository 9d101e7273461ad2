from __future__ import annotations

import pytest

from ottla.security.entities import IPS, USERS, Entity
from ottla.security.quota_keys import read_limits, render_limit


@pytest.mark.parametrize("text", ["much", "NaN", "Infinity", "-inf", "1e999"])
def test_what_is_no_number_is_passed_over(caplog: pytest.LogCaptureFixture, text: str) -> None:
    stored = {"producer_byte_rate": text, "request_percentage": "12.5", "SCRAM-SHA-256": "x"}
    assert read_limits(Entity(USERS, "alice"), stored) == {"request_percentage": 12.5}
    assert f"producer_byte_rate={text!r} of users alice" in caplog.text


def test_only_what_can_be_set_on_an_entity_is_read() -> None:
    stored = {"producer_byte_rate": "1", "connection_creation_rate": "2"}
    assert read_limits(Entity(IPS, "::1"), stored) == {"connection_creation_rate": 2}


@pytest.mark.parametrize(
    ("key", "limit", "stored"),
    [("producer_byte_rate", 1024.0, "1024"), ("connection_creation_rate", 7, "7"), ("request_percentage", 50, "50.0")],
)
def test_values_are_stored_as_kafka_stores_them(key: str, limit: float, stored: str) -> None:
    assert render_limit(key, limit) == stored

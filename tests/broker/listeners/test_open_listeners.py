"""Who listens beyond loopback without asking who is there is warned."""

from __future__ import annotations

import logging

import pytest

from ottla.broker.config_file import load_config
from ottla.broker.listeners.open_listeners import warn_of_open_listeners


def warned(caplog: pytest.LogCaptureFixture, **properties: str) -> list[str]:
    """The listeners that are warned of."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "ottla.broker.listeners.open_listeners"):
        warn_of_open_listeners(load_config({name.replace("_", "."): value for name, value in properties.items()}))
    return [record.getMessage().partition(" listens")[0] for record in caplog.records]


@pytest.mark.parametrize("host", ["0.0.0.0", "", "[::]", "192.0.2.7", "kafka.example.org"])
def test_beyond_loopback(caplog: pytest.LogCaptureFixture, host: str) -> None:
    assert warned(caplog, listeners=f"PLAINTEXT://{host}:9092") == ["PLAINTEXT"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "[::1]"])
def test_on_loopback(caplog: pytest.LogCaptureFixture, host: str) -> None:
    assert warned(caplog, listeners=f"PLAINTEXT://{host}:9092") == []


def test_each_listener_by_what_it_asks(caplog: pytest.LogCaptureFixture) -> None:
    listeners = "SASL_SSL://0.0.0.0:1,SASL_PLAINTEXT://0.0.0.0:2,SSL://0.0.0.0:3,INSIDE://0.0.0.0:4,NEAR://127.0.0.1:5"
    of = "SASL_SSL:SASL_SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,INSIDE:PLAINTEXT,NEAR:PLAINTEXT"
    named = {"listeners": listeners, "listener_security_protocol_map": of}
    assert warned(caplog, **named) == ["SSL", "INSIDE"]
    assert warned(caplog, **named, listener_name_ssl_ssl_client_auth="required") == ["INSIDE"]
    assert warned(caplog, **named, ssl_client_auth="requested") == ["SSL", "INSIDE"]


def test_the_line_says_where_and_what_helps(caplog: pytest.LogCaptureFixture) -> None:
    warned(caplog, listeners="PLAINTEXT://:9092")
    (record,) = caplog.records
    assert "listens at *:9092 without authentication" in record.getMessage()
    assert "ssl.client.auth=required" in record.getMessage()

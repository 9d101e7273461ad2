"""Settings of one listener and of one mechanism on it."""

from __future__ import annotations

import pytest

from ottla.base.config import Config
from ottla.base.settings import SettingError, Settings, setting
from ottla.broker.config_file import parse_overrides, warn_of_unused
from ottla.broker.listener_config import ListenerConfig


class ExampleSettings(Settings):
    """Some that Kafka has."""

    client_auth: str = setting("ssl.client.auth", default="none")
    max_reauth_ms: int = setting("connections.max.reauth.ms", default=0)


def listener_config(properties: dict[str, str], protocol: str = "SSL") -> ListenerConfig:
    return ListenerConfig(Config(properties), "OUTSIDE", protocol)


def test_the_longest_prefix_wins() -> None:
    config = listener_config(
        {
            "connections.max.reauth.ms": "1",
            "listener.name.outside.connections.max.reauth.ms": "2",
            "listener.name.outside.scram-sha-256.connections.max.reauth.ms": "3",
            "listener.name.inside.connections.max.reauth.ms": "4",
        }
    )
    assert config.settings(ExampleSettings).max_reauth_ms == 2
    assert config.settings(ExampleSettings, "SCRAM-SHA-256").max_reauth_ms == 3
    assert config.settings(ExampleSettings, "PLAIN").max_reauth_ms == 2
    assert config.value("connections.max.reauth.ms", "PLAIN") == "2"
    assert config.prefixed("connections.max.reauth.ms", "PLAIN") is None
    assert config.value("ssl.client.auth") is None
    assert ListenerConfig(config.config, "THIRD", "SSL").value("connections.max.reauth.ms") == "1"


@pytest.mark.parametrize(("protocol", "plain"), [("SSL", "required"), ("SASL_SSL", "none")])
def test_with_sasl_client_certificates_are_asked_for_by_the_listeners_own_setting_only(
    protocol: str, plain: str
) -> None:
    properties = {"ssl.client.auth": "required"}
    assert listener_config(properties, protocol).settings(ExampleSettings).client_auth == plain
    properties["listener.name.outside.ssl.client.auth"] = "requested"
    assert listener_config(properties, protocol).settings(ExampleSettings).client_auth == "requested"


@pytest.mark.parametrize("name", ["connections.max.reauth.ms", "listener.name.outside.connections.max.reauth.ms"])
def test_a_malformed_value_is_named_as_it_was_given(name: str) -> None:
    with pytest.raises(SettingError, match=f"for configuration {name}: Not a number of type INT"):
        listener_config({name: "x"}).settings(ExampleSettings)


def test_what_is_changed_at_run_time_is_there_when_asked_again() -> None:
    config = listener_config({"ssl.client.auth": "none"})
    config.config.change_dynamic({}, {"listener.name.outside.ssl.client.auth": "required"})
    assert config.settings(ExampleSettings).client_auth == "required"


def test_a_name_with_a_listeners_prefix_is_known_where_the_name_is(caplog: pytest.LogCaptureFixture) -> None:
    known = {
        "listener.name.outside.max.connections": "1",
        "listener.name.outside.scram-sha-256.max.connections": "1",
    }
    warn_of_unused(known)
    assert not caplog.text
    assert parse_overrides([f"{name}={value}" for name, value in known.items()]) == known
    warn_of_unused({"listener.name.outside.max.conections": "1"})
    assert "listener.name.outside.max.conections is not a property that Kafka or Ottla knows" in caplog.text
    with pytest.raises(SettingError, match="no such property"):
        parse_overrides(["listener.name.outside.max.conections=1"])

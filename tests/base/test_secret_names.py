"""Values that no log line and no error may have in it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ottla.base.memory_network import MemoryNetwork
from ottla.base.secret_names import is_secret
from ottla.base.settings import SettingError
from ottla.broker.config_file import load_config
from ottla.broker.server import BrokerServer

from ..helpers.memory_broker import running

SECRETS = [
    "ssl.keystore.password",
    "ssl.key.password",
    "ssl.truststore.password",
    "ssl.keystore.key",
    "listener.name.outside.ssl.keystore.key",
    "listener.name.outside.scram-sha-256.sasl.jaas.config",
    "zookeeper.ssl.keystore.password",
    "password.encoder.secret",
    "password.encoder.old.secret",
    "delegation.token.secret.key",
    "delegation.token.master.key",
]


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_not_in_an_error(name: str) -> None:
    assert is_secret(name)
    assert "planted" not in str(SettingError(name, "planted", "of no use"))


def test_other_values_are() -> None:
    for name in ("listeners", "ssl.keystore.location", "ssl.keystore.type", "sasl.enabled.mechanisms"):
        assert not is_secret(name)
        assert "planted" in str(SettingError(name, "planted", "of no use"))


async def test_secrets_are_not_in_the_settings_that_a_start_prints(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    config = load_config({"log.dirs": str(tmp_path), **dict.fromkeys(SECRETS, "planted")})
    async with running(BrokerServer(config, network=MemoryNetwork())):
        pass
    assert "ssl.keystore.key=[hidden]" in caplog.text
    assert "planted" not in caplog.text

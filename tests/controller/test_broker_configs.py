"""What is stored for brokers and is no good: it is ignored, and the rest is in force."""

from __future__ import annotations

import logging

import pytest

from ottla.base.config import Config
from ottla.base.seams import SystemClock
from ottla.controller.configs.broker_configs import BrokerConfigs
from ottla.controller.configs.broker_passwords import BrokerPasswords
from ottla.controller.zookeeper.config_store import ConfigStore
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.store.cluster_store import ensure_paths
from ottla.log.settings import LogManagerSettings, LogSettings
from ottla.replication.metadata_cache import MetadataCache
from ottla.security.entities import BROKERS, DEFAULT, Entity
from ottla.tests.zookeeper_double.embedded_store import EmbeddedStore


async def stored_configs() -> ConfigStore:
    store = EmbeddedStore(SystemClock())
    await store.open()
    await ensure_paths(store.session(), znodes.PERSISTENT_PATHS)
    return ConfigStore(store.session(), SystemClock(), MetadataCache())


async def test_what_cannot_be_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    configs = await stored_configs()
    config = Config()
    config.settings(LogSettings)
    config.settings(LogManagerSettings)
    stored = {"log.segment.bytes": "many", "log.retention.ms": "9", "node.id": "7", "num.io.threads": "3"}
    await configs.change(Entity(BROKERS, DEFAULT), lambda before: stored)
    with caplog.at_level(logging.WARNING):
        BrokerConfigs(config, configs.metadata, 1, BrokerPasswords(config).decoded).follow()
    assert config.settings(LogSettings).retention_ms == 9
    assert config.settings(LogSettings).segment_bytes == 1 << 30
    assert config.dynamic_default == {"log.retention.ms": "9", "num.io.threads": "3"}
    levels = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in levels] == ["ERROR", "ERROR", "WARNING"]
    assert "node.id" in levels[1][1] and "num.io.threads is set dynamically" in levels[2][1]


async def test_only_its_own_and_everybodys_concern_a_broker() -> None:
    configs = await stored_configs()
    config = Config()
    config.settings(LogSettings)
    told: list[int] = []
    config.on_change.append(lambda: told.append(config.settings(LogSettings).retention_ms))
    BrokerConfigs(config, configs.metadata, 1, BrokerPasswords(config).decoded).follow()
    told.clear()
    await configs.change(Entity(BROKERS, "2"), lambda before: {"log.retention.ms": "2"})
    await configs.change(Entity(BROKERS, "1"), lambda before: {"log.retention.ms": "1"})
    await configs.change(Entity(BROKERS, DEFAULT), lambda before: {"log.retention.ms": "3"})
    await configs.change(Entity(BROKERS, "1"), lambda before: {})
    assert told == [1, 1, 3]

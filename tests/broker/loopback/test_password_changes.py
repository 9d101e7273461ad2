"""Passwords of listeners that are set while a broker runs: encrypted in the store, in force at once, shown to nobody."""

from __future__ import annotations

import logging
import os
import ssl
from pathlib import Path

import pytest
import trio.testing
from cryptography.hazmat.primitives import serialization

from ottla.base.errors import ErrorCode
from ottla.base.seams import InlineWorkers
from ottla.base.tls import TlsConnection
from ottla.security.entities import BROKERS, Entity
from ottla.security.password_encoder import PasswordEncoder
from ottla.security.tls_certificates import Identity, issue
from ottla.security.tls_context import client_context
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

from ...helpers.memory_cluster import MemoryCluster, running, until
from ...security.helpers.certificates import HOSTS, authority, broker, now, parsed, settings_of

PREFIX = "listener.name.outside.ssl"
PASSWORD, LOCATION = f"{PREFIX}.key.password", f"{PREFIX}.keystore.location"
BROKER_RESOURCE = 4
FIRST, SECOND = "hunter2-first", "hunter2-second"


def write(file: Path, identity: Identity, password: str) -> None:
    """An identity whose key is encrypted; each time the file is newer than before."""
    key = serialization.load_pem_private_key(identity.key.encode(), None)
    encryption = serialization.BestAvailableEncryption(password.encode())
    encrypted = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    before = file.stat().st_mtime_ns if file.exists() else 0
    file.write_text(encrypted.decode() + identity.certificate)
    os.utime(file, ns=(before + 1, before + 1))


def listeners(file: Path, **more: str) -> dict[str, str]:
    return {
        "listeners": "PLAINTEXT://broker1:9092,OUTSIDE://outside1:9093",
        "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SSL",
        "inter_broker_listener_name": "PLAINTEXT",
        f"{PREFIX}.keystore.type": "PEM",
        LOCATION: str(file),
        PASSWORD: FIRST,
        **more,
    }


async def alter(cluster: MemoryCluster, *, validate_only: bool = False, **settings: str) -> tuple[int, str | None]:
    configs = [AlterableConfig(name=name, config_operation=0, value=value) for name, value in settings.items()]
    resource = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name="1", configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (answer,) = (await cluster.ask(1, request, 1)).responses
    return answer.error_code, answer.error_message


async def shown(cluster: MemoryCluster) -> bytes | None:
    """The certificate that a new connection is shown."""
    connection = await cluster.network.connect("outside1", 9093)
    tls = TlsConnection(connection, client_context(*parsed(settings_of(None))), InlineWorkers(), server_name="test")
    await tls.handshake()
    tls.close()
    return tls.peer_certificate


def der(identity: Identity) -> bytes:
    return ssl.PEM_cert_to_DER_cert(identity.certificate)


def stored(cluster: MemoryCluster) -> str:
    return cluster.services(1).metadata.image.broker_config("1")[PASSWORD]


async def test_a_password_is_in_force_at_once_and_after_restarts_and_encrypted_in_the_store(
    autojump_clock: trio.testing.MockClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    file, renewed = tmp_path / "outside.pem", issue(authority(), "broker", 60, now(), hosts=HOSTS)
    write(file, broker(), FIRST)
    async with running(1, **listeners(file, password_encoder_secret="one")) as cluster:
        assert await shown(cluster) == der(broker())
        write(file, renewed, SECOND)
        error, message = await alter(cluster, **{LOCATION: str(file)})
        assert error == ErrorCode.INVALID_REQUEST and "hunter2" not in str(message)  # with the password before
        assert await alter(cluster, **{LOCATION: str(file), PASSWORD: SECOND}) == (ErrorCode.NONE, None)
        assert await shown(cluster) == der(renewed)
        first = stored(cluster)
        assert PasswordEncoder("one").decode(first) == SECOND

        assert await alter(cluster, **{"log.retention.ms": "1000"}) == (ErrorCode.NONE, None)
        assert stored(cluster) == first, "it is encrypted again though it is the same"

        for more in (
            {"password_encoder_secret": "one"},
            {"password_encoder_secret": "two", "password_encoder_old_secret": "one"},
            {"password_encoder_secret": "two", "password_encoder_cipher_algorithm": "AES/GCM/NoPadding"},
        ):
            await cluster.stop(1)
            await cluster.start(1, **more)
            assert await shown(cluster) == der(renewed)
        assert PasswordEncoder("two").decode(stored(cluster)) == SECOND

        request = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=BROKER_RESOURCE, resource_name="1")], include_synonyms=True
        )
        (described,) = (await cluster.ask(1, request, 4)).results
        entry = next(each for each in described.configs if each.name == PASSWORD)
        assert (entry.value, entry.is_sensitive) == (None, True)
        for secret in ("hunter2", stored(cluster)):
            assert secret not in repr(described)
            assert secret not in caplog.text


async def test_without_a_secret_no_password_is_set(
    autojump_clock: trio.testing.MockClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "outside.pem"
    write(file, broker(), FIRST)
    async with running(1, **listeners(file)) as cluster:
        write(file, broker(), SECOND)
        refused = (ErrorCode.INVALID_CONFIG, "Password encoder secret not configured")
        assert await alter(cluster, **{LOCATION: str(file), PASSWORD: SECOND}) == refused
        assert await alter(cluster, validate_only=True, **{LOCATION: str(file), PASSWORD: SECOND}) == (0, None)
        assert cluster.services(1).metadata.image.broker_config("1") == {}


async def test_a_password_that_cannot_be_decrypted_is_said_and_not_gone_by(
    autojump_clock: trio.testing.MockClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Written by ``kafka-configs --zookeeper`` with another secret, or as it is."""
    file = tmp_path / "outside.pem"
    write(file, broker(), FIRST)
    async with running(1, **listeners(file, password_encoder_secret="one")) as cluster:
        configs = cluster.services(1).cluster.configs
        for text in (PasswordEncoder("two").encode("hunter2"), "hunter2"):
            await configs.change(Entity(BROKERS, "1"), lambda _, text=text: {PASSWORD: text})  # type: ignore[misc]
            await until(lambda: "is stored as a dynamic config, and ignored" in caplog.text)
            assert await shown(cluster) == der(broker())
        assert "hunter2" not in caplog.text

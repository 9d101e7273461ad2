"""A broker whose listeners ask for TLS: who gets in and as whom, what is said of those who do not, and new certificates."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
import trio.testing

from ottla.base.config import Config
from ottla.base.errors import ErrorCode
from ottla.base.memory_network import MemoryNetwork
from ottla.base.network import Connection
from ottla.base.seams import InlineWorkers
from ottla.base.settings import SettingError
from ottla.base.tls import TlsConnection
from ottla.broker.auth.tls_contexts import ListenerTls
from ottla.broker.auth.tls_transport import TlsListener
from ottla.broker.listener_config import ListenerConfig
from ottla.broker.server import BrokerServer, StartError
from ottla.handlers.connection_context import ConnectionContext
from ottla.replication.broker_client import BrokerClient, PeerUnavailableError, SecuredConnection
from ottla.security.tls_certificates import Identity, issue
from ottla.security.tls_context import client_context
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

from ...helpers.memory_broker import PORT, serving
from ...security.helpers.certificates import HOSTS, authority, broker, client, now, parsed, settings_of

BROKER = 4  # the type of the resource


def opening(identity: Identity | None = None, **more: str) -> ssl.SSLContext:
    return client_context(*parsed(settings_of(identity, **more)))


def client_of(network: MemoryNetwork, context: ssl.SSLContext, seen: list[TlsConnection] | None = None) -> BrokerClient:
    """A client that shows what the context has; ``seen`` gets its connections."""

    async def secure(connection: Connection, host: str) -> SecuredConnection:
        tls = TlsConnection(connection, context, InlineWorkers(), server_name=host)
        await tls.handshake()
        if seen is not None:
            seen.append(tls)
        return SecuredConnection(tls)

    return BrokerClient(network, "test", PORT, "test", timeout=20, secure=secure)


def underscored(properties: dict[str, str]) -> dict[str, str]:
    return {name.replace(".", "_"): value for name, value in properties.items()}


def tls_settings(**more: str) -> dict[str, str]:
    return {"listeners": f"SSL://test:{PORT}", **underscored(settings_of(broker())), **more}


async def test_a_client_is_answered_over_tls(tmp_path: Path) -> None:
    async with serving(tmp_path, **tls_settings()) as network:
        asking = client_of(network, opening())
        response = await asking.send(ApiVersionsRequest(), 0)
        assert response.error_code == ErrorCode.NONE
        asking.close()


async def test_a_client_needs_the_certificate_that_a_listener_requires(tmp_path: Path) -> None:
    async with serving(tmp_path, **tls_settings(ssl_client_auth="required")) as network:
        known = client_of(network, opening(client()))
        assert (await known.send(ApiVersionsRequest(), 0)).error_code == ErrorCode.NONE
        known.close()
        unknown = client_of(network, opening())
        with pytest.raises(PeerUnavailableError):
            await unknown.send(ApiVersionsRequest(), 0)
        unknown.close()


async def test_a_client_without_tls_is_closed_with_a_line_that_says_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ottla.broker")
    async with serving(tmp_path, **tls_settings()) as network:
        plain = BrokerClient(network, "test", PORT, "plain", timeout=20)
        with pytest.raises(OSError):  # noqa: PT011  an alert is no answer
            await plain.send(ApiVersionsRequest(), 0)
        plain.close()
    assert "does not look like TLS" in caplog.text
    assert "set security.protocol=SSL in the client" in caplog.text


async def test_what_the_client_finds_wrong_is_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="ottla.broker")
    async with serving(tmp_path, **tls_settings()) as network:
        mistrusting = client_of(network, client_context(*parsed(settings_of(None, trusted=client()))))
        with pytest.raises(PeerUnavailableError):
            await mistrusting.send(ApiVersionsRequest(), 0)
        mistrusting.close()
        await trio.testing.wait_all_tasks_blocked()
    assert "SSL handshake failed: tlsv1 alert unknown ca" in caplog.text


async def test_a_listener_without_tls_stays_without(tmp_path: Path) -> None:
    listeners = f"SSL://test:{PORT},PLAINTEXT://test:9093"
    async with serving(tmp_path, **tls_settings() | {"listeners": listeners}) as network:
        plain = BrokerClient(network, "test", 9093, "plain", timeout=20)
        assert (await plain.send(ApiVersionsRequest(), 0)).error_code == ErrorCode.NONE
        plain.close()


async def test_a_key_store_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    for properties, why in (
        ({"ssl.keystore.location": "/nowhere", "ssl.keystore.password": "hidden-secret"}, "cannot be read"),
        ({}, "needs a key store"),
        ({"ssl.keystore.key": "hidden-secret", "ssl.keystore.type": "PEM"}, "certificate chain is not specified"),
        ({"ssl.truststore.password": "hidden-secret"}, "SSL trust store is not specified"),
        ({"password.encoder.secret": "x"}, "needs a key store"),  # which might have been set at run time
    ):
        server = BrokerServer(
            Config({"listeners": f"SSL://test:{PORT}", "log.dirs": str(tmp_path), **properties}),
            network=MemoryNetwork(),
        )
        with pytest.raises(StartError, match=why) as refused:
            await server.serve()
        assert "hidden-secret" not in str(refused.value)


async def test_brokers_that_would_not_trust_one_another_do_not_start(tmp_path: Path) -> None:
    properties = settings_of(broker(), trusted=client(), ssl_client_auth="required")
    properties |= {
        "listeners": f"SSL://test:{PORT}",
        "security.inter.broker.protocol": "SSL",
        "log.dirs": str(tmp_path),
    }
    with pytest.raises(StartError, match="can't connect to a server SSLEngine"):
        await BrokerServer(Config(properties), network=MemoryNetwork()).serve()


# --- who a client is --------------------------------------------------------------------------------------------------


async def principal(identity: Identity | None, protocol: str = "SSL", **more: str) -> str:
    """As whom a client is let in by a listener of its own."""
    config = ListenerConfig(Config(settings_of(broker(), **more)), "X", protocol)
    network = MemoryNetwork()
    listener = await network.listen("test", 1, 1)
    below = await network.connect("test", 1)
    accepted, context = await listener.accept(), ConnectionContext("X", "client:1", protocol)
    opened = TlsConnection(below, opening(identity), InlineWorkers(), server_name="test")
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(opened.handshake)
            secured = await TlsListener(config, InlineWorkers(), is_inter_broker=False).accept(accepted, context)
    secured.close()
    opened.close()
    return str(context.principal)


async def test_a_client_is_who_its_certificate_says() -> None:
    assert await principal(client(), ssl_client_auth="required") == "User:CN=alice"
    assert await principal(client("bob", "Sales"), ssl_client_auth="requested") == "User:CN=bob,OU=Sales"
    rules = "RULE:^CN=([a-z]+),OU=Sales$/$1/U,DEFAULT"
    both = {"ssl_client_auth": "required", "ssl_principal_mapping_rules": rules}
    assert await principal(client("bob", "Sales"), **both) == "User:BOB"
    assert await principal(client(), **both) == "User:CN=alice"


async def test_a_client_without_a_certificate_is_anonymous() -> None:
    assert await principal(None) == "User:ANONYMOUS"
    assert await principal(client()) == "User:ANONYMOUS"  # it was not asked
    assert await principal(None, ssl_client_auth="requested") == "User:ANONYMOUS"


async def test_settings_of_a_listener_are_stronger_than_those_of_all() -> None:
    prefixed = {
        "listener_name_x_ssl_client_auth": "required",
        "listener_name_x_ssl_principal_mapping_rules": "RULE:.+/me/",
    }
    assert await principal(client(), ssl_client_auth="none", **prefixed) == "User:me"


async def test_with_sasl_a_certificate_does_not_say_who_a_client_is() -> None:
    """And only ssl.client.auth with the listener's prefix asks for one (KIP-684)."""
    assert await principal(None, "SASL_SSL", ssl_client_auth="required") == "User:ANONYMOUS"
    assert await principal(client(), "SASL_SSL", listener_name_x_ssl_client_auth="required") == "User:ANONYMOUS"


async def test_a_client_that_no_rule_is_for_is_refused() -> None:
    with pytest.raises(BaseExceptionGroup) as refused:
        await principal(client(), ssl_client_auth="required", ssl_principal_mapping_rules="RULE:^O=(.*)$/$1/")
    assert refused.group_contains(OSError, match="no rule of ssl.principal.mapping.rules matches CN=alice")


async def test_a_suite_that_is_not_named_is_refused() -> None:
    with pytest.raises(BaseExceptionGroup) as refused:
        await principal(None, ssl_cipher_suites="TLS_AES_128_GCM_SHA256")
    assert refused.group_contains(OSError, match="which ssl.cipher.suites does not name")


# --- new certificates while it runs -----------------------------------------------------------------------------------


class Stores:
    """A key store and a trust store in PEM, of which the one is rewritten at times."""

    def __init__(self, folder: Path) -> None:
        self.key = folder / "key.pem"
        self.trusted = folder / "ca.pem"
        self.trusted.write_text(authority().certificate)
        self._changes = 0
        self.write(broker())

    def write(self, identity: Identity) -> None:
        """The file's time of change is another one, however quickly that comes."""
        self.key.write_text(identity.key_store)
        self._changes += 1
        os.utime(self.key, ns=(self._changes, self._changes))

    def settings(self) -> dict[str, str]:
        prefix = "listener.name.ssl.ssl"
        return underscored(
            {
                "listeners": f"SSL://test:{PORT}",
                f"{prefix}.keystore.type": "PEM",
                f"{prefix}.keystore.location": str(self.key),
                f"{prefix}.truststore.type": "PEM",
                f"{prefix}.truststore.location": str(self.trusted),
            }
        )


async def alter(asking: BrokerClient, name: str, value: str) -> tuple[int, str | None]:
    """(error code, message) of setting a property of broker 1."""
    config = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=[config])
    response = await asking.send(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    return response.responses[0].error_code, response.responses[0].error_message


async def shown(network: MemoryNetwork) -> bytes | None:
    """The certificate that a new connection is shown."""
    seen: list[TlsConnection] = []
    asking = client_of(network, opening(), seen)
    await asking.send(ApiVersionsRequest(), 0)
    asking.close()
    return seen[0].peer_certificate


def der(identity: Identity) -> bytes:
    return ssl.PEM_cert_to_DER_cert(identity.certificate)


LOCATION = "listener.name.ssl.ssl.keystore.location"


async def test_a_new_certificate_is_for_new_connections_and_drops_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stores = Stores(tmp_path)
    async with serving(tmp_path / "data", **stores.settings()) as network:
        asking = client_of(network, opening())
        await asking.send(ApiVersionsRequest(), 0)
        renewed = issue(authority(), "broker", 60, now(), hosts=HOSTS)
        stores.write(renewed)
        assert await shown(network) == der(broker())  # nobody has asked for it to be read
        assert await alter(asking, LOCATION, str(stores.key)) == (ErrorCode.NONE, None)
        stores.write(client())  # what comes into the file later is for the next time
        assert await shown(network) == der(renewed)
        assert (await asking.send(ApiVersionsRequest(), 0)).error_code == ErrorCode.NONE
        request = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=[LOCATION])]
        )
        (entry,) = (await asking.send(request, 1)).results[0].configs
        assert (entry.value, entry.is_sensitive) == (str(stores.key), False)
        asking.close()
    assert "of no use" not in caplog.text and "does not use" not in caplog.text


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: issue(authority(), "another", 30, now(), hosts=HOSTS), "DistinguishedName does not match"),
        (lambda: issue(authority(), "broker", 30, now(), hosts=HOSTS[:2]), "lacks IP:127.0.0.1"),
        (lambda: Identity(broker().certificate, client().key), "key values mismatch"),
        (lambda: Identity("", ""), "not PEM"),
    ],
)
async def test_a_certificate_that_cannot_take_the_others_place_is_refused(
    tmp_path: Path, make: Callable[[], Identity], why: str
) -> None:
    stores = Stores(tmp_path)
    async with serving(tmp_path / "data", **stores.settings()) as network:
        asking = client_of(network, opening())
        stores.write(make())
        error, message = await alter(asking, LOCATION, str(stores.key))
        assert error == ErrorCode.INVALID_REQUEST
        assert message is not None and why in message
        assert await shown(network) == der(broker())
        asking.close()


async def test_what_cannot_be_changed_is_refused(tmp_path: Path) -> None:
    stores = Stores(tmp_path)
    async with serving(tmp_path / "data", **stores.settings()) as network:
        asking = client_of(network, opening())
        for name, value, error, why in (
            ("ssl.keystore.location", str(stores.key), ErrorCode.INVALID_REQUEST, "only per-listener"),
            ("listener.name.ssl.ssl.client.auth", "required", ErrorCode.INVALID_REQUEST, "ssl.client.auth"),
        ):
            refused, message = await alter(asking, name, value)
            assert refused == error
            assert message is not None and why in message
        asking.close()


def test_a_listener_with_no_more_trust_store_goes_on() -> None:
    """Kafka refuses to add one, not to take one away."""
    config = Config(settings_of(broker()))
    listener = ListenerConfig(config, "X", "SSL")
    tls = TlsListener(listener, InlineWorkers(), is_inter_broker=False)
    without = {name: value for name, value in config.properties.items() if "truststore" not in name}
    tls.check(Config(without))
    bare = TlsListener(ListenerConfig(Config(without), "X", "SSL"), InlineWorkers(), is_inter_broker=False)
    with pytest.raises(SettingError, match="Cannot add SSL truststore"):
        bare.check(config)


async def test_a_handshake_that_fails_as_nothing_should_ends_one_connection_and_not_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_certificate: bytes) -> str:
        raise NotImplementedError("a certificate of a new kind")

    monkeypatch.setattr("ottla.broker.auth.tls_transport.subject_name", fail)
    async with serving(tmp_path, **tls_settings(ssl_client_auth="requested")) as network:
        for _ in range(2):
            known = client_of(network, opening(client()))
            with pytest.raises(PeerUnavailableError):
                await known.send(ApiVersionsRequest(), 0)
            known.close()
        unknown = client_of(network, opening())
        assert (await unknown.send(ApiVersionsRequest(), 0)).error_code == ErrorCode.NONE
        unknown.close()
    assert caplog.text.count("its handshake has failed") == 1
    assert "a certificate of a new kind" in caplog.text


async def test_stores_that_fail_as_nothing_should_are_not_gone_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """``check`` has let them pass, or they came to the store past it."""
    stores = Stores(tmp_path)
    properties = {name.replace("_", "."): value for name, value in stores.settings().items()}
    config = Config(properties)
    tls = ListenerTls(ListenerConfig(config, "SSL", "SSL"), is_server=True, is_inter_broker=False)
    before = tls.current()

    def fail(*_: object) -> None:
        raise NotImplementedError("a key of a new kind")

    monkeypatch.setattr("ottla.broker.auth.tls_contexts.read_material", fail)
    stores.write(client())
    config.change_dynamic({}, {LOCATION: str(stores.key)})
    assert tls.current() is before
    assert "keeps its present stores" in caplog.text

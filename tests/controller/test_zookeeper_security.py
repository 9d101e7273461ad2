"""ZooKeeper that asks who is there: by name and password (SASL), by TLS; and who may do what with a broker's nodes.

The stores of keys are made as the documentation says: Java's with ``keytool``, and PEM files of them with ``openssl``.
"""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from kazoo.client import KazooClient

from ottla.base.settings import SettingError
from ottla.compat_tests import toolchains
from ottla.compat_tests.zookeeper import ZooKeeperProcess
from ottla.controller.zookeeper.registration import ensure_cluster
from ottla.controller.zookeeper.store.cluster_store import Create, Set, StoreError, create
from ottla.controller.zookeeper.store.zookeeper_settings import ZooKeeperSettings, tls_context
from ottla.testing.held_port import HeldPort

from .helpers import session_life_contract, store_contract
from .helpers.store_place import PATIENCE, Rule
from .helpers.zookeeper_place import new_path, refusal, zookeeper_at, zookeeper_place

pytestmark = pytest.mark.slow

JAAS = """\
Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required user_kafka="kafka secret" user_other="other secret";
};
"""
KAFKA = {"zookeeper.sasl.username": "kafka", "zookeeper.sasl.password": "kafka secret"}
OTHER = {"zookeeper.sasl.username": "other", "zookeeper.sasl.password": "other secret"}
STORE_PASSWORD = "store secret"
KEY_PASSWORD = "key secret"

EVERY_CLIENT = ("world", "anyone", 31)
READERS = ("world", "anyone", 1)


class SecuredServer:
    """Plain connections with passwords at ``plain``, TLS at ``tls``, where clients show a certificate, too."""

    def __init__(self, folder: Path) -> None:
        self.keys = _make_keys(folder)
        (folder / "jaas.conf").write_text(JAAS)
        self._tls_port = HeldPort()
        stores = {"keyStore": "server.p12", "trustStore": "trusted.p12"}
        properties = {
            "secureClientPort": str(self._tls_port.number),
            "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            "ssl.clientAuth": "need",
            # Unlike ZooKeeper 3.8 by itself, which has no suite for 1.3.
            "ssl.protocol": "TLSv1.3",
            "ssl.enabledProtocols": "TLSv1.2,TLSv1.3",
            "ssl.ciphersuites": "TLS_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        }
        for name, file in stores.items():
            properties[f"ssl.{name}.location"] = str(folder / file)
            properties[f"ssl.{name}.password"] = STORE_PASSWORD
            properties[f"ssl.{name}.type"] = "PKCS12"
        self.process = ZooKeeperProcess(
            folder,
            properties=properties,
            options=[
                f"-Djava.security.auth.login.config={folder / 'jaas.conf'}",
                "-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
            ],
        )
        self.plain = self.process.address
        self.tls = f"127.0.0.1:{self._tls_port.number}"

    def close(self) -> None:
        self.process.close()
        self._tls_port.close()


def _make_keys(folder: Path) -> dict[str, str]:
    """A server's and a broker's key, in stores that trust each other; and PEM files of what a broker has."""
    # The JVM lives for a moment, so it is not worth compiling.
    keytool = (toolchains.java().with_name("keytool"), "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
    openssl = shutil.which("openssl")
    if openssl is None:
        toolchains.missing("no openssl")

    def run(*command: object) -> None:
        subprocess.run([str(word) for word in command], cwd=folder, check=True, capture_output=True)

    password = ("-storetype", "PKCS12", "-storepass", STORE_PASSWORD)
    for name in ("server", "broker"):
        run(
            *(*keytool, "-genkeypair", "-alias", name, "-keyalg", "EC", "-dname", f"CN={name}"),
            *("-ext", "san=ip:127.0.0.1", "-keystore", f"{name}.p12", *password),
        )
        run(
            *keytool,
            "-exportcert",
            "-rfc",
            "-alias",
            name,
            "-keystore",
            f"{name}.p12",
            "-file",
            f"{name}-cert.pem",
            *password,
        )
    run(*keytool, "-importcert", "-noprompt", "-file", "broker-cert.pem", "-keystore", "trusted.p12", *password)
    store = (openssl, "pkcs12", "-in", "broker.p12", "-passin", f"pass:{STORE_PASSWORD}")
    run(*store, "-nodes", "-out", "broker.pem")
    run(*store, "-passout", f"pass:{KEY_PASSWORD}", "-out", "broker-encrypted.pem")
    names = {"trusted": "server-cert.pem", "key": "broker.pem", "encrypted key": "broker-encrypted.pem"}
    return {name: str(folder / file) for name, file in names.items()}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredServer]:
    server = SecuredServer(tmp_path_factory.mktemp("secured-zookeeper"))
    try:
        server.process.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def over_tls(secured: SecuredServer) -> dict[str, str]:
    """The properties of a broker that has what it needs."""
    return {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": secured.keys["trusted"],
        "zookeeper.ssl.keystore.location": secured.keys["key"],
    }


async def who_may(address: str, path: str) -> list[tuple[str, str, int]]:
    """Scheme, name and permissions of each entry of a node's ACL."""

    def ask() -> list[tuple[str, str, int]]:
        client = KazooClient(address)
        client.start(PATIENCE)
        try:
            entries: list[Any] = client.get_acls(path)[0]
            return [(entry.id.scheme, entry.id.id, entry.perms) for entry in entries]
        finally:
            client.stop()
            client.close()

    return await trio.to_thread.run_sync(ask)


# --- passwords and ACLs -----------------------------------------------------------------------------------------------


async def test_nodes_are_protected_as_kafkas_are(secured: SecuredServer) -> None:
    path = new_path()
    own = zookeeper_at(secured.plain + path, {**KAFKA, "zookeeper.set.acl": "true"})
    session = await own.connect()
    await ensure_cluster(session, random.Random(7))
    await session.multi(
        [Create("/config/users/alice"), Create("/config/topics/t"), Create("/brokers/ids/1", ephemeral=True)]
    )
    creator = ("sasl", "kafka", 31)
    for name in ("", "/brokers", "/brokers/ids/1", "/config/topics/t", "/config/changes", "/cluster/id"):
        assert await who_may(secured.plain, path + name) == [creator, READERS], name
    assert await who_may(secured.plain, f"{path}/consumers") == [EVERY_CLIENT]

    other = await zookeeper_at(secured.plain + path, OTHER).connect()
    await other.get("/config/topics/t")
    await other.multi([Create("/consumers/group")])
    for refused in ([Set("/config/topics/t", b"")], [Create("/brokers/ids/2")]):
        with pytest.raises(StoreError, match="ZooKeeper refuses: NoAuthError"):
            await other.multi(refused)
    for hidden in ("/config/users/alice", "/config/brokers"):
        with pytest.raises(StoreError, match=f"{hidden}: ZooKeeper refuses: NoAuthError"):
            await other.get(hidden)
    for one in (session, other):
        await one.close()


async def test_nodes_are_everybodys_unless_it_is_asked_for(secured: SecuredServer) -> None:
    path = new_path()
    session = await zookeeper_at(secured.plain + path, KAFKA).connect()
    await create(session, "/n")
    assert await who_may(secured.plain, f"{path}/n") == [EVERY_CLIENT]
    await session.close()


async def test_a_wrong_password_is_said_at_once(secured: SecuredServer) -> None:
    wrong = {**KAFKA, "zookeeper.sasl.password": "a guess"}
    await refusal(secured.plain, wrong, "ZooKeeper does not take the name and password")


def test_protected_nodes_need_a_name() -> None:
    with pytest.raises(SettingError, match=r"zookeeper\.set\.acl: the broker has no name at ZooKeeper"):
        zookeeper_at("127.0.0.1", {"zookeeper.set.acl": "true"})
    with pytest.raises(SettingError, match=r"zookeeper\.set\.acl"):  # TLS alone gives none
        zookeeper_at("127.0.0.1", {"zookeeper.set.acl": "true", "zookeeper.ssl.client.enable": "true"})


@pytest.mark.parametrize("given", KAFKA)
def test_a_name_needs_a_password(given: str) -> None:
    with pytest.raises(SettingError, match=f"{given} is given without it"):
        zookeeper_at("127.0.0.1", {given: KAFKA[given]})


# --- TLS --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        store_contract.many_are_read_in_their_order,
        session_life_contract.a_broken_connection_is_followed_by_another,
        session_life_contract.a_session_that_gets_no_answer_is_suspected_and_lives_on_without_its_watches,
    ],
    ids=lambda rule: rule.__name__,
)
async def test_a_session_over_tls_is_as_any_other(rule: Rule, secured: SecuredServer, over_tls: dict[str, str]) -> None:
    async with zookeeper_place(secured.tls, over_tls) as place:
        await rule(place)


async def test_a_large_transaction_passes_tls(secured: SecuredServer, over_tls: dict[str, str]) -> None:
    async with zookeeper_place(secured.tls, over_tls) as place:
        await place.session.multi([Create("/n", bytes(1_000_000))])
        assert (await place.other.get("/n")).data == bytes(1_000_000)


async def test_a_certificate_is_a_name(secured: SecuredServer, over_tls: dict[str, str]) -> None:
    path = new_path()
    session = await zookeeper_at(secured.tls + path, {**over_tls, "zookeeper.set.acl": "true"}).connect()
    await create(session, "/n")
    assert await who_may(secured.plain, f"{path}/n") == [("x509", "CN=broker", 31), READERS]
    await session.close()


async def test_a_key_may_have_a_password(secured: SecuredServer, over_tls: dict[str, str]) -> None:
    encrypted = {**over_tls, "zookeeper.ssl.keystore.location": secured.keys["encrypted key"]}
    session = await zookeeper_at(secured.tls, {**encrypted, "zookeeper.ssl.keystore.password": KEY_PASSWORD}).connect()
    await session.close()
    for wrong in ({}, {"zookeeper.ssl.keystore.password": "a guess"}):
        with pytest.raises(SettingError, match=r"keystore\.location: no key and certificate in PEM format"):
            zookeeper_at(secured.tls, {**encrypted, **wrong})


async def test_a_server_is_believed_only_with_a_certificate_that_is_trusted(
    secured: SecuredServer, over_tls: dict[str, str]
) -> None:
    short = {**over_tls, "zookeeper.connection.timeout.ms": "3000"}
    strange = {**short, "zookeeper.ssl.truststore.location": secured.keys["key"]}  # the broker's own
    await refusal(secured.tls, strange, "certificate verify failed")
    localhost = secured.tls.replace("127.0.0.1", "localhost")
    await refusal(localhost, short, "certificate is not valid for 'localhost'")
    unchecked = {**over_tls, "zookeeper.ssl.endpoint.identification.algorithm": ""}
    session = await zookeeper_at(localhost, unchecked).connect()
    await session.close()


async def test_a_broker_without_a_certificate_is_not_let_in(secured: SecuredServer, over_tls: dict[str, str]) -> None:
    keyless = {**over_tls, "zookeeper.connection.timeout.ms": "1500"}
    del keyless["zookeeper.ssl.keystore.location"]
    await refusal(secured.tls, keyless, "within 1500 ms")


async def test_name_and_password_over_tls(secured: SecuredServer, over_tls: dict[str, str]) -> None:
    path = new_path()
    session = await zookeeper_at(secured.tls + path, {**over_tls, **KAFKA, "zookeeper.set.acl": "true"}).connect()
    await create(session, "/n")
    assert sorted(await who_may(secured.plain, f"{path}/n")) == sorted(
        [("sasl", "kafka", 31), ("x509", "CN=broker", 31), READERS]
    )
    session_without = await zookeeper_at(secured.plain + path, KAFKA).connect()
    await session_without.multi([Set("/n", b"by the same user, who shows no certificate")])
    for one in (session, session_without):
        await one.close()
    wrong = {**over_tls, **KAFKA, "zookeeper.sasl.password": "a guess"}
    await refusal(secured.tls, wrong, "ZooKeeper does not take the name and password")


@pytest.mark.parametrize(
    ("given", "spoken"),
    [
        ({}, "TLSv1.3"),
        ({"zookeeper.ssl.protocol": "TLSv1.2"}, "TLSv1.2"),
        ({"zookeeper.ssl.protocol": "TLSv1.2", "zookeeper.ssl.enabled.protocols": "TLSv1.3,TLSv1.2"}, "TLSv1.3"),
        ({"zookeeper.ssl.enabled.protocols": "TLSv1.2"}, "TLSv1.2"),
    ],
    ids=["default", "protocol", "both", "enabled"],
)
def test_versions_of_tls(secured: SecuredServer, over_tls: dict[str, str], given: dict[str, str], spoken: str) -> None:
    context = tls_context(ZooKeeperSettings.from_properties({**over_tls, **given}))
    assert context is not None
    host, port = secured.tls.split(":")
    plain = socket.create_connection((host, int(port)), PATIENCE)
    with context.wrap_socket(plain, server_hostname=host) as connection:
        assert connection.version() == spoken


def test_an_old_version_of_tls_is_refused() -> None:
    for name in ("protocol", "enabled.protocols"):
        with pytest.raises(SettingError, match=r"must be one of: TLSv1\.2, TLSv1\.3"):
            ZooKeeperSettings.from_properties({f"zookeeper.ssl.{name}": "TLSv1.1"})


@pytest.mark.parametrize("name", ["crl", "ocsp"])
def test_what_is_asked_for_revoked_certificates_is_not_passed_over(name: str) -> None:
    ZooKeeperSettings.from_properties({f"zookeeper.ssl.{name}.enable": "false"})
    with pytest.raises(SettingError, match=rf"zookeeper\.ssl\.{name}\.enable: revoked certificates are not detected"):
        ZooKeeperSettings.from_properties({f"zookeeper.ssl.{name}.enable": "true"})


@pytest.mark.parametrize("name", ["keystore", "truststore"])
def test_a_store_of_keys_is_a_pem_file(name: str, tmp_path: Path) -> None:
    file = tmp_path / "store.jks"
    file.write_bytes(bytes(100))
    given = {"zookeeper.ssl.client.enable": "true", f"zookeeper.ssl.{name}.location": str(file)}
    with pytest.raises(SettingError, match=rf"zookeeper\.ssl\.{name}\.location: no .* in PEM format"):
        zookeeper_at("127.0.0.1", given)
    with pytest.raises(SettingError, match="must be one of: PEM"):
        zookeeper_at("127.0.0.1", {**given, f"zookeeper.ssl.{name}.type": "JKS"})

"""What follows the store outlives an error of the store: said once, tried again, and nothing is missed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import pytest
import trio
import trio.testing

from ottla.base.seams import SimulatedClock
from ottla.controller.token_settings import DelegationTokenSettings
from ottla.controller.zookeeper.acl_store import AclStore
from ottla.controller.zookeeper.config_store import ConfigStore
from ottla.controller.zookeeper.nodes import acl_znodes, token_znodes, znodes
from ottla.controller.zookeeper.store.cluster_store import Create, Delete, ensure_paths
from ottla.controller.zookeeper.token_store import TokenStore
from ottla.replication.metadata_cache import MetadataCache
from ottla.security.acl import AclEntry, Operation, Permission, ResourcePattern, ResourceType
from ottla.security.delegation import Lifetimes, encode_token, new_token
from ottla.security.entities import TOPICS
from ottla.security.principal import Principal
from ottla.tests.zookeeper_double.embedded_store import EmbeddedSession, EmbeddedStore


class Followed(NamedTuple):
    """A store that follows a folder of notifications; ``node`` is written past it, and then it ``knows``."""

    start: Callable[[], Awaitable[None]]
    run: Callable[[], Awaitable[None]]
    folder: str
    node: Create
    knows: Callable[[], bool]


def of_configs(session: EmbeddedSession) -> Followed:
    configs = ConfigStore(session, SimulatedClock(), MetadataCache())
    node = Create(znodes.config_path(TOPICS, "t"), znodes.encode_config({"retention.ms": "1"}))
    return Followed(
        configs.start, configs.run, znodes.CONFIG_CHANGES, node, lambda: bool(configs.metadata.image.topic_config("t"))
    )


def of_rules(session: EmbeddedSession) -> Followed:
    metadata = MetadataCache()
    acls = AclStore(session, SimulatedClock(), metadata)
    pattern = ResourcePattern(ResourceType.TOPIC, "t")
    entry = AclEntry("User:alice", Permission.ALLOW, "*", Operation.READ)
    node = Create(acl_znodes.path(pattern), acl_znodes.encode_entries([entry]))
    return Followed(acls.start, acls.run, acl_znodes.LITERAL_CHANGES, node, lambda: pattern in metadata.image.acls)


def of_tokens(session: EmbeddedSession) -> Followed:
    alice, day = Principal("User", "alice"), 24 * 3_600_000
    metadata = MetadataCache()
    tokens = TokenStore(session, SimulatedClock(), DelegationTokenSettings(), metadata)
    token = new_token("token", alice, alice, [], -1, Lifetimes(day, day), SimulatedClock().now_ms())
    node = Create(f"{token_znodes.TOKENS}/{token.token_id}", encode_token(token))
    return Followed(
        tokens.start, tokens.run, token_znodes.CHANGES, node, lambda: metadata.image.tokens == {token.token_id: token}
    )


@pytest.mark.parametrize("make", [of_configs, of_rules, of_tokens])
async def test_a_folder_that_is_not_there_for_a_while_is_followed_again(
    make: Callable[[EmbeddedSession], Followed],
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = EmbeddedStore(SimulatedClock())
    await store.open()
    other, session = store.session(), store.session()
    await ensure_paths(other, znodes.PERSISTENT_PATHS)
    followed = make(session)
    await followed.start()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(followed.run)
        await other.multi([Delete(followed.folder)])
        await other.multi([followed.node])
        await trio.sleep(10)
        await ensure_paths(other, [followed.folder])
        with trio.fail_after(10):
            while not followed.knows():
                await trio.sleep(0.5)
        nursery.cancel_scope.cancel()
    assert caplog.text.count("cannot be followed for now") == caplog.text.count("are followed again") == 1

"""The active controller is cut off while records are written: brokers of Ottla serve what they lead, and nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, cluster_view
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

from ..mixed.helpers.mixed import KAFKA, OTTLA, PATIENCE_S
from .helpers.cut_controllers import BOTH_SIDES, OTTLA_BROKERS, CutMixed, running_behind_proxies
from .test_quorum_failures import GAP_S, both_loads, longest_gap, wait_acknowledged, wait_another_active
from .test_quorum_security import make_topic

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def behind_proxies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CutMixed]:
    with running_behind_proxies(tmp_path_factory.mktemp("quorum-cuts")) as mixed:
        yield mixed


@pytest.fixture
def cut(behind_proxies: CutMixed) -> Iterator[CutMixed]:
    """None of its brokers has logged an error when the test has ended, and nothing is cut any more."""
    yield behind_proxies
    behind_proxies.proxies.heal()
    assert behind_proxies.troubles() == []


def test_the_active_controller_is_cut_off_and_another_one_is_elected(cut: CutMixed, topic: str) -> None:
    """Brokers of Ottla find that one: it makes a topic at their request. One of Kafka may wait for the former for 30 s."""
    ours = cut.one(OTTLA)
    with both_loads(cut, topic) as (loads, own):
        active, began = cut.active(), time.time()
        cut.proxies.cut(active, *BOTH_SIDES)
        wait_another_active(cut, [active])
        with cut.connect(ours) as connection:
            assert make_topic(connection, f"{topic}-made", ours) == 0
            written = [b"%d" % number for number in range(10)]
            eventually(lambda: write(connection, f"{topic}-made", b"first") == 0, PATIENCE_S)
            assert [write(connection, f"{topic}-made", value) for value in written] == [0] * 10
        wait_acknowledged(own)
        cut.proxies.heal()
        loads.settle()
        assert longest_gap(own, began) < GAP_S
        assert cut.active() != active
    assert cut.read(f"{topic}-made", 11) == [b"first", *written]


def test_brokers_of_ottla_alone_are_cut_off_from_the_active_controller(cut: CutMixed, topic: str) -> None:
    """Which fences them. They don't know, and serve a client that does not either, until the cut has healed.

    The voters are those of the log (KIP-853), each with both listeners.
    """
    ours = cut.quorum.of_kind(OTTLA)
    eventually(
        lambda: upgrade_quorum(cut, ours[0]) == 0, PATIENCE_S
    )  # its leader may not know yet what all voters support
    for each in ours:
        eventually(lambda each=each: finalized(cut, each).get("kraft.version") == 1, PATIENCE_S)
    written = [b"%d" % number for number in range(10)]
    cut.create(f"{topic}-asked", ours, min_insync_replicas="2")
    with both_loads(cut, topic) as (loads, own):
        active = cut.active()
        cut.proxies.cut(active, OTTLA_BROKERS)
        eventually(lambda: alive(cut, cut.one(KAFKA)) == {*cut.quorum.of_kind(KAFKA)}, PATIENCE_S)
        with cut.connect(ours[0]) as connection:
            assert [write(connection, f"{topic}-asked", value) for value in written] == [0] * len(written)
        cut.proxies.heal()
        eventually(lambda: alive(cut, cut.one(KAFKA)) == {*cut.ids}, PATIENCE_S)
        loads.settle()
        wait_acknowledged(own)
    cut.wait_isr(f"{topic}-asked", ours)
    assert cut.read(f"{topic}-asked", len(written)) == written
    cut.wait_same(f"{topic}-asked")


def upgrade_quorum(mixed: CutMixed, asked: int) -> int:
    """Have ``kraft.version`` upgraded; the error."""
    update = FeatureUpdateKey(feature="kraft.version", max_version_level=1, upgrade_type=1)
    with mixed.connect(asked) as connection:
        error: int = connection.call(UpdateFeaturesRequest(feature_updates=[update], timeout_ms=30_000), 2).error_code
    return error


def finalized(mixed: CutMixed, asked: int) -> dict[str, int]:
    """The levels of features, as a broker tells them."""
    with mixed.connect(asked) as connection:
        response = connection.call(ApiVersionsRequest(client_software_name="tests", client_software_version="1"), 4)
    return {each.name: each.max_version_level for each in response.finalized_features}


def write(connection: Connection, topic: str, value: bytes) -> int:
    """Write a record to partition 0, with acks=all; the error."""
    records = batch(value, timestamp_ms=time.time_ns() // 1_000_000)  # an old one would soon be deleted by retention
    (partition,) = connection.call(produce_request(topic, {0: records}), 9).responses[0].partition_responses
    error: int = partition.error_code
    return error


def alive(mixed: CutMixed, asked: int) -> set[int]:
    """The brokers that one tells clients of."""
    view = cluster_view(mixed.cluster.broker(asked).address)
    return set() if view is None else set(view.brokers)

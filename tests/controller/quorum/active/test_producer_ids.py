"""Blocks of producer ids. Facts from Kafka's ProducerIdControlManagerTest."""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.quorum.active.context import ActiveSettings, OperationContext
from ottla.controller.quorum.active.producer_ids import allocate_producer_ids
from ottla.controller.quorum.active.state import ControllerState
from ottla.metadata.image import ClusterImage
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.messages.setting_records import ProducerIdsRecord

from .helpers.cluster_images import EPOCH, after, cluster, replayed

HIGHEST = (1 << 63) - 1


def _context(image: ClusterImage) -> OperationContext:
    return OperationContext(ControllerState.of(image), ActiveSettings(1, "cluster"))


@pytest.mark.parametrize("first", [0, 42, 50, HIGHEST - 1000])
def test_a_block_begins_where_the_one_before_ended(first: int) -> None:
    image = after(cluster(brokers=[1]), [ProducerIdsRecord(broker_id=1, broker_epoch=EPOCH, next_producer_id=first)])
    result = allocate_producer_ids(_context(image), AllocateProducerIdsRequest(broker_id=1, broker_epoch=EPOCH))
    assert (result.response.producer_id_start, result.response.producer_id_len) == (first, 1000)
    assert replayed(image, result).next_producer_id == first + 1000


def test_ids_end() -> None:
    image = after(cluster(brokers=[1]), [ProducerIdsRecord(broker_id=1, next_producer_id=HIGHEST - 999)])
    with pytest.raises(KafkaError) as raised:
        allocate_producer_ids(_context(image), AllocateProducerIdsRequest(broker_id=1, broker_epoch=EPOCH))
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(("broker_id", "epoch"), [(99, 0), (1, EPOCH - 1), (1, EPOCH + 1), (1, -1)])
def test_only_a_broker_of_this_epoch_gets_a_block(broker_id: int, epoch: int) -> None:
    with pytest.raises(KafkaError) as raised:
        allocate_producer_ids(
            _context(cluster(brokers=[1])), AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
        )
    assert raised.value.code is ErrorCode.STALE_BROKER_EPOCH

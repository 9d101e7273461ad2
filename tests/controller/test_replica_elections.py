"""Elections that an administrator asks for, and those that come by themselves."""

from __future__ import annotations

import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.partitions import TopicPartition
from ottla.controller.new_topics import NewTopic
from ottla.controller.zookeeper.nodes.znodes import delete_topic_path
from ottla.controller.zookeeper.store.cluster_store import Create
from ottla.metadata.rules.election import ElectionType
from ottla.metadata.types import LeaderState
from ottla.tests.controller.helpers.cluster import Cluster, running, until
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

from .test_alter_partition import ask

PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN
MANUAL = {"auto.leader.rebalance.enable": "false"}


async def elect(cluster: Cluster, kind: ElectionType, *topics: str) -> list[ErrorCode]:
    """The outcome for partition 0 of each topic."""
    keys = [TopicPartition(topic, 0) for topic in topics]
    results = await cluster.controller.elect_leaders(kind, keys)
    return [error.code if (error := results[key]) else ErrorCode.NONE for key in keys]


async def rejoin(cluster: Cluster, topic: str, leader: int, isr: list[int]) -> None:
    state = await cluster.state(topic)
    version = (await cluster.session.get(f"/brokers/topics/{topic}/partitions/0/state")).stat.version
    request = ask(cluster, leader, topic, isr, leader_epoch=state.leader_epoch, partition_epoch=version)
    assert (await cluster.controller.alter_partition(request, 3)).topics[0].partitions[0].error_code == 0


async def test_preferred_leaders() -> None:
    async with running(brokers=2, settings=MANUAL) as cluster:
        await cluster.create(
            NewTopic("t", assignment={0: [2, 1]}),
            NewTopic("late", assignment={0: [2, 1]}),
            NewTopic("right", assignment={0: [1, 2]}),
        )
        await cluster.die(2)
        assert await elect(cluster, PREFERRED, "t", "right", "none") == [
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            ErrorCode.ELECTION_NOT_NEEDED,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        await cluster.come_back(2)
        await rejoin(cluster, "t", 1, [1, 2])
        assert await elect(cluster, PREFERRED, "t", "late") == [
            ErrorCode.NONE,
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ]
        assert await cluster.state("t") == LeaderState(2, 2, (1, 2), 1)
        assert await cluster.state("late") == LeaderState(1, 1, (1,), 1)
        await until(lambda: cluster.brokers[2].leader_epochs("t") == {0: 2})
        everything = await cluster.controller.elect_leaders(PREFERRED, None)
        assert len(everything) == 3


async def test_unclean_elections() -> None:
    async with running(brokers=3, settings=MANUAL) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 3]}), NewTopic("own", assignment={0: [2]}))
        await rejoin(cluster, "t", 2, [2])
        assert await elect(cluster, UNCLEAN, "t") == [ErrorCode.ELECTION_NOT_NEEDED]
        await cluster.die(2)
        assert await cluster.state("t") == LeaderState(-1, 1, (2,), 1)
        assert await elect(cluster, UNCLEAN, "t", "own") == [
            ErrorCode.NONE,
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ]
        assert await cluster.state("t") == LeaderState(3, 2, (3,), 1, is_recovering=True)


async def test_a_topic_that_is_being_deleted_elects_nobody() -> None:
    async with running(brokers=2, settings=MANUAL) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}))
        await cluster.die(2)
        await cluster.session.multi([Create(delete_topic_path("t"))])
        await until(lambda: cluster.brokers[1].metadata.topic("t") is None)
        assert await elect(cluster, PREFERRED, "t") == [ErrorCode.INVALID_TOPIC_EXCEPTION]


async def balanced(cluster: Cluster) -> None:
    """Broker 2 was away, and is in sync again."""
    for topic in ("a", "b"):
        await cluster.create(NewTopic(topic, assignment={0: [2, 1]}))
    await cluster.die(2)
    await cluster.come_back(2)
    for topic in ("a", "b"):
        await rejoin(cluster, topic, 1, [1, 2])


async def test_preferred_leaders_lead_again_by_themselves(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=2, settings={"leader.imbalance.check.interval.seconds": "60"}) as cluster:
        began = trio.current_time()
        await balanced(cluster)
        assert (await cluster.state("a")).leader == 1
        await trio.sleep(began + 5.5 - trio.current_time())
        assert [(await cluster.state(topic)).leader for topic in ("a", "b")] == [2, 2]
        await cluster.die(2)
        await cluster.come_back(2)
        for topic in ("a", "b"):
            await rejoin(cluster, topic, 1, [1, 2])
        await trio.sleep(began + 64 - trio.current_time())
        assert (await cluster.state("a")).leader == 1
        await trio.sleep(2)
        assert (await cluster.state("a")).leader == 2
        await cluster.controller.resign()
        await cluster.controller.elect()
        await trio.sleep(6)
        assert cluster.controller.is_active


async def test_a_small_imbalance_is_left_alone(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=2, settings={"leader.imbalance.per.broker.percentage": "50"}) as cluster:
        await balanced(cluster)
        assert await elect(cluster, PREFERRED, "a") == [ErrorCode.NONE]
        await trio.sleep(6)
        assert (await cluster.state("b")).leader == 1  # which is half of what broker 2 is preferred for


async def test_no_election_comes_by_itself_where_that_is_off(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=2, settings=MANUAL) as cluster:
        await balanced(cluster)
        await trio.sleep(1000)
        assert (await cluster.state("a")).leader == 1


async def test_blocks_of_producer_ids() -> None:
    async with running(brokers=2) as cluster:

        async def allocate(broker_id: int, epoch: int) -> AllocateProducerIdsResponse:
            request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
            return await cluster.controller.allocate_producer_ids(request)

        epochs = cluster.epochs
        blocks = [await allocate(broker_id, epochs[broker_id]) for broker_id in (1, 2, 1)]
        assert [(block.producer_id_start, block.producer_id_len) for block in blocks] == [
            (0, 1000),
            (1000, 1000),
            (2000, 1000),
        ]
        stored = (await cluster.session.get("/latest_producer_id_block")).data
        assert stored == b'{"version":1,"broker":1,"block_start":"2000","block_end":"2999"}'
        assert (await allocate(7, 1)).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
        assert (await allocate(2, epochs[2] - 1)).error_code == ErrorCode.STALE_BROKER_EPOCH
        assert (await allocate(2, epochs[2] + 1)).error_code == ErrorCode.STALE_BROKER_EPOCH
        cluster.link.lose_connection_at_next_multi(is_executed=True)
        assert (await allocate(2, epochs[2])).producer_id_start == 4000  # 3000 may have been taken
        await cluster.controller.resign()
        assert (await allocate(2, epochs[2])).error_code == ErrorCode.NOT_CONTROLLER


async def test_no_elections_by_a_broker_that_is_not_the_controller() -> None:
    async with running() as cluster:
        await cluster.controller.resign()
        try:
            await cluster.controller.elect_leaders(PREFERRED, None)
        except KafkaError as error:
            assert error.code == ErrorCode.NOT_CONTROLLER
        else:
            raise AssertionError

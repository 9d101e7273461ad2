"""A random cluster in the records of a metadata log: each is one that could come next."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ottla.controller.quorum.metadata_version import ELR, FEATURE
from ottla.wire.messages import access_records, broker_records, metadata_log_records, setting_records, topic_records
from ottla.wire.schema import Message


class RecordWalk:
    """``records`` makes as many as asked, beginning with the level of metadata.version."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._topics: dict[bytes, tuple[str, int]] = {}
        self._brokers: dict[int, int] = {}
        self._acls: list[bytes] = []
        self._tokens: list[str] = []

    def records(self, count: int) -> Iterator[Message]:
        yield setting_records.FeatureLevelRecord(name=FEATURE, feature_level=30)
        yield setting_records.FeatureLevelRecord(name=ELR, feature_level=1)
        steps = (
            self._register,
            self._change_broker,
            self._create_topic,
            self._create_topic,
            self._change_partition,
            self._change_partition,
            self._remove_topic,
            self._set_config,
            self._set_quota,
            self._allow,
            self._forbid,
            self._set_credential,
            self._set_token,
            self._remove_token,
            self._allocate,
            self._clear_elr,
            self._register_controller,
        )
        made = 2
        while made < count:
            for record in self._random.choice(steps)():
                made += 1
                yield record

    def _id(self) -> bytes:
        return self._random.randbytes(16)

    def _replicas(self) -> list[int]:
        return self._random.sample(range(1, 6), self._random.randint(1, 3))

    def _register(self) -> Iterator[Message]:
        broker_id, self_epoch = self._random.randint(1, 5), self._random.randint(1, 1000)
        self._brokers[broker_id] = self_epoch
        yield broker_records.RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=self._id(),
            broker_epoch=self_epoch,
            end_points=[broker_records.BrokerEndpoint(name="PLAINTEXT", host="h", port=9092, security_protocol=0)],
            features=[broker_records.BrokerFeature(name=FEATURE, min_supported_version=7, max_supported_version=30)],
            rack=self._random.choice([None, "a"]),
            fenced=True,
            log_dirs=[self._id() for _ in range(self._random.randint(1, 2))],
        )

    def _change_broker(self) -> Iterator[Message]:
        if self._brokers:
            broker_id, epoch = self._random.choice(list(self._brokers.items()))
            if not self._random.randrange(8):
                del self._brokers[broker_id]
                yield broker_records.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch)
                return
            yield broker_records.BrokerRegistrationChangeRecord(
                broker_id=broker_id,
                broker_epoch=epoch,
                fenced=self._random.choice([-1, 0, 1]),
                in_controlled_shutdown=self._random.choice([0, 1]),
                log_dirs=self._random.choice([[], [self._id()]]),
                cordoned_log_dirs=self._random.choice([None, []]),
            )

    def _register_controller(self) -> Iterator[Message]:
        yield broker_records.RegisterControllerRecord(
            controller_id=self._random.randint(1, 3), incarnation_id=self._id()
        )

    def _create_topic(self) -> Iterator[Message]:
        topic_id, name = self._id(), f"t{self._random.randint(0, 9)}"
        if any(known == name for known, _ in self._topics.values()):
            return
        partitions = self._random.randint(1, 4)
        self._topics[topic_id] = name, partitions
        yield topic_records.TopicRecord(name=name, topic_id=topic_id)
        for number in range(partitions):
            replicas = self._replicas()
            yield topic_records.PartitionRecord(
                partition_id=number,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=[self._id() for _ in replicas],
            )

    def _change_partition(self) -> Iterator[Message]:
        if self._topics:
            topic_id, (_, partitions) = self._random.choice(list(self._topics.items()))
            replicas = self._random.choice([None, self._replicas()])
            yield topic_records.PartitionChangeRecord(
                partition_id=self._random.randrange(partitions),
                topic_id=topic_id,
                isr=self._random.choice([None, [1], []]),
                leader=self._random.choice([-2, -1, 1, 2]),
                replicas=replicas,
                directories=None if replicas is None else [self._id() for _ in replicas],
                leader_recovery_state=self._random.choice([-1, 0, 1]),
                eligible_leader_replicas=self._random.choice([None, [2], []]),
                last_known_elr=self._random.choice([None, [3]]),
            )

    def _clear_elr(self) -> Iterator[Message]:
        names = [name for name, _ in self._topics.values()]
        if names:
            yield topic_records.ClearElrRecord(topic_name=self._random.choice(["", *names]))

    def _remove_topic(self) -> Iterator[Message]:
        if self._topics:
            topic_id = self._random.choice(list(self._topics))
            del self._topics[topic_id]
            yield topic_records.RemoveTopicRecord(topic_id=topic_id)

    def _set_config(self) -> Iterator[Message]:
        kind = self._random.choice([2, 4, 16, 32])
        names = [name for name, _ in self._topics.values()] if kind == 2 else ["", "1"] if kind == 4 else ["x"]
        if names:
            yield setting_records.ConfigRecord(
                resource_type=kind,
                resource_name=self._random.choice(names),
                name=self._random.choice(["a", "b"]),
                value=self._random.choice([None, "1", "2"]),
            )

    def _set_quota(self) -> Iterator[Message]:
        entity = self._random.choice(
            [{"user": "u"}, {"user": None}, {"client-id": "c"}, {"user": "u", "client-id": None}, {"ip": None}]
        )
        yield setting_records.ClientQuotaRecord(
            entity=[setting_records.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
            key=self._random.choice(["producer_byte_rate", "consumer_byte_rate"]),
            value=float(self._random.randint(1, 100)),
            remove=self._random.random() < 0.3,
        )

    def _allow(self) -> Iterator[Message]:
        acl_id = self._id()
        self._acls.append(acl_id)
        yield access_records.AccessControlEntryRecord(
            id=acl_id,
            resource_type=2,
            resource_name=self._random.choice("xyz"),
            pattern_type=3,
            principal=f"User:{acl_id.hex()}",  # a controller adds no rule that is there already
            host="*",
            operation=3,
            permission_type=3,
        )

    def _forbid(self) -> Iterator[Message]:
        if self._acls:
            acl_id = self._random.choice(self._acls)
            self._acls.remove(acl_id)
            yield access_records.RemoveAccessControlEntryRecord(id=acl_id)

    def _set_credential(self) -> Iterator[Message]:
        name, mechanism = self._random.choice(["u", "v"]), self._random.choice([1, 2])
        if self._random.random() < 0.3:
            yield access_records.RemoveUserScramCredentialRecord(name=name, mechanism=mechanism)
        else:
            yield access_records.UserScramCredentialRecord(
                name=name, mechanism=mechanism, salt=self._id(), stored_key=b"k", server_key=b"s", iterations=4096
            )

    def _set_token(self) -> Iterator[Message]:
        token_id = f"token{self._random.randint(0, 3)}"
        self._tokens.append(token_id)
        yield access_records.DelegationTokenRecord(
            owner="User:u",
            requester="User:v",
            renewers=["User:w"],
            issue_timestamp=1,
            max_timestamp=9,
            expiration_timestamp=self._random.randint(2, 8),
            token_id=token_id,
        )

    def _remove_token(self) -> Iterator[Message]:
        if self._tokens:
            yield access_records.RemoveDelegationTokenRecord(token_id=self._random.choice(self._tokens))

    def _allocate(self) -> Iterator[Message]:
        yield setting_records.ProducerIdsRecord(broker_id=1, next_producer_id=self._random.randint(1, 9) * 1000)
        yield metadata_log_records.NoOpRecord()

"""Replay of the registration records of brokers and controllers (KIP-631, KIP-919).

Every change of a broker names the epoch of the registration that it is about; another one than the present is an error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from struct import Struct
from typing import Any

from ...metadata.image import ClusterImage
from ...metadata.types import (
    PROTOCOL_NAMES,
    AdvertisedListener,
    BrokerRegistration,
    QuorumBroker,
    QuorumController,
    VersionRange,
)
from ...wire.messages import broker_records
from ...wire.schema import Message

_as_java_sorts = Struct(">qq").unpack
"""The key by which directories are in order: Kafka's Uuid compares its halves as signed numbers."""

_CHANGES = (-1, 0, 1)
"""In a BrokerRegistrationChange: no more, no change, from now on."""


class ReplayError(Exception):
    """A record does not fit those before it. ``str()`` names it."""


class NodeReplay:
    """What records change of an image's nodes."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self.brokers: dict[int, QuorumBroker | None] = {}
        """Those that differ from the image; None for one that is gone."""
        self.controllers: dict[int, QuorumController | None] = {}
        """Those that differ from the image."""

    def replay(self, record: Message) -> bool:
        """Take one record; False if it is about something else. Raises ReplayError."""
        replay = _REPLAYS.get(type(record))
        if replay is None:
            return False
        replay(self, record)
        return True

    def alive(self) -> Sequence[BrokerRegistration] | None:
        """The brokers that are not fenced; None where nothing has changed of any."""
        if not self.brokers:
            return None
        brokers = {**self._image.quorum_brokers.newest(), **self.brokers}
        return [each.registration for each in brokers.values() if each is not None and not each.is_fenced]

    def _register(self, record: broker_records.RegisterBrokerRecord) -> None:
        endpoints = _endpoints(record.end_points)
        self.brokers[record.broker_id] = QuorumBroker(
            registration=BrokerRegistration(record.broker_id, endpoints, record.rack),
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            features=_features(record.features),
            is_fenced=record.fenced,
            is_shutting_down=record.in_controlled_shutdown,
            directories=tuple(sorted(record.log_dirs, key=_as_java_sorts)),
            cordoned=None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
            is_migrating=record.is_migrating_zk_broker,
        )

    def _unregister(self, record: broker_records.UnregisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = None

    def _fence(self, record: broker_records.FenceBrokerRecord) -> None:
        self.brokers[record.id] = dataclasses.replace(self._broker(record.id, record.epoch), is_fenced=True)

    def _unfence(self, record: broker_records.UnfenceBrokerRecord) -> None:
        self.brokers[record.id] = dataclasses.replace(self._broker(record.id, record.epoch), is_fenced=False)

    def _change(self, record: broker_records.BrokerRegistrationChangeRecord) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        if record.fenced not in _CHANGES or record.in_controlled_shutdown not in _CHANGES:
            raise ReplayError(
                f"a change of broker {record.broker_id} to {record.fenced}, {record.in_controlled_shutdown}"
            )
        changes: dict[str, Any] = {}
        if record.fenced:
            changes["is_fenced"] = record.fenced > 0
        if record.in_controlled_shutdown:
            changes["is_shutting_down"] = record.in_controlled_shutdown > 0
        if record.log_dirs:
            changes["directories"] = tuple(sorted(record.log_dirs, key=_as_java_sorts))
        if record.cordoned_log_dirs is not None:
            changes["cordoned"] = tuple(record.cordoned_log_dirs)
        changed = dataclasses.replace(broker, **changes)
        if changed != broker:
            self.brokers[record.broker_id] = changed

    def _broker(self, broker_id: int, epoch: int) -> QuorumBroker:
        broker = self.brokers.get(broker_id, self._image.quorum_brokers.newest().get(broker_id))
        if broker is None:
            raise ReplayError(f"broker {broker_id} is not registered")
        if broker.epoch != epoch:
            raise ReplayError(f"the epoch of broker {broker_id} is {broker.epoch}, not {epoch}")
        return broker

    def _register_controller(self, record: broker_records.RegisterControllerRecord) -> None:
        self.controllers[record.controller_id] = QuorumController(
            record.controller_id,
            record.incarnation_id,
            _endpoints(record.end_points),
            _features(record.features),
            record.zk_migration_ready,
        )


def _endpoints(endpoints: Iterable[Any]) -> tuple[AdvertisedListener, ...]:
    found = []
    for each in endpoints:
        protocol = PROTOCOL_NAMES.get(each.security_protocol)
        if protocol is None:
            raise ReplayError(f"there is no security protocol with the number {each.security_protocol}")
        found.append(AdvertisedListener(each.name, each.host, each.port, protocol))
    return tuple(found)


def _features(features: Iterable[Any]) -> Mapping[str, VersionRange]:
    return {each.name: VersionRange(each.min_supported_version, each.max_supported_version) for each in features}


_REPLAYS: dict[type[Message], Callable[[NodeReplay, Any], None]] = {
    broker_records.RegisterBrokerRecord: NodeReplay._register,
    broker_records.UnregisterBrokerRecord: NodeReplay._unregister,
    broker_records.FenceBrokerRecord: NodeReplay._fence,
    broker_records.UnfenceBrokerRecord: NodeReplay._unfence,
    broker_records.BrokerRegistrationChangeRecord: NodeReplay._change,
    broker_records.RegisterControllerRecord: NodeReplay._register_controller,
}

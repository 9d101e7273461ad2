"""The checks of single brokers: versions, settings, and the limits that settings have.

No response of Kafka's protocol has the version of a broker's software. Brokers tell the versions of the requests they serve, and
the levels of features, from which a mixture is seen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from ....base.build_info import version
from ....base.errors import KafkaError, known_code
from ....base.wording import counted, plural
from ....controller.quorum.metadata_version import FEATURE, release_of
from ....handlers.config_entries import ConfigSource
from ....view.remote.cluster_client import of_each
from ....wire.api_keys import ApiKey
from ....wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ....wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from .deprecated_settings import DEPRECATED
from .diagnosis import Area, Diagnosis, named, note, ok, warning
from .examined import ExaminedCluster

_BROKER = 4
_MOST_CONNECTIONS = 2**31 - 1
_MOST_SHOWN = 5
_OWN = frozenset(
    """
    advertised.listeners broker.id broker.rack console.listener controller.listener.names listener.security.protocol.map listeners
    log.dir log.dirs machine.listener metadata.log.dir metrics.listener node.id process.roles ssl.keystore.location
    """.split()
)
"""Settings that are a broker's own, and may be different on each."""

Entries = Mapping[str, DescribeConfigsResourceResult]


@dataclasses.dataclass(frozen=True, slots=True)
class DescribedBroker:
    """A broker's settings by name."""

    entries: Entries

    def value(self, name: str) -> str | None:
        entry = self.entries.get(name)
        return None if entry is None else entry.value


async def versions(cluster: ExaminedCluster) -> list[Diagnosis]:
    """Whether brokers serve the same versions, and whether the finalized ``metadata.version`` is behind them."""

    async def ask(broker: int) -> ApiVersionsResponse:
        request = ApiVersionsRequest(client_software_name="ottla", client_software_version=version())
        response: ApiVersionsResponse = await cluster.client.ask(broker, request)
        if response.error_code:
            raise KafkaError(known_code(response.error_code))
        return response

    told = await of_each(sorted(cluster.client.nodes), ask, cluster.failed)
    found = [*_mixed(told), *_finalized(told)]
    if not found and told:
        found.append(
            ok(
                Area.VERSIONS,
                f"{counted(len(told), 'broker')} {plural(len(told), 'serves', 'serve')} the same versions of requests",
            )
        )
    what = "The versions of clients are only in each broker's own console and log"
    return [*found, note(Area.VERSIONS, what, "ottla serve --console; docs/console.md")]


def _mixed(told: Mapping[int, ApiVersionsResponse]) -> Iterable[Diagnosis]:
    served = {
        broker: {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        for broker, response in told.items()
    }
    keys = {key for ranges in served.values() for key in ranges}
    differing = [key for key in sorted(keys) if len({ranges.get(key) for ranges in served.values()}) > 1]
    if not differing:
        return
    newest = {key: max(ranges.get(key, (0, -1))[1] for ranges in served.values()) for key in differing}
    older = [
        broker
        for broker, ranges in sorted(served.items())
        if any(ranges.get(key, (0, -1))[1] < newest[key] for key in differing)
    ]
    what = (
        f"Brokers serve different versions of {named(_api_name(key) for key in differing)}: "
        f"{plural(len(older), 'broker')} {named(older)} {plural(len(older), 'is', 'are')} behind in some"
    )
    yield warning(Area.VERSIONS, what, "end the upgrade: docs/cluster.md#upgrade-without-downtime")


def _api_name(key: int) -> str:
    try:
        return ApiKey(key).name
    except ValueError:  # one that is newer
        return f"API {key}"


def _finalized(told: Mapping[int, ApiVersionsResponse]) -> Iterable[Diagnosis]:
    finalized = {
        each.name: each.max_version_level for response in told.values() for each in response.finalized_features
    }
    level = finalized.get(FEATURE)
    highest = [
        each.max_version for response in told.values() for each in response.supported_features if each.name == FEATURE
    ]
    if level is None or not highest:
        return
    if level < min(highest):
        what = f"{FEATURE} is {_release(level)}, and every broker supports {_release(min(highest))}"
        yield note(Area.VERSIONS, what, "ottla cluster upgrade; docs/quorum.md#a-rolling-upgrade")
    else:
        yield ok(Area.VERSIONS, f"{FEATURE} is {_release(level)}, the highest that all brokers support")


def _release(level: int) -> str:
    try:
        return release_of(level)
    except KeyError:  # one that is newer
        return f"level {level}"


async def read_settings(cluster: ExaminedCluster) -> dict[int, DescribedBroker]:
    """The settings of each broker that tells them. Raises OSError, KafkaError."""

    async def ask(broker: int) -> DescribedBroker:
        resource = DescribeConfigsResource(resource_type=_BROKER, resource_name=str(broker), configuration_keys=None)
        response: DescribeConfigsResponse = await cluster.client.ask(
            broker, DescribeConfigsRequest(resources=[resource])
        )
        for result in response.results:
            if result.error_code:
                raise KafkaError(known_code(result.error_code), result.error_message)
        return DescribedBroker({each.name: each for result in response.results for each in result.configs})

    return await of_each(sorted(cluster.client.nodes), ask, cluster.failed)


def settings(told: Mapping[int, DescribedBroker]) -> list[Diagnosis]:
    """Settings that differ between brokers, are deprecated, or contradict each other."""
    if not told:
        return []
    found = [*_differing(told), *_deprecated(told), *_contradicting(told)]
    return found or [ok(Area.SETTINGS, f"The settings of {counted(len(told), 'broker')} agree, and none is deprecated")]


def _differing(told: Mapping[int, DescribedBroker]) -> Iterable[Diagnosis]:
    names = {name for broker in told.values() for name, entry in broker.entries.items() if not entry.is_sensitive}
    differing = []
    for name in sorted(names - _OWN):
        values = {broker.value(name) for broker in told.values() if name in broker.entries}
        if len(values) > 1 and not name.startswith("listener.name."):
            differing.append(name)
    for name in differing[:_MOST_SHOWN]:
        values_of = ", ".join(
            f"{each.value(name)} on {broker}" for broker, each in sorted(told.items()) if name in each.entries
        )
        is_fixed = any(each.entries[name].read_only for each in told.values() if name in each.entries)
        mend = "set it alike in every server.properties, and start the brokers again"
        if not is_fixed:
            mend = f"ottla configs set --broker-defaults {name}=VALUE"
        yield warning(Area.SETTINGS, f"{name} differs: {values_of}", mend)
    if len(differing) > _MOST_SHOWN:
        rest = differing[_MOST_SHOWN:]
        yield warning(
            Area.SETTINGS,
            f"{counted(len(rest), 'further setting')} differ: {named(rest)}",
            "ottla configs describe --broker ID",
        )


def _deprecated(told: Mapping[int, DescribedBroker]) -> Iterable[Diagnosis]:
    default = ConfigSource.DEFAULT_CONFIG
    for name, why in DEPRECATED.items():
        where = [
            broker
            for broker, each in sorted(told.items())
            if name in each.entries and each.entries[name].config_source != default
        ]
        if where:
            brokers = f"{plural(len(where), 'broker')} {named(where)}"
            yield note(Area.SETTINGS, f"{name} is set on {brokers} and deprecated: {why}", "docs/configuration.md")


def _contradicting(told: Mapping[int, DescribedBroker]) -> Iterable[Diagnosis]:
    for broker, each in sorted(told.items()):
        factor, least = _number(each, "default.replication.factor"), _number(each, "min.insync.replicas")
        if factor is not None and least is not None and factor < least:
            # Never more are asked for than there are replicas (KAFKA-15583), but such a topic outlives no loss of a broker.
            what = f"Broker {broker} makes topics with {counted(factor, 'replica')}, and min.insync.replicas is {least}"
            yield warning(Area.SETTINGS, what, "docs/cluster.md#choose-replicas-acks-and-mininsyncreplicas")


def limits(told: Mapping[int, DescribedBroker]) -> list[Diagnosis]:
    """The most connections that brokers take, where that is limited."""
    found = []
    for broker, each in sorted(told.items()):
        limited = [
            f"{name}={value}"
            for name in ("max.connections", "max.connections.per.ip")
            if (value := _number(each, name)) is not None and value < _MOST_CONNECTIONS
        ]
        if limited:
            found.append(note(Area.LIMITS, f"Broker {broker} takes connections up to {', '.join(limited)}"))
    if not found and told:
        found.append(ok(Area.LIMITS, "No setting limits the number of connections"))
    return found


def _number(broker: DescribedBroker, name: str) -> int | None:
    value = broker.value(name)
    return int(value) if value and value.lstrip("-").isdigit() else None

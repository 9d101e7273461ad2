"""Hosts in the place of racks, for clusters that name no racks and have several brokers on a host.

Brokers of one host fail together, as those of a rack do.
"""

from __future__ import annotations

from collections.abc import Mapping


def racks_or_machines(brokers: Mapping[int, tuple[str | None, str]]) -> dict[int, str | None]:
    """The rack of each broker, from its rack and its host. Hosts are the racks where no broker names a rack, there are several
    hosts, and one of them has several brokers.
    """
    racks = {broker: rack for broker, (rack, _) in brokers.items()}
    hosts = {broker: host for broker, (_, host) in brokers.items()}
    has_racks = any(rack is not None for rack in racks.values())
    if has_racks or not 1 < len(set(hosts.values())) < len(hosts):
        return racks
    return {**hosts}

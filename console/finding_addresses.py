"""Addresses of the pages that findings lead to, and of the pages of connectors."""

from __future__ import annotations

from urllib.parse import quote

from ..view.connect_rows import ConnectorRow
from ..view.findings import FindingRow, Place, Subject

_PAGES = {
    Place.CLUSTER: "/cluster",
    Place.CONNECT: "/connect",
    Place.ERRORS: "/requests/errors",
    Place.GROUPS: "/groups",
    Place.GROUPS_BY_LAG: "/groups?sort=lag",
    Place.OVERVIEW: "/",
    Place.QUORUM: "/quorum",
    Place.SLOWEST: "/requests/slowest",
    Place.TRANSACTIONS: "/transactions",
}
_OF_ONE = {Place.CLIENT: "/requests?q=", Place.GROUP: "/group?id=", Place.TOPIC: "/topics/"}


def address_of(target: FindingRow | Subject) -> str:
    """Of a finding the page that shows all of it, of a subject its own."""
    if isinstance(target, Subject) and target.place is Place.CONNECTOR:
        return connector_address(target.key, target.at)
    if isinstance(target, Subject) and target.place in _OF_ONE:
        return _OF_ONE[target.place] + quote(target.key, safe="")
    return _PAGES[target.place]


def connector_address(name: str, place: str) -> str:
    """The page of a connector, as the worker of Connect at ``place`` tells of it."""
    return f"/connect/{quote(name, safe='')}?at={quote(place, safe=':')}"


def _address_of_row(row: ConnectorRow) -> str:
    return connector_address(row.name, row.place)


FILTERS = {"finding_address": address_of, "connector_address": _address_of_row}

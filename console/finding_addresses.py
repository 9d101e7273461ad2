"""Addresses of the pages that findings lead to."""

from __future__ import annotations

from urllib.parse import quote

from ..view.findings import FindingRow, Place, Subject

_PAGES = {
    Place.CLUSTER: "/cluster",
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
    if isinstance(target, Subject) and target.place in _OF_ONE:
        return _OF_ONE[target.place] + quote(target.key, safe="")
    return _PAGES[target.place]


FILTERS = {"finding_address": address_of}

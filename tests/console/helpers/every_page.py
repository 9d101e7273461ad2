"""Every page of a console, found by links, from the overview on."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from urllib.error import HTTPError
from urllib.parse import urljoin, urlsplit
from urllib.request import urlopen

from .browsing import Page

FIRST = (
    "/",
    "/topics",
    "/topics/orders",
    "/topics/orders/records",
    "/topics/orders/0/7",
    "/groups",
    "/group?id=billing",
    "/connections",
    "/requests",
    "/create-topic?name=invoices&partitions=3",
    "/reset-offsets?id=billing&to=earliest",
    "/topics/orders/configure?name=retention.ms&value=3600000",
    "/topics/orders/delete-records?partition=0&offset=end",
    "/topics/orders/copy?to=orders-test",
    "/find?q=o",
)
"""Pages that are shown for their kind; of actions those with filled-in forms."""
FIRST_ELSEWHERE = tuple(address for address in FIRST if address not in ("/connections", "/requests"))
"""The same for a console that does not belong to a broker."""
FIRST_OF_CONNECT = (
    "/connect",
    "/connect/broken-sink",
    "/restart-failed?name=broken-sink",
)
"""The same for a console that has the connectors of ``recorded_connect``."""
_MOST = 100
_LIMIT_S = 60


def every_page(console: str, first: Sequence[str] = FIRST) -> dict[str, str]:
    """Addresses by kind of page: ``/topics/*/#`` for that of a record."""
    found: dict[str, str] = {}
    to_see = deque(first)
    while to_see and len(found) < _MOST:
        address = to_see.popleft()
        kind = kind_of(address)
        if kind in found:
            continue
        page = _read(urljoin(console, address))
        if page is not None:
            found[kind] = address
            to_see.extend(href for tag, attributes in page.elements if tag == "a" and (href := attributes.get("href")))
    return found


def kind_of(address: str) -> str:
    """The kind of an address: names of topics and connectors, and numbers, are replaced; the part of a list does not count."""
    parts = urlsplit(address)
    path = re.sub(r"^/topics/[^/]+", "/topics/*", parts.path)
    path = re.sub(r"^/connect/.+", "/connect/*", path)
    path = re.sub(r"/\d+(?=/|$)", "/#", path)
    return path.removesuffix("/") or "/"


def _read(address: str) -> Page | None:
    """Read a page; None for downloads and endless streams."""
    try:
        with urlopen(address, timeout=_LIMIT_S) as answer:
            is_page = answer.headers.get_content_type() == "text/html" and not answer.headers["content-disposition"]
            return Page(answer.read().decode()) if is_page else None
    except HTTPError as error:
        raise AssertionError(f"a link to {address} leads to {error.code}") from None

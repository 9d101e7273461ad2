"""Format strings: kcat's letters with kcat's meaning, and rpk's beside them."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from ottla.cli.tools.records.format_template import template_formatter
from ottla.cli.tools.running import UsageError


class Record(NamedTuple):
    """What a format looks at."""

    topic: str = "orders"
    partition: int = 2
    offset: int = 47
    key: bytes | None = b"k\xff"
    value: bytes | None = b"value"
    timestamp: int = 1_700_000_000_500
    headers: Any = (("a", b"1"), ("b", None))
    leader_epoch: int | None = 3


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        # kcat's
        ("%t [%p] at offset %o: key %k: %s\\n", b"orders [2] at offset 47: key k\xff: value\n"),
        ("%K %S", b"2 5"),
        ("%R%s", b"\x00\x00\x00\x05value"),
        ("%T", b"1700000000500"),
        ("%h", b"a=1,b=NULL"),
        ("100%%", b"100%"),
        (r"\t\r\n\0\x41\\\q", b"\t\r\n\0A\\q"),
        ('{"o": %o}', b'{"o": 47}'),
        # rpk's
        ("%v %V %d %e %H", b"value 5 1700000000500 3 2"),
        ("%{%o%}", b"{47}"),
        ("%k{hex} %v{base64} %v{base64raw}", b"6bff dmFsdWU= dmFsdWU"),
        ("%t{hex}", b"6f7264657273"),
        ("%o{hex8} %o{hex32} %o{ascii} %o{bool}", b"2f 0000002f 47 true"),
        ("%V{big32}%V{little16}%V{byte}", b"\0\0\0\x05\x05\0\x05"),
        ("%d{strftime[%F %H:%M]}", b"2023-11-14 22:13"),
        ("%d{strftime#[%Y]#}", b"2023"),
        ("%h{ %k=%v{hex};}", b" a=31; b=;"),
        ("%h{%k(%V)}", b"a(1)b(-1)"),
    ],
)
def test_letters(template: str, shown: bytes) -> None:
    assert template_formatter(template)(Record()) == shown


def test_what_is_null() -> None:
    nothing = Record(key=None, value=None, headers=())
    assert template_formatter("%k|%s|%K|%S|%h|%R")(nothing) == b"||-1|-1||\xff\xff\xff\xff"
    assert template_formatter("%k|%s", null=b"NULL")(nothing) == b"NULL|NULL"
    assert template_formatter("%k", null=b"NULL")(Record(key=b"")) == b""


def test_records_are_counted() -> None:
    render = template_formatter("%i:%o ")
    assert render(Record()) + render(Record(offset=48)) == b"1:47 2:48 "


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("%z", "--format knows no %z"),
        ("%s%", "--format ends in a %"),
        ("%k{rot13}", "%k knows no {rot13}, only hex, base64 and base64raw"),
        ("%o{hex}", "%o knows no {hex}, only ascii, hex8"),
        ("%k{hex", "a { behind a letter, and no } after it"),
        ("%x", "%x would be the producer id, which the client does not report"),
        ("%h{%o}", "--format knows no %o"),
    ],
)
def test_what_is_no_format(template: str, why: str) -> None:
    with pytest.raises(UsageError) as raised:
        template_formatter(template)
    assert why in str(raised.value)

"""What hostile clients and browsers send, and what every answer of the console has to be like nevertheless."""

from __future__ import annotations

import re

from .browsing import Answer, Page

EVIL = "\"><script>alert(1)</script><img src=x onerror=alert(1)>\u202egnp.\u2066\0\x1b[31m' onmouseover='alert(1)"
UNSEEN = set("\0\x1b\u202e\u2066")
OTHER_CONSOLE = "http://console:8080"
"""Where a broker of these tests says that it has one."""
INERT = {
    "application/json",
    "application/octet-stream",
    "application/x-ndjson",
    "image/svg+xml",
    "text/css",
    "text/csv",
    "text/event-stream",
    "text/javascript",
    "text/plain",
}
"""What a browser does not make a page of; all of it comes with nosniff."""


def check_answer(answer: Answer, what: str) -> None:
    """Nothing in it is anybody else's element, script, style, address or direction of text."""
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'"), what
    assert answer.headers["x-content-type-options"] == "nosniff", what
    location = answer.headers.get("location", "/")
    assert location.startswith("/"), (what, location)
    assert not location.startswith(("//", "/\\")), (what, location)
    kind = answer.headers.get("content-type", "text/plain").partition(";")[0]
    if kind == "text/html":
        check_page(answer, what)
    else:
        assert kind in INERT, (what, kind)
        if kind == "text/event-stream":
            assert b"<script" not in answer.body, what
            assert b"<img" not in answer.body, what


def check_page(answer: Answer, what: str) -> None:
    """A page is made of the console's own elements only. A field has what was typed into it, as it is."""
    page = answer.page
    for tag, attributes in page.elements:
        assert tag not in ("img", "style", "iframe", "object", "embed", "base"), (what, tag)
        if tag == "script":
            assert (attributes["src"] or "").startswith("/static/"), what
        assert not any(name.startswith("on") or name == "style" for name in attributes), (what, attributes)
        for name in ("href", "src", "action", "formaction", "hx-get", "hx-post", "data-search", "data-tail"):
            address = (attributes.get(name) or "/").removeprefix(OTHER_CONSOLE)
            assert address.startswith(("/", "#", "?")), (what, name, address)
            assert not address.startswith(("//", "/\\")), (what, name, address)
        shown = [value or "" for name, value in attributes.items() if (tag, name) != ("input", "value")]
        assert not UNSEEN & set("".join(shown)), (what, attributes)
    rest = Page(re.sub(r"(<textarea[^>]*>).*?</textarea>", r"\1</textarea>", page.html, flags=re.DOTALL))
    assert not UNSEEN & set(rest.text), what

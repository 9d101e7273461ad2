"""The fields that a browser would send of a page's unchanged form: inputs, selected options, and textareas."""

from __future__ import annotations

from html.parser import HTMLParser


class FormReader(HTMLParser):
    """``fields`` are those of the form that is sent with POST."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._is_inside = False
        self._select = ""
        self._option: str | None = None
        self._area: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self._is_inside = given.get("method") == "post"
        elif self._is_inside and tag == "input":
            self.fields[given["name"] or ""] = given.get("value") or ""
        elif self._is_inside and tag == "select":
            self._select = given["name"] or ""
        elif self._is_inside and tag == "option":
            self._option = "" if "selected" in given or self._select not in self.fields else None
            if self._option is not None:
                self.fields[self._select] = given.get("value") or ""
                self._option = None if "value" in given else ""
        elif self._is_inside and tag == "textarea":
            self._area = given["name"] or ""
            self.fields[self._area] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area is not None:
            self.fields[self._area] = self.fields[self._area].removeprefix("\n")
            self._area = None
        elif tag == "option":
            self._option = None

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self.fields[self._area] += data
        elif self._option is not None:
            self.fields[self._select] += data

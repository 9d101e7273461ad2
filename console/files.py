"""The static files of the console's pages: its own, and third-party ones that are shipped unchanged.

``static/vendored.json`` says what the others are: name, version, licence, and the SHA-256 of each file. A file's address has its
checksum in it, so a browser may keep it for ever. Icons have no address: they stand in the pages (``icon``).
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

FOLDER = Path(__file__).parent / "static"
_SVG = re.compile(r"<svg.*</svg>", re.DOTALL)
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


class StaticFiles:
    """All in memory: they are small. ``address`` of a name is where a page finds it."""

    def __init__(self) -> None:
        self._contents: dict[str, tuple[bytes, str]] = {}
        self._addresses: dict[str, str] = {}
        self._icons: dict[str, Markup] = {}

    def load(self) -> None:
        """Read them from the package."""
        for file in sorted(FOLDER.glob("*.*")):
            media_type = _TYPES.get(file.suffix)
            if media_type is not None:
                content = file.read_bytes()
                place = f"{hashlib.sha256(content).hexdigest()[:16]}/{file.name}"
                self._contents[place] = content, media_type
                self._addresses[file.name] = f"/static/{place}"

        for file in (FOLDER / "icons").glob("*.svg"):
            drawn = _SVG.search(file.read_text())
            assert drawn is not None
            self._icons[file.stem] = Markup(drawn[0].replace("<svg", '<svg aria-hidden="true"', 1))

    def address(self, name: str) -> str:
        return self._addresses[name]

    def icon(self, name: str) -> Markup:
        """An icon as an element, in the colour of the text around it. It is not read aloud: a text beside it says the same."""
        return self._icons[name]

    async def serve(self, request: Request) -> Response:
        """The page of one file."""
        found = self._contents.get(request.path_params["place"])
        if found is None:
            return PlainTextResponse("There is no such file.\n", status_code=404)
        content, media_type = found
        headers = {"content-type": media_type, "cache-control": "public, max-age=31536000, immutable"}
        return Response(content, headers=headers)

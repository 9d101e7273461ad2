"""The static files of the console's pages: its own, and third-party ones that are shipped unchanged.

``static/vendored.json`` says what the others are: name, version, licence, and the SHA-256 of each file. A file's address has its
checksum in it, so a browser may keep it for ever.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

FOLDER = Path(__file__).parent / "static"
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

    def load(self) -> None:
        """Read them from the package."""
        for file in sorted(FOLDER.iterdir()):
            media_type = _TYPES.get(file.suffix)
            if media_type is not None:
                content = file.read_bytes()
                place = f"{hashlib.sha256(content).hexdigest()[:16]}/{file.name}"
                self._contents[place] = content, media_type
                self._addresses[file.name] = f"/static/{place}"

    def address(self, name: str) -> str:
        return self._addresses[name]

    async def serve(self, request: Request) -> Response:
        """The page of one file."""
        found = self._contents.get(request.path_params["place"])
        if found is None:
            return PlainTextResponse("There is no such file.\n", status_code=404)
        content, media_type = found
        headers = {"content-type": media_type, "cache-control": "public, max-age=31536000, immutable"}
        return Response(content, headers=headers)

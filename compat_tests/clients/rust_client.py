"""The drivers of rdkafka and rskafka, through a pipe to the programs in ``rust/`` (built by tools/build_clients.sh)."""

from __future__ import annotations

import tomllib
from pathlib import Path

from ottla.compat_tests import toolchains
from ottla.compat_tests.clients import model, pipe
from ottla.compat_tests.clients.security import Security


class Client(pipe.Client):
    """A crate."""

    def __init__(self, crate: str, bootstrap: str) -> None:
        manifest = tomllib.loads(Path(__file__).with_name("rust").joinpath("Cargo.toml").read_text())
        version = manifest["dependencies"][crate]["version"].removeprefix("=")
        super().__init__(
            f"{crate} {version}", [str(toolchains.built_clients("rust") / f"drive-{crate}")], pipe.first(bootstrap)
        )

    def secure(self, security: Security) -> None:
        raise model.ClientFailure(None, f"built without OpenSSL, which {security.protocol} needs")

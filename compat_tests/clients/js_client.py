"""The drivers of KafkaJS and @platformatic/kafka, through a pipe to the programs in ``js/``, one Node.js process each.

tools/build_clients.sh installs the libraries beside a copy of the programs.
"""

from __future__ import annotations

import json

from ottla.compat_tests import toolchains
from ottla.compat_tests.clients import pipe


class Client(pipe.Client):
    """A library of npm, by its name there; ``program`` is its driver's file."""

    def __init__(self, package: str, program: str, bootstrap: str) -> None:
        folder = toolchains.built_clients("js")
        version = json.loads((folder / "node_modules" / package / "package.json").read_text())["version"]
        super().__init__(f"{package} {version}", [toolchains.node(), str(folder / program)], pipe.first(bootstrap))

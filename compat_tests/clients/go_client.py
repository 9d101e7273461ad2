"""The drivers of Go's franz-go, sarama and kafka-go, through a pipe to the program in ``go/``.

tools/build_clients.sh builds that program; it knows all three and has the versions that ``go/go.mod`` names.
"""

from __future__ import annotations

import re
from pathlib import Path

from ottla.compat_tests import toolchains
from ottla.compat_tests.clients import pipe

MODULES = {
    "franz-go": "github.com/twmb/franz-go",
    "sarama": "github.com/IBM/sarama",
    "kafka-go": "github.com/segmentio/kafka-go",
}


def version(library: str) -> str:
    """The version that the program is built with."""
    modules = Path(__file__).with_name("go").joinpath("go.mod").read_text()
    found = re.search(rf"{re.escape(MODULES[library])} v(\S+)", modules)
    assert found is not None
    return found[1]


class Client(pipe.Client):
    """One of the libraries, by its name in ``MODULES``."""

    def __init__(self, library: str, bootstrap: str) -> None:
        command = [str(toolchains.built_clients("go") / "driver"), library]
        super().__init__(f"{library} {version(library)}", command, pipe.first(bootstrap))

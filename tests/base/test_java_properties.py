"""Java properties with and without escapes, beside javaproperties."""

from __future__ import annotations

import subprocess
import sys

import javaproperties
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ottla.base import java_properties

CHARACTERS = st.text(alphabet="ab.-_1 \t\f=:#!\\\r\n\x0b\u00e4\u2028\u0130", max_size=12)
LINES = st.builds("\n".join, st.lists(st.builds("{}={}".format, CHARACTERS, CHARACTERS) | CHARACTERS, max_size=4))


@given(LINES)
@example("a=1\r\n#x\\\nb =2\n")
@example("a=1\na=2\n=3\n")
@example("a=b=c\nd=e:f\ng=\nh\n")
@example("#\u2028a=1\na=\\u00zz")
def test_the_same_is_read(text: str) -> None:
    try:
        expected = javaproperties.loads(text)
    except ValueError as error:
        with pytest.raises(type(error)):
            java_properties.loads(text)
        return
    assert java_properties.loads(text) == expected


@given(st.dictionaries(CHARACTERS, CHARACTERS, max_size=4))
def test_the_same_is_written(properties: dict[str, str]) -> None:
    assert java_properties.dumps(properties) == javaproperties.dumps(properties, timestamp=False)


def test_what_brokers_write_needs_no_library() -> None:
    program = (
        "import sys; from ottla.base.java_properties import dumps, loads;"
        "meta = {'version': '1', 'node.id': '1', 'cluster.id': 'vPeOCWypqUOSepEvx0cbog', 'directory.id': 'x-_1'};"
        "assert loads('#Thu Nov 26 10:00:00 UTC 2026\\n' + dumps(meta)) == meta;"
        "print('javaproperties' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"

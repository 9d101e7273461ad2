"""The speed of this machine: the factor by which times of the tests differ from those on a quick one.

It depends on the Python, too: on its implementation, its version, and how it was built.
"""

from __future__ import annotations

import json
import subprocess
import sys

ADDITIONS = 10_000_000
QUICK_S = 0.6
"""What a quick machine needs for them."""
_LOOP = f"""
import time
began = time.process_time()
total = 0
for number in range({ADDITIONS}):
    total += number
print(time.process_time() - began)
"""
_BUILD = """
import json, platform, sys, sysconfig
names = "CONFIG_ARGS", "PY_CFLAGS", "PY_CORE_CFLAGS", "PY_LDFLAGS"
print(json.dumps({
    "implementation": platform.python_implementation(),
    "release": ".".join(map(str, sys.implementation.version[:3])),
    "python": platform.python_version(),
    "compiler": platform.python_compiler(),
    "day": platform.python_build()[1],
    "flags": " ".join(str(sysconfig.get_config_var(name) or "") for name in names),
}))
"""
_OPTIMIZATIONS = {"PGO": ("--enable-optimizations", "-fprofile-use"), "LTO": ("--with-lto", "-flto")}


def factor(python: str = sys.executable) -> float:
    """Seconds of processor time that a Python needs for ten million additions in a loop, divided by 0.6."""
    return float(_printed(python, _LOOP)) / QUICK_S


def build_of_python(python: str = sys.executable) -> str:
    """Implementation, version, compiler and date of a Python, and what its build says of profile- and link-time optimization.

    A build need not say all: that of Debian's packages names neither, and has the first.
    """
    build = json.loads(_printed(python, _BUILD))
    name = f"{build['implementation']} {build['release']}"
    if build["release"] != build["python"]:
        name += f" (Python {build['python']})"
    parts = [name, build["compiler"], build["day"]]
    said = [what for what, signs in _OPTIMIZATIONS.items() if any(sign in build["flags"] for sign in signs)]
    if build["implementation"] == "CPython":
        parts.append(f"built with {' and '.join(said)}" if said else "neither PGO nor LTO on record")
    return ", ".join(filter(None, parts))


def described(python: str = sys.executable) -> str:
    """The build of a Python and how quick it is here, for the page of a benchmark."""
    return f"{build_of_python(python)}, {factor(python) * QUICK_S:.2f} s for {ADDITIONS:,} additions in a loop"


def _printed(python: str, program: str) -> str:
    return subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout

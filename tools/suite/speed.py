"""How fast this machine is: the factor by which times of the tests differ from those on a quick one."""

from __future__ import annotations

import platform
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


def factor() -> float:
    """Seconds of processor time that this Python needs for ten million additions in a loop, divided by 0.6."""
    done = subprocess.run([sys.executable, "-c", _LOOP], capture_output=True, text=True, check=True)
    return float(done.stdout) / QUICK_S


def build_of_python() -> str:
    """Version, compiler and date of this Python, for the factor depends on how it was built."""
    return f"Python {platform.python_version()}, {platform.python_compiler()}, {platform.python_build()[1]}"

#!/usr/bin/env bash
# Runs `tests` and `compat_tests` side by side, each in several processes, as most of what they do is waiting; what compat_tests
# says is shown as it comes, what tests said after it. Arguments are pytest's, for both. Nothing may be skipped. Exit status 1
# if either failed. compat_tests/lanes.py says what stays together in one process.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.venv/bin:$PATH"

said=$(mktemp)
python -m pytest tests --no-skips -q -n 5 --dist worksteal "$@" >"$said" 2>&1 &
tests=$!
trap 'kill $tests 2>/dev/null || true; rm -f "$said"' EXIT
status=0
CI=true python -m pytest compat_tests -q -n 4 --dist loadgroup --no-loadscope-reorder "$@" || status=1
wait $tests || status=1
cat "$said"
exit $status

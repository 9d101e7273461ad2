#!/bin/sh
# Runs `ottla compat` on Ottla and on Apache Kafka (one KRaft node from .jars/kafka-tools-4.3.1, everything in a temporary
# folder), at once, and writes docs/compatibility.md: a test that Kafka fails is wrong.
#
#   tools/compat_oracle.sh [ottla] [kafka]
#
# With one of the two named, the other's part of the page is what its last run left in build/compat.
set -eu

cd -- "$(dirname -- "$0")/.."
[ $# -gt 0 ] || set -- ottla kafka
tools/fetch_jars.sh kafka
mkdir -p build/compat

compat() { # broker
    # Ten restarts of a JVM in one test take their time. With CI=true a missing toolchain is a failure.
    CI=true .venv/bin/python -m ottla compat --broker "$1" --timeout 1200 --html "build/compat/$1.html" \
        --json "build/compat/$1.json" >"build/compat/$1.txt" 2>"build/compat/$1.log" || [ $? -eq 1 ]
}

for broker in "$@"; do
    case $broker in
    ottla | kafka) ;;
    *)
        echo "compat_oracle: no broker is called $broker (ottla, kafka)" >&2
        exit 2
        ;;
    esac
done
running=
for broker in "$@"; do
    echo "compat_oracle: build/compat/$broker.log shows how far $broker is" >&2
    compat "$broker" &
    running="$running $!"
done
failed=
for process in $running; do
    wait "$process" || failed=yes
done
if [ -n "$failed" ]; then
    tail -n 3 build/compat/*.log >&2
    exit 1
fi
# Not into the page itself: half a page is worse than the old one.
.venv/bin/python -m ottla.compat_tests.markdown_page build/compat/ottla.json build/compat/kafka.json >build/compat/page.md
mv build/compat/page.md docs/compatibility.md

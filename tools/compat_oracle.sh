#!/bin/sh
# Runs `ottla compat` on Ottla and on Apache Kafka (one KRaft node from .jars/kafka-tools-4.3.1, everything in a temporary
# folder), at once, and writes docs/compatibility.md: a test that Kafka fails is wrong.
#
#   tools/compat_oracle.sh [ottla] [kafka] [--client NAME]...
#
# What is not asked for is taken from what the last runs left in build/compat: the other broker, the other clients.
set -eu

cd -- "$(dirname -- "$0")/.."
brokers=
clients=
part=
while [ $# -gt 0 ]; do
    case $1 in
    ottla | kafka) brokers="$brokers $1" ;;
    --client)
        clients="$clients --client ${2:?--client takes a name}"
        part=-part
        shift
        ;;
    *)
        echo "compat_oracle: no broker is called $1 (ottla, kafka)" >&2
        exit 2
        ;;
    esac
    shift
done
tools/fetch_jars.sh kafka
mkdir -p build/compat

compat() { # broker
    # Ten restarts of a JVM in one test take their time. With CI=true a missing toolchain is a failure.
    # shellcheck disable=SC2086
    CI=true .venv/bin/python -m ottla compat --broker "$1" $clients --timeout 1200 --html "build/compat/$1$part.html" \
        --json "build/compat/$1$part.json" >"build/compat/$1$part.txt" 2>"build/compat/$1$part.log" || [ $? -eq 1 ]
    # A run of all clients is newer than what there was of some of them.
    [ -n "$part" ] || rm -f "build/compat/$1-part".*
}

running=
for broker in ${brokers:-ottla kafka}; do
    echo "compat_oracle: build/compat/$broker$part.log shows how far $broker is" >&2
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
set --
for name in ottla ottla-part kafka kafka-part; do
    [ ! -e "build/compat/$name.json" ] || set -- "$@" "build/compat/$name.json"
done
# Not into the page itself: half a page is worse than the old one.
.venv/bin/python -m ottla.compat_tests.markdown_page "$@" >build/compat/page.md
mv build/compat/page.md docs/compatibility.md

#!/bin/sh
# Builds the drivers of compat_tests/clients that are programs in other languages, into .clients/<language>.
#
#   tools/build_clients.sh go    the driver of franz-go, sarama and kafka-go (needs Go)
#   tools/build_clients.sh js    the drivers of KafkaJS and @platformatic/kafka (needs Node.js 20 with npm)
#   tools/build_clients.sh rust  the drivers of rdkafka and rskafka (needs Rust 1.85 and a C++ compiler; minutes)
#
# Modules come from where the language's own tool is told to look for them. A driver that was already built from the same
# sources by the same compiler is left alone, so it costs nothing to call this again. Say nothing when all went well and there
# was nothing to do.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
sources=$root/compat_tests/clients

need() { # command, what it is, language
    if ! command -v "$1" >/dev/null 2>&1; then
        echo "build_clients: $2 is missing; it is needed for the clients in $3" >&2
        exit 1
    fi
}

checksum() { # language, what else the result depends on
    (cd "$sources/$1" && find . -type f ! -path './node_modules/*' ! -path './target/*' -exec cksum {} + | sort && echo "$2") | cksum
}

# build LANGUAGE COMMAND...: run the command in the folder of the sources unless $wanted has been built. It puts what it makes
# into $fresh, which takes the place of .clients/LANGUAGE at the end: an interrupted run leaves nothing that looks built.
build() {
    language=$1
    shift
    target=$root/.clients/$language
    if [ "$(cat "$target/.built" 2>/dev/null)" = "$wanted" ]; then
        return
    fi
    echo "build_clients: building the clients in $language" >&2
    fresh=$root/.clients/.$language.$$
    rm -rf "$fresh"
    mkdir -p "$fresh"
    if ! (cd "$sources/$language" && "$@") >"$root/.clients/$language.log" 2>&1; then
        tail -n 20 "$root/.clients/$language.log" >&2
        rm -rf "$fresh"
        echo "build_clients: could not build the clients in $language" >&2
        exit 1
    fi
    echo "$wanted" >"$fresh/.built"
    rm -rf "$target"
    mv "$fresh" "$target"
    rm -f "$root/.clients/$language.log"
}

build_go() {
    # The compiler that is there, and the versions in go.sum; a Go that is too old says so itself.
    export GOTOOLCHAIN=local GOFLAGS=-mod=readonly
    go build -trimpath -buildvcs=false -o "$fresh/driver" .
}

build_js() {
    # No package here has anything to compile.
    cp ./*.mjs package.json package-lock.json "$fresh/" &&
        npm ci --prefix "$fresh" --ignore-scripts --no-audit --no-fund
}

build_rust() {
    # Built in a copy that stays, so that after another change of the sources only they are compiled; but librdkafka cannot be
    # built in a folder with a blank in its path. Its compiler takes half as long when it does not optimize.
    copy=$root/.clients/.rust
    passing=
    case $root in
    *[[:space:]]*) copy=$(mktemp -d) && passing=$copy ;;
    esac
    mkdir -p "$copy" && rm -rf "$copy/src" && cp -Rp Cargo.toml src "$copy/" &&
        (cd "$copy" && CFLAGS=-O0 cargo build --target-dir target) &&
        cp "$copy/target/debug/drive-rdkafka" "$copy/target/debug/drive-rskafka" "$fresh/" && rm -rf "$passing"
}

# The first version is at least the second.
at_least() { # version, version, what it is, language
    if [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" != "$2" ]; then
        echo "build_clients: $3 $1 is too old; $2 is needed for the clients in $4" >&2
        exit 1
    fi
}

[ $# -gt 0 ] || {
    sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
for name in "$@"; do
    case $name in
    go)
        need go "Go (go)" Go
        wanted=$(checksum go "$(GOTOOLCHAIN=local go version)")
        build go build_go
        ;;
    js)
        need node "Node.js (node)" JavaScript
        need npm npm JavaScript
        version=$(node --version)
        at_least "${version#v}" 20.19.4 Node.js JavaScript
        wanted=$(checksum js "$version")
        build js build_js
        ;;
    rust)
        need cargo "Rust (cargo)" Rust
        need c++ "a C++ compiler (c++)" Rust
        version=$(cargo --version | cut -d ' ' -f 2)
        at_least "$version" 1.85.0 Rust Rust
        wanted=$(checksum rust "$version")
        build rust build_rust
        ;;
    *)
        echo "build_clients: no language is called $name (go, js, rust)" >&2
        exit 2
        ;;
    esac
done

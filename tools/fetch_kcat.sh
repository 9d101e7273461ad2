#!/bin/sh
# Puts kcat at .venv/bin/kcat when the machine has none: the distribution's package, unpacked into .venv/kcat, so that
# neither root nor a change of the machine is needed.
set -eu

cd -- "$(dirname -- "$0")/.."
if command -v kcat >/dev/null 2>&1 || .venv/bin/kcat -V >/dev/null 2>&1; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-deb >/dev/null 2>&1; then
    echo "fetch_kcat: kcat is missing: install it with the system's package manager (brew install kcat, dnf install kcat)" >&2
    exit 3
fi

echo "fetch_kcat: fetching kcat" >&2
rm -rf .venv/kcat
mkdir -p .venv/kcat
cd .venv/kcat
# kcat and what it links to that a machine may lack; the rest of its dependencies every Debian has.
wanted='^(kcat|librdkafka1|libyajl2|libavro-c1|libserdes1|libjansson4|liblz4-1|libzstd1|libsasl2-2|libssl3)(t64)?$'
download() {
    packages=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
        --no-enhances kcat 2>/dev/null | grep -E "$wanted" | sort -u)
    [ -n "$packages" ] && apt-get download $packages >download.log 2>&1
}
# The package lists may be missing or too old; only root can renew them.
if ! download && ! { apt-get update >/dev/null 2>&1 && download; }; then
    echo "fetch_kcat: kcat is missing and could not be fetched: apt-get install kcat" >&2
    exit 3
fi
for package in *.deb; do
    dpkg-deb -x "$package" .
    rm "$package"
done
libraries=$(find . -name '*.so*' -exec dirname {} \; | sort -u | sed "s|^\.|\$here/../kcat|" | paste -s -d : -)
cat >../bin/kcat <<EOF
#!/bin/sh
here=\$(CDPATH='' cd -- "\$(dirname -- "\$0")" && pwd)
LD_LIBRARY_PATH=$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH} exec "\$here/../kcat/usr/bin/kcat" "\$@"
EOF
chmod +x ../bin/kcat
if ! ../bin/kcat -V >/dev/null 2>&1; then
    ../bin/kcat -V >&2 || true
    echo "fetch_kcat: the fetched kcat does not run here: apt-get install kcat" >&2
    exit 1
fi

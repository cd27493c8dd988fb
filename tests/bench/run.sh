#!/bin/sh
# SPDX-License-Identifier: MIT
# make bench: fetches what the peers need into $BUILD/bench (installs nothing, starts no service), runs berth-bench and draws the plots.
# BENCH_WRITE=yes puts table and plots into doc/bench.md. Arguments: parts to run (default: all). A part whose program cannot be fetched
# is skipped with a message.
set -eu
build=$(cd "${BUILD:-build}" && pwd)
out=$build/bench
mkdir -p "$out/peers"
export BUILD="$build" BENCH_STAMP="$build/tests/bench/tools/stamp"

# Finds the program NAME of a Debian package, and unpacks it here if it is not installed.
peer() {
    name=$1 package=$2
    command -v "$name" && return
    if [ ! -x "$out/peers/usr/bin/$name" ] && command -v apt-get >/dev/null; then
        (cd "$out/peers" && apt-get download -qq "$package" >/dev/null 2>&1 && dpkg -x "$package"_*.deb . && rm -f "$package"_*.deb) || true
    fi
    if [ -x "$out/peers/usr/bin/$name" ]; then echo "$out/peers/usr/bin/$name"; else echo "bench: no $name ($package): skipped" >&2; fi
}
BENCH_ETCD=$(peer etcd etcd-server) BENCH_ETCDCTL=$(peer etcdctl etcd-client) BENCH_SEM=$(peer sem parallel)
export BENCH_ETCD BENCH_ETCDCTL BENCH_SEM

if command -v node >/dev/null && command -v npm >/dev/null; then
    if [ ! -d "$out/npm/node_modules/redis-semaphore" ]; then
        mkdir -p "$out/npm"
        (cd "$out/npm" && npm install --silent --no-audit --no-fund --no-save redis-semaphore@5 ioredis@5 >/dev/null 2>&1) || true
    fi
    if [ -d "$out/npm/node_modules/redis-semaphore" ]; then
        export NODE_PATH="$out/npm/node_modules" BENCH_REDIS_SEMAPHORE="$PWD/tests/bench/peers/redis-semaphore.js"
        BENCH_REDIS_SEMAPHORE_VERSION=$(sed -n 's/.*"version": "\(.*\)".*/\1/p' "$NODE_PATH/redis-semaphore/package.json" | head -n 1)
        export BENCH_REDIS_SEMAPHORE_VERSION
    else
        echo "bench: npm could not install redis-semaphore: skipped" >&2
    fi
fi

"$build/tests/bench/berth-bench" "$out" "$@"

if command -v gnuplot >/dev/null; then
    (cd "$out" && gnuplot "$OLDPWD/tests/bench/plots.gnuplot")
    echo "plots: $out/*.svg, $out/*.png"
else
    echo "bench: no gnuplot (gnuplot-nox): no plots" >&2
fi

if [ "${BENCH_WRITE:-}" = yes ]; then
    sed -e '/^<!-- table -->/,/^<!-- \/table -->/{' -e '/^<!-- table -->/{p;r '"$out/table.md" -e '}' -e '/^<!-- \/table -->/!d' -e '}' doc/bench.md >"$out/bench.md"
    cp "$out/bench.md" doc/bench.md
    if command -v gnuplot >/dev/null; then cp "$out"/*.svg "$out"/*.png tests/bench/plots/; fi
fi

#!/bin/sh
# SPDX-License-Identifier: MIT
# Drives the page of berth-web in Chromium: tests/page/test-page.mjs. npm installs only into build/page. Argument
# "full": measures more; "pictures": compares the page with tests/page/pictures instead; "write": writes these pictures
# again. Without Chromium, node or npm it is skipped, which is a failure in CI.
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
export BUILD PAGE_MODULES="$BUILD/page"

missing=
for program in chromium node npm; do
    command -v "$program" >/dev/null || missing="$missing $program"
done
if [ -n "$missing" ]; then
    echo "SKIP: page: these programs are missing:$missing"
    if [ "${CI:-}" = true ]; then
        echo "FAIL: page: skipped"
        echo "0 passed, 1 failed, 0 skipped"
        exit 1
    fi
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
mkdir -p "$PAGE_MODULES"
if ! cmp -s tests/page/package-lock.json "$PAGE_MODULES/package-lock.json" || ! [ -d "$PAGE_MODULES/node_modules" ]; then
    cp tests/page/package.json tests/page/package-lock.json "$PAGE_MODULES/"
    npm ci --prefix "$PAGE_MODULES" --no-audit --no-fund --ignore-scripts --loglevel=error >"$PAGE_MODULES/log" 2>&1 || {
        cat "$PAGE_MODULES/log"
        rm -f "$PAGE_MODULES/package-lock.json"
        echo "FAIL: page: npm ci"
        echo "0 passed, 1 failed, 0 skipped"
        exit 1
    }
fi
case ${1:-} in
pictures | write) exec node tests/page/test-pictures.mjs "$@" ;;
*) exec node tests/page/test-page.mjs "$@" ;;
esac

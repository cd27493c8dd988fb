#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that doc/files.md lists each .c and .lua file below its folder, and no other.
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
find base conf store daemon runner cli front web -name '*.c' -o -name '*.lua' | LC_ALL=C sort >"$folder/tree"
awk '/^## / { path = $2 }
     /^- `/ { text = $0; sub(/: .*/, "", text); n = split(text, part, "`"); for (i = 2; i < n; i += 2) print path part[i] }' \
    doc/files.md | LC_ALL=C sort >"$folder/map"
diff "$folder/tree" "$folder/map" >"$folder/diff" && exit 0
sed -n -e 's/^< \(.*\)/map: \1: add what to look for in it to doc\/files.md/p' \
    -e 's/^> \(.*\)/map: \1: doc\/files.md names it, and there is no such file/p' "$folder/diff"
exit 1

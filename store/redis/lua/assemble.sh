#!/bin/sh
# SPDX-License-Identifier: MIT
# assemble.sh SCRIPT: prints two elements of a C initializer: the SHA-1 by which Redis knows the script, and the text that Redis gets. That
# has all parts ("--#include NAME") in it, and no comments and indentation, which are half of the bytes. Lines are kept, because errors
# name them. "--" always begins a comment, also inside a string.
set -eu
text=$(mktemp)
trap 'rm -f "$text"' EXIT
awk -v folder="$(dirname "$1")" '
function put(line) {
    sub(/ *--.*/, "", line)
    sub(/^ +/, "", line)
    print line
}
/^--#include / {
    part = folder "/" $2 ".lua"
    while ((more = (getline line < part)) > 0) put(line)
    if (more < 0) exit 1
    close(part)
    next
}
{ put($0) }' "$1" >"$text"
printf '"%s",\n' "$(sha1sum <"$text" | cut -c 1-40)"
sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$/\\n"/' "$text"

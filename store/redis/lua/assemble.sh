#!/bin/sh
# SPDX-License-Identifier: MIT
# assemble.sh SCRIPT: what Redis gets of it, as elements of a C initializer: the SHA1 by which Redis calls it, and its text with all
# parts ("--#include NAME") filled in, without comments and indentation, which are half of it and went over the network with it. Lines stay
# lines, because errors name them. In a script "--" begins a comment wherever it stands.
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

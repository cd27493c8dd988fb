#!/bin/sh
# SPDX-License-Identifier: MIT
# Names the tests of a source file: those that its mutations name, those of its name, and those that include its header (if there are
# none, a header of its folder). Called by `make which FILE=...`; reads the .d files of `make tests`.
set -u
file=${1:?make which FILE=store/redis/link/link.c}
build=${BUILD:-build}
[ -e "$file" ] || { echo "which: there is no $file" >&2; exit 1; }
name=${file##*/}
name=${name%.*}

# including HEADER: the test files that include it, themselves or by another header. A file that was moved has left its .d
# file behind.
including() {
    find "$build/tests" -name 'test-*.d' -exec grep -lE "(^| )$1( |\$)" {} + 2>/dev/null | sed "s|^$build/||; s|\.d\$|.c|" |
        while read -r test; do [ ! -e "$test" ] || echo "$test"; done | sort
}

awk -v file="$file" '
    /^== / { mutation = substr($0, 4) }
    /^file / { is_it = $2 == file }
    /^tests / && is_it { printf "%s: fails if %s\n", substr($0, 7), mutation }' tests/mutations/*.txt
case $file in store/redis/lua/*) echo "tests/model/test-mutations.c, tests/contract/scripts/test-scripts*.c: run the scripts" ;; esac
find tests -name "test-$name.[cs]*" -o -name "test-$name-*.[cs]*" | sort | sed 's/$/: has its name/'
tests=$(including "${file%.*}.h")
direct=$(printf '%s\n' "$tests" | xargs -r grep -lF "#include \"${file%.*}.h\"")
if [ -n "$tests" ]; then
    printf '%s\n' "${direct:-$tests}" | sed "s|\$|: includes ${file%.*}.h|"
else
    including "${file%/*}/[^/ ]*\.h" | sed "s|\$|: includes a header of ${file%/*}/|"
fi

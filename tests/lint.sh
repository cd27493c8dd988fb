#!/bin/sh
# SPDX-License-Identifier: MIT
# Looks at all sources without running them: cppcheck, gcc -fanalyzer, clang-tidy (.clang-tidy) and shellcheck. Called by `make lint`,
# which gives the compiler's flags as LINT_FLAGS. Arguments: names of checks (all if there are none). Shows findings alone; ends with
# "N passed, N failed, N skipped", counted in checks.
set -u
jobs=$(nproc 2>/dev/null || echo 2)
passed=0 failed=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

sources=$(find base conf store daemon runner cli tests -name '*.c' | sort)
flags=${LINT_FLAGS:?run make lint} # quoted for a shell

# Runs a compiler's command line on each of the sources that are read, some at once; shows what it says only if it fails.
each_source() {
    # shellcheck disable=SC2016
    printf 'out=$(%s "$1" 2>&1) || { printf "%%s\\n" "$out"; exit 1; }\n' "$1" >"$folder/one"
    xargs -P "$jobs" -n 1 sh "$folder/one"
}

check_cppcheck() {
    cppcheck --quiet --inline-suppr --error-exitcode=1 -j "$jobs" -I . -I "${BUILD:-build}/generated" --std=c11 -D_GNU_SOURCE -DVERSION='"0"' -DLIBEXECDIR='"/"' \
        -DSYSCONFDIR='"/"' --include=tests/cppcheck.h --enable=warning,performance,portability --suppressions-list=tests/cppcheck.suppress \
        base conf store daemon runner cli tests
}
# What gcc 12 does not follow: who owns what, and which elements are on a list and which have left it. The sanitizers do. Tests may end
# where memory does.
check_analyzer() {
    analyze="gcc $flags -O0 -fanalyzer -Wno-analyzer-malloc-leak -Wno-analyzer-null-dereference -Wno-analyzer-use-after-free"
    analyze="$analyze -Wno-analyzer-double-free -Wno-format-truncation"
    in_tests="$analyze -Wno-analyzer-possible-null-dereference -Wno-analyzer-possible-null-argument"
    in_tests="$in_tests -Wno-analyzer-use-of-uninitialized-value"
    printf '%s\n' "$sources" | grep -v -e '^tests/' -e '^daemon/api/control' | each_source "$analyze -c -o /dev/null" &&
        printf '%s\n' "$sources" | grep '^daemon/api/control' |
        each_source "$analyze -Wno-analyzer-use-of-uninitialized-value -c -o /dev/null" &&
        printf '%s\n' "$sources" | grep '^tests/' |
        each_source "$in_tests -c -o /dev/null"
}
# The static analyzer follows all paths for its checks of va_list, which takes nine tenths of the time: where there is no va_list they have
# nothing to find. The others of .clang-tidy look at calls and loops alone; clang itself runs these without paths.
check_tidy() {
    # shellcheck disable=SC2086
    variadic=$(grep -lE 'va_(list|start|copy|arg)' $sources)
    calls="clang --analyze --analyzer-no-default-checks -Xclang -analyzer-werror -Xclang -analyzer-checker=security"
    calls="$calls -Xclang -analyzer-disable-checker=security.insecureAPI.DeprecatedOrUnsafeBufferHandling -o /dev/null"
    # clang-tidy wants the file first.
    printf '%s\n' "$variadic" | each_source "f() { clang-tidy --quiet \"\$1\" -- $flags; }; f" &&
        printf '%s\n' "$sources" | grep -vxF "$variadic" |
        each_source "f() { clang-tidy --quiet --checks=-clang-analyzer-\* \"\$1\" -- $flags && $calls $flags \"\$1\"; }; f"
}
check_shell() {
    find . -path ./build -prune -o -name '*.sh' -print | sort | xargs shellcheck .ci/run
}

[ $# -gt 0 ] || set -- shell cppcheck analyzer tidy
for check in "$@"; do
    if "check_$check"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "lint: $check found something"
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]

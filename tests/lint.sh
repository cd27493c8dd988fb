#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks all sources with cppcheck, gcc -fanalyzer, clang-tidy (.clang-tidy) and shellcheck, and the man pages with scdoc.
# Called by `make lint`, which sets LINT_FLAGS to the compiler's flags. Arguments: names of checks (default: all but clang,
# whose warnings clang-tidy has, too). Prints findings alone; ends with "N passed, N failed, N skipped", counted in checks.
set -u
jobs=$(nproc 2>/dev/null || echo 2)
passed=0 failed=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

# LINT_TESTS=no, as in continuous integration: tests are left out.
folders='base conf store daemon runner cli front web tests'
[ "${LINT_TESTS:-}" != no ] || folders=${folders% tests}
# shellcheck disable=SC2086
sources=$(find $folders -name '*.c' | sort)
flags=${LINT_FLAGS:?run make lint} # quoted for a shell

# Runs a compiler's command line on each source named on standard input, in parallel; prints the output of those that fail.
each_source() {
    # shellcheck disable=SC2016
    printf 'out=$(%s "$1" 2>&1) || { printf "%%s\\n" "$out"; exit 1; }\n' "$1" >"$folder/one"
    xargs -P "$jobs" -n 1 sh "$folder/one"
}

check_cppcheck() {
    # shellcheck disable=SC2086
    cppcheck --quiet --inline-suppr --error-exitcode=1 -j "$jobs" -I . -I "${BUILD:-build}/generated" --std=c11 -D_GNU_SOURCE -DVERSION='"0"' -DLIBEXECDIR='"/"' \
        -DSYSCONFDIR='"/"' --include=tests/cppcheck.h --enable=warning,performance,portability --suppressions-list=tests/cppcheck.suppress \
        $folders
}
# Without checks for which gcc 12 would have to follow ownership and lists; the sanitizers check these. Tests are left out: the other
# checks find in them only what tests may do, or what the sanitizers find, too.
check_analyzer() {
    analyze="gcc $flags -O0 -fanalyzer -Wno-analyzer-malloc-leak -Wno-analyzer-null-dereference -Wno-analyzer-use-after-free"
    analyze="$analyze -Wno-analyzer-double-free -Wno-format-truncation"
    printf '%s\n' "$sources" | grep -v -e '^tests/' -e '^daemon/control/' | each_source "$analyze -c -o /dev/null" &&
        printf '%s\n' "$sources" | grep '^daemon/control/' |
        each_source "$analyze -Wno-analyzer-use-of-uninitialized-value -c -o /dev/null"
}
# The warnings of the second compiler alone, for continuous integration: a quarter of the time of clang-tidy.
check_clang() {
    printf '%s\n' "$sources" | each_source "clang -fsyntax-only $flags"
}
# Calls and loops: clang itself runs the checks of security, without paths, on the programs.
check_tidy() {
    calls="clang --analyze --analyzer-no-default-checks -Xclang -analyzer-werror -Xclang -analyzer-checker=security"
    calls="$calls -Xclang -analyzer-disable-checker=security.insecureAPI.DeprecatedOrUnsafeBufferHandling -o /dev/null"
    # clang-tidy expects the file first.
    printf '%s\n' "$sources" | each_source "f() { clang-tidy --quiet --checks=-clang-analyzer-\* \"\$1\" -- $flags; }; f" &&
        printf '%s\n' "$sources" | grep -v '^tests/' | each_source "$calls $flags"
}
# The checks of va_list follow all paths, which takes longer than all other checks: they run only on files of the programs with va_list.
check_varargs() {
    # shellcheck disable=SC2086
    grep -lE 'va_(list|start|copy|arg)' $sources | grep -v '^tests/' |
        each_source "f() { clang-tidy --quiet --checks=-*,clang-analyzer-valist* \"\$1\" -- $flags; }; f"
}
check_shell() {
    find . -path ./build -prune -o -name '*.sh' -print | sort | xargs shellcheck .ci/run
}

check_man() {
    for page in packaging/man/*.scd; do
        if ! awk -f packaging/man/events.awk base/journal/events.def "$page" | awk -f packaging/man/metrics.awk base/metrics.def - |
            scdoc >"$folder/page" 2>"$folder/wrong"; then
            echo "error: $page: $(cat "$folder/wrong")"
            return 1
        fi
    done
}

[ $# -gt 0 ] || set -- shell man cppcheck analyzer tidy varargs
for check in "$@"; do
    if "check_$check" >"$folder/found" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        cat "$folder/found"
        echo "FAIL: $check: $(grep -m 1 -E 'error|warning|^In .* line' "$folder/found")"
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]

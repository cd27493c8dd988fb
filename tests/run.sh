#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the checks of the sources and each test program built under $BUILD/tests, $TEST_JOBS at a time (three for each core: they mostly
# wait). Shows the output of each program that failed, each reason to skip with its number of tests, and a line "FAIL: PROGRAM: TEST: PLACE"
# for each failure; ends with one line "N passed, N failed, N skipped". Arguments: names of programs (all if there are none). Those whose path
# has a word of $TEST_WITHOUT are left out. With names, or with TEST_CHECKED=yes, the checks of the sources are left out.
set -u
build=${BUILD:-build}
out=$build/tests/results
jobs=${TEST_JOBS:-$((3 * $(nproc)))}
rm -rf "$out" && mkdir -p "$out"
export BERTH_BUILD="$build"
export ASAN_OPTIONS="detect_leaks=1:abort_on_error=0:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"

# A program whose source is gone stays in the build folder and is not run.
programs=$(find "$build/tests" -type f -name 'test-*' -perm -u+x ! -name '*.o' ! -name '*.d' ! -path '*/faults/*' | sort | while read -r program; do
    source=tests/${program#"$build/tests/"}
    [ -e "$source.c" ] || [ -e "$source.sh" ] || continue
    for word in ${TEST_WITHOUT:-}; do
        case $program in *"$word"*) continue 2 ;; esac
    done
    echo "$program"
done)
# Results are kept by name, so two programs with one name would share one.
twice=$(printf '%s\n' "$programs" | sed 's|.*/||' | sort | uniq -d)
if [ -n "$twice" ]; then
    echo "two test programs have one name: $twice" >&2
    exit 1
fi
if [ $# -gt 0 ]; then
    chosen=
    for name in "$@"; do chosen="$chosen $(printf '%s\n' "$programs" | grep -- "/$name\$")"; done
    programs=$chosen
fi

# The programs that took longest last time begin first; in a fresh tree those of tests/times.txt.
times=$build/tests/times
[ -e "$times" ] || sed -n "s|^\([0-9]* \)|\1$build/tests/|p" tests/times.txt >"$times"
# shellcheck disable=SC2086
programs=$(printf '%s\n' $programs | awk -v times="$times" '
    BEGIN { while ((getline line < times) > 0) { split(line, field, " "); took[field[2]] = field[1] } }
    { print (($0 in took) ? took[$0] : 8), $0 }' | sort -k1,1rn -k2 | cut -d " " -f 2)

passed=0 failed=0 skipped=0
if [ $# -eq 0 ] && [ "${TEST_CHECKED:-}" != yes ]; then
    for check in tests/check-layers.sh tests/check-map.sh tests/check-events.sh tests/check-words.sh "tests/mutate.sh --check"; do
        if $check >"$out/check" 2>&1; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            cat "$out/check"
            tests/failures.sh "$check" 1 "$out/check" >>"$out/failures"
        fi
    done
fi

# run JOBS NAME... The model gets less processor time, because most other tests measure times or wait.
run() {
    at_once=$1 && shift
    [ $# -gt 0 ] || return 0
    # shellcheck disable=SC2016
    printf '%s\n' "$@" | xargs -P "$at_once" -I{} sh -c '
        log=$1/$(basename "$2").log
        begin=$(date +%s)
        case $2 in */model/*) less=10 ;; *) less=0 ;; esac
        nice -n $less timeout "${TEST_TIMEOUT:-600}" "$2" >"$log" 2>&1 </dev/null
        echo $? >"$log.status"
        echo "$(($(date +%s) - begin)) $2" >"$log.time"' sh "$out" {}
}
# An attack measures how fast others are served, so it runs alone.
# shellcheck disable=SC2046
run "$jobs" $(printf '%s\n' "$programs" | grep -v /attacks/)
# shellcheck disable=SC2046
run 1 $(printf '%s\n' "$programs" | grep /attacks/)
cat "$out"/*.time "$times" 2>/dev/null | awk '!seen[$2]++' >"$times.new" && mv "$times.new" "$times"

for program in $programs; do
    log=$out/$(basename "$program").log
    status=$(cat "$log.status" 2>/dev/null || echo none)
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
    if [ -z "$line" ]; then
        failed=$((failed + 1))
        printf -- '--- %s ended with status %s before its end\n' "$program" "$status"
        tail -n 60 "$log" | sed 's/^/    /'
        tests/failures.sh "$program" "$status" "$log" >>"$out/failures"
        continue
    fi
    # shellcheck disable=SC2086
    set -- $line
    passed=$((passed + $1)) failed=$((failed + $3)) skipped=$((skipped + $5))
    if [ "$status" != 0 ]; then
        [ "$3" -gt 0 ] || failed=$((failed + 1))
        printf -- '--- %s: status %s\n' "$program" "$status"
        sed 's/^/    /' "$log"
        tests/failures.sh "$program" "$status" "$log" >>"$out/failures"
    else
        grep '^SKIP: ' "$log" >>"$out/skipped"
    fi
done
[ ! -e "$out/skipped" ] || sed 's/^SKIP: [^:]*: //' "$out/skipped" | sort | uniq -c | sed 's/^ *\([0-9]*\) \(.*\)/SKIP: \2 (\1)/'
[ ! -e "$out/failures" ] || cat "$out/failures"
printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

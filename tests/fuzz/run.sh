#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs each fuzzer of $BUILD/tests/fuzz for $1 seconds, one on each core. New inputs go to $BUILD/corpus, an input that crashes to
# $BUILD/crashes. Ends with "N passed, N failed, N skipped".
set -u
seconds=${1:-20}
build=${BUILD:-build/fuzz}
mkdir -p "$build/crashes"
export ASAN_OPTIONS="detect_leaks=1:${ASAN_OPTIONS:-}" UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
# shellcheck disable=SC2016
find "$build/tests/fuzz" -type f -name 'fuzz-*' -perm -u+x | sort | xargs -P "$(nproc)" -I{} sh -c '
    name=$(basename "$1") log=$2/$(basename "$1").log
    mkdir -p "$2/corpus/$name" "tests/fuzz/corpus/$name"
    "$1" -max_total_time="$3" -timeout=10 -rss_limit_mb=2048 -max_len=8192 -close_fd_mask=2 -print_final_stats=1 -artifact_prefix="$2/crashes/$name-" \
        "$2/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1 </dev/null
    echo $? >"$log.status"' sh {} "$build" "$seconds"
passed=0 failed=0 failures=''
for log in "$build"/fuzz-*.log; do
    if [ "$(cat "$log.status")" = 0 ]; then
        passed=$((passed + 1))
        echo "$(basename "$log" .log): $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs"
    else
        failed=$((failed + 1))
        echo "--- $(basename "$log" .log)"
        tail -n 60 "$log"
        failures="$failures$(tests/failures.sh "$(basename "$log" .log)" "$(cat "$log.status")" "$log")
"
    fi
done
printf %s "$failures"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

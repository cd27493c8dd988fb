#!/bin/bash
# SPDX-License-Identifier: MIT
# Checks that tests find each mutation of tests/mutations/*.txt: makes it in a copy of this tree and builds that; the tests that the
# mutation names must fail. tests/mutate.sh [PART...] runs those whose name contains a part ('a byte order mark'), in some minutes; tls.txt
# stands for all mutations of that list. tests/mutate.sh --check only checks that all mutations apply; `make check` runs it.
#
#   == a name
#   file daemon/manager-run.c
#   tests test-handover test-jobs:overlap        programs; after a colon a word in the names of the tests to run
#   - text that occurs once in the file          several such lines are consecutive there
#   + its replacement                            none: the text is deleted
#
# A mutation that does not apply or build, or whose tests fail without it, is a failure. So is one whose test does not end by itself: that
# test cannot say what it found.
set -uo pipefail
shopt -s nullglob
cd "$(dirname "$0")/.." || exit 1
check=no
if [ "${1:-}" = --check ]; then check=yes && shift; fi
[ $# -gt 0 ] || set -- ''
jobs=${JOBS:-2}
unset CI # a skip is not a test that noticed something
work=$(mktemp -d "${TMPDIR:-/tmp}/berth-mutate.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Processes that a broken berth leaves behind end with the test, where that is possible.
# shellcheck disable=SC2016
alone=(unshare --pid --fork --kill-child=KILL --mount-proc sh -c '"$@"; exit $?' sh) # no test is process 1: berthd watches none of that number
"${alone[@]}" true 2>/dev/null || alone=()

# What tests start besides the programs, and what they preload.
tools=()
for source in tests/tools/*.c; do tools+=("build/${source%.c}"); done
preloads=()
for source in tests/preload/*.c; do preloads+=("build/${source%.c}.so"); done

names=() lists=() files=() tests=() olds=() news=() red=''

read_list() {
    local line n=$((${#names[@]} - 1))
    while IFS= read -r line; do
        case $line in
        '== '*) n=$((n + 1)) names[n]=${line#== } lists[n]=${1##*/} files[n]='' tests[n]='' olds[n]='' news[n]='' ;;
        'file '*) files[n]=${line#file } ;;
        'tests '*) tests[n]=${line#tests } ;;
        '- '*) olds[n]+=${olds[n]:+$'\n'}${line#- } ;;
        '+ '*) news[n]+=${news[n]:+$'\n'}${line#+ } ;;
        esac
    done <"$1"
}

# apply FOLDER N: replaces the text; fails unless it occurs exactly once. White space matches any other white space.
apply() {
    OLD=${olds[$2]} NEW=${news[$2]} perl tests/mutations.pl apply "$1/${files[$2]}"
}

# build FOLDER TESTS: builds these tests and, unless they run functions alone, the programs. Without -g links take a fraction of the time.
build() {
    local program folder targets=("${preloads[@]}") programs=()
    for program in $2; do
        folder=$(folder "${program%%:*}")
        targets+=("build/tests/$folder/${program%%:*}")
        [[ $folder == unit/* ]] || programs=(all "${tools[@]}")
    done
    MAKEFLAGS='' make -s -j2 -C "$1" CFLAGS=-O1 "${programs[@]}" "${targets[@]}" >"$1/mutate.log" 2>&1
}

# folder TEST: its folder below tests/.
folder() {
    find tests -name "$1.c" -printf '%P\n' | sed 's|/[^/]*$||'
}

# green FOLDER TEST: prints why if the test fails; returns 2 if it had to be killed.
green() {
    local program=${2%%:*} word='' k
    [ "$program" = "$2" ] || word=${2#*:}
    (cd "$1" && timeout -k 5 120 "${alone[@]}" "build/tests/$(folder "$program")/$program" ${word:+"$word"}) >"$1/test.log" 2>&1 </dev/null &&
        return 0
    k=$?
    grep -m 1 '^FAIL: ' "$1/test.log" | sed 's/^FAIL: //' | grep . || tail -n 1 "$1/test.log"
    [ "$k" -ne 124 ] && [ "$k" -ne 137 ] || return 2
    return 1
}

# try FOLDER N: prints a line "caught|SURVIVED|FAILED name ...".
try() {
    local test why k begun=$SECONDS answer=caught
    for test in ${tests[$2]}; do
        if [[ $red == *" $test "* ]]; then
            echo "FAILED   ${names[$2]}: $test is red without it"
            return
        fi
    done
    cp "$1/${files[$2]}" "$1/original"
    if ! apply "$1" "$2"; then
        echo "FAILED   ${names[$2]}: does not apply to ${files[$2]}"
        return
    fi
    if build "$1" "${tests[$2]}"; then
        for test in ${tests[$2]}; do
            why=$(green "$1" "$test") && k=0 || k=$?
            [ "$k" -ne 0 ] || { answer=SURVIVED why="$test is green" && break; }
            [ "$k" -ne 2 ] || { answer=FAILED why="$test does not end: $why" && break; }
        done
        printf '%-8s %s: %s (%s s)\n' "$answer" "${names[$2]}" "$why" $((SECONDS - begun))
    else
        echo "FAILED   ${names[$2]}: does not build: $(grep -m 1 error "$1/mutate.log")"
    fi
    cp "$1/original" "$1/${files[$2]}"
}

# check_tests FOLDER FIRST: prints which of this worker's share of the tests are red without any mutation.
check_tests() {
    local i why all
    read -ra all <<<"$wanted"
    for ((i = $2; i < ${#all[@]}; i += jobs)); do # twice: a machine may be busy
        why=$(green "$1" "${all[i]}") || why=$(green "$1" "${all[i]}") || echo "${all[i]} $why"
    done
}

# work_off FOLDER: tries each mutation that no other worker has taken.
work_off() {
    local i
    for i in "${chosen[@]}"; do
        mkdir "$work/taken-$i" 2>/dev/null && try "$1" "$i"
    done
}

for list in tests/mutations/*.txt; do read_list "$list"; done
chosen=() wanted=''
for i in "${!names[@]}"; do
    for word in "$@"; do
        [[ ${names[i]} == *"$word"* || ${lists[i]} == "$word" ]] || continue
        chosen+=("$i")
        wanted+=" ${tests[i]}"
        break
    done
done
wanted=$(tr ' ' '\n' <<<"$wanted" | sort -u | xargs)
perl tests/mutations.pl check "$@" || exit 1
[ "$check" = no ] || exit 0

jobs=$((jobs > ${#chosen[@]} ? ${#chosen[@]} : jobs))
[ "$jobs" -gt 0 ] || { echo "no mutation is called like that"; exit 1; }

mkdir "$work/0"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$work/0" 2>/dev/null
if ! build "$work/0" "$wanted"; then
    cat "$work/0/mutate.log"
    exit 1
fi
for ((i = 1; i < jobs; i++)); do cp -a "$work/0" "$work/$i"; done
for ((i = 0; i < jobs; i++)); do check_tests "$work/$i" "$i" >"$work/$i.red" & done
wait
while read -r test why; do
    echo "red without any mutation: $test: $why"
    red+=" $test "
done < <(cat "$work"/*.red)
for ((i = 0; i < jobs; i++)); do work_off "$work/$i" | tee "$work/$i.out" & done
wait
passed=$(cat "$work"/*.out | grep -c '^caught')
failed=$((${#chosen[@]} - passed))
cat "$work"/*.out | sort | sed -n '/^caught/!s/^/FAIL: /p'
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]

#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh BUILD: puts true, and then false, in place of every condition of src/lua (conditions.lua says what one is), one
# at a time, and runs the tests: first those of tests/lua, which read the scripts from a folder, and where they see
# nothing those of tests/api, built with the changed scripts. A mutant is caught when a test fails, or all hang. ONLY picks
# mutants by a pattern of grep ('claim.lua'); QUICK=1 leaves the flows out; JOBS at a time (2).
#
# Fails when less than 95 % are caught, or when a survivor is not explained in tests/meta/README.md.
set -eu
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../../.." && pwd)
dir=$build/mutate
export build root dir LAPSE_TEST_ROOT=$root JOBS="${JOBS:-2}" LAPSE_MUTANT_SECONDS="${LAPSE_MUTANT_SECONDS:-60}"
cd "$root"

# PROGRAM FOLDER FILTER [ROOT]: runs it with the scripts of the folder, and their sources in that of ROOT; prints the
# first test that fails, or * if they hang
fails() {
    local out rc=0
    out=$(LAPSE_TEST_BUILD=$2 LAPSE_TEST_ROOT=${4:-$root} \
        timeout -k 1 "$LAPSE_MUTANT_SECONDS" "$1" --jobs 4 --fail-fast --filter "$3" 2>&1) || rc=$?
    case $rc in
    0) ;;
    124 | 137) echo '*' ;;
    *) sed -n 's/^\[[^]]*\(FAIL\|CRASH\)[^]]*\] \([a-z0-9_]*::[a-z0-9_]*\).*/\2/p' <<< "$out" | grep . -m 1 ||
        { tail -n 3 <<< "$out" >&2 && return 1; } ;;
    esac
}

told() { printf '%s\t%s:%s\t%s\t%s\t%s\n' "$1" "${file##*/}" "$line" "$text" "$word" "$2"; }

# FILE: the suites that see most of it, with | between: that of its name; of a file of lib that has none, those of the
# scripts that use it
suites() {
    local name
    name=$(basename "$1" .lua)
    echo -n "$name|${name%s}|${name%%_*}"
    [ -e "tests/lua/$name.c" ] || [ -e "tests/lua/${name%s}.c" ] ||
        awk -v name="$name" '/^-- [A-Z]/ { uses = /^-- USES/ } uses && index($0 " ", " " name " ") {
            sub(/.*\//, "", FILENAME); sub(/\.lua/, "", FILENAME); printf "|%s", FILENAME
        }' "$dir"/lua/{job,lease,queue}/*.lua
}

# NUMBER FILE FROM TO LINE TEXT WORD, with tabs between: prints what became of it
by_lua() {
    local number file from to line text word out name test=
    IFS=$'\t' read -r number file from to line text word <<< "$1"
    out=$dir/$number
    mkdir -p "$out/src"
    cp "$build/users.acl" "$out"
    ln -s "$root/tests" "$root/redis.conf" "$out"
    cp -r "$dir/lua" "$out/src/lua"
    { head -c $((from - 1)) "$file"; printf %s "$word"; tail -c +$((to + 1)) "$file"; } > "$out/src/lua/${file#"$dir/lua/"}"
    tools/build/scripts.py build "$out/src/lua" "$out"
    test=$(fails "$build/tests/lua" "$out" "@($(suites "$file"))/*" "$out")
    [ -n "$test" ] || test=$(fails "$build/tests/lua" "$out" '*' "$out")
    if [ -n "$test" ]; then
        told lua "$test"
        rm -rf "$out"
    else
        echo "$1" >> "$dir/left"
    fi
}

# The same of one that is left. The flows are linked with the scripts: each of the JOBS has a room where they are built.
by_flow() {
    local number file line text word room test
    IFS=$'\t' read -r number file _ _ line text word <<< "$1"
    # shellcheck disable=SC2154 # xargs sets slot
    room=$dir/room$slot
    touch "$dir/$number"/src/lua/*/*
    make -s -j2 "BUILD=$room" "LUA_SRC=$dir/$number/src/lua" all "$room/tests/api" > "$room.log" 2>&1 ||
        { tail -n 5 "$room.log" >&2 && exit 1; }
    LAPSE_MUTANT_SECONDS=$((LAPSE_MUTANT_SECONDS * 5))
    test=$(fails "$room/tests/api" "$room" '*')
    # not where the machine was only too busy
    [ -z "$test" ] || test=$(fails "$room/tests/api" "$room" "${test/::/\/}")
    told "$([ -n "$test" ] && echo flow || echo none)" "$test"
}
each() { # FUNCTION FILE: of each of its lines, JOBS at a time
    # shellcheck disable=SC2016 # the other shell's
    tr '\n' '\0' < "$2" | xargs -0 -r -n 1 -P "$JOBS" --process-slot-var=slot bash -euc "$1 "'"$1"' "$1"
}
export -f fails told suites by_lua by_flow

rm -rf "$dir"
mkdir -p "$dir"
cp -r src/lua "$dir/lua" # they may change while it runs
TMPDIR=$(mktemp -d /tmp/lapse.XXXXXX)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' HUP INT TERM

test=$(fails "$build/tests/lua" "$build" '*')
[ -z "$test" ] || { echo "as it is, $test fails"; exit 1; }
lua5.1 tests/meta/mutate/conditions.lua "$dir"/lua/*/*.lua > "$dir/conditions"
for word in true false; do sed "s/\$/\t$word/" "$dir/conditions"; done | nl -ba -w1 | grep -e "${ONLY:-.}" > "$dir/mutants"
start=$SECONDS
: > "$dir/left"
each by_lua "$dir/mutants" > "$dir/results"
if [ -n "${QUICK-}" ]; then
    while IFS=$'\t' read -r _ file _ _ line text word; do told none ''; done < "$dir/left"
else
    each by_flow "$dir/left"
fi >> "$dir/results"

# what survived, as the table of tests/meta/README.md has it
survivors=0 unexplained=0
while IFS=$'\t' read -r _ where text word _; do
    survivors=$((survivors + 1))
    row="| \`${where%:*}\` | \`$text\` | $word |"
    if grep -qF -e "$row" tests/meta/README.md; then echo "survives, explained: $where $text -> $word"
    else
        unexplained=$((unexplained + 1))
        echo "SURVIVES: $where $text -> $word"
    fi
done < <(grep '^none' "$dir/results" | sort -t "$(printf '\t')" -k 2V)
all=$(wc -l < "$dir/mutants") done=$(wc -l < "$dir/results")
caught=$((done - survivors))
echo "$all mutants, $caught caught ($((caught * 1000 / all / 10)).$((caught * 1000 / all % 10)) %):" \
    "$(grep -c '^lua' "$dir/results" || :) by tests/lua," \
    "$(grep -c '^flow' "$dir/results" || :) by tests/api; $survivors survive; in $((SECONDS - start)) s"
[ "$done" = "$all" ] && [ $((caught * 100)) -ge $((all * 95)) ] && [ $unexplained = 0 ]

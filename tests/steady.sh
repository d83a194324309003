#!/bin/sh
# SPDX-License-Identifier: MIT
# steady.sh BUILD PROGRAM[=FILTER]...: run.sh N times (20), every other time beside two busy processes; then each test that
# failed, and how often. The output of the first run in which it did is BUILD/steady/SUITE.TEST.
set -eu
build=$1
n=${N:-20}
out=$build/steady
root=$(cd "$(dirname "$0")/.." && pwd)
rm -rf "$out"
mkdir -p "$out"

busy=
calm_down() {
    # shellcheck disable=SC2086 # pids
    [ -z "$busy" ] || kill $busy 2>/dev/null || :
    busy=
}
trap calm_down EXIT
trap 'exit 130' HUP INT TERM

# ends with this script, however that ends
spin() {
    while kill -0 $$ 2>/dev/null; do
        i=0
        while [ $((i += 1)) -lt 100000 ]; do :; done
    done
}

# what failed in a log, a line each: "suite/test", and "run.sh" where it names none
failures() {
    sed -n 's/\x1b\[[0-9;]*m//g; s/^\[FAIL\] \([^:]*\)::\([^:]*\):.*/\1\/\2/p' "$1" > "$1.failed"
    [ -s "$1.failed" ] || echo run.sh > "$1.failed"
    sort -u "$1.failed"
}

started=$(date +%s)
run=0
while [ $((run += 1)) -le "$n" ]; do
    beside=
    if [ $((run % 2)) -eq 0 ]; then
        spin & busy=$!
        spin & busy="$busy $!"
        beside=' beside two busy processes'
    fi
    from=$(date +%s)
    result='all passed'
    if ! "$root/tests/run.sh" "$@" > "$out/log" 2>&1; then
        result=
        for name in $(failures "$out/log"); do
            result="$result $name"
            echo "$name" >> "$out/failed"
            first=$out/$(echo "$name" | tr / .)
            [ -e "$first" ] || cp "$out/log" "$first"
        done
        result="FAILED:$result"
    fi
    calm_down
    now=$(date +%s)
    echo "run $run of $n$beside: $((now - from)) s, $result; about $(((now - started) * (n - run) / run / 60)) min to go"
done
rm -f "$out/log" "$out/log.failed"

[ -e "$out/failed" ] || exit 0
sort "$out/failed" | uniq -c | sort -rn | while read -r k name; do
    echo "$name: $k of $n, see $out/$(echo "$name" | tr / .)"
done
exit 1

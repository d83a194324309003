#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh BUILD PROGRAM...: runs BUILD/tests/PROGRAM, which are Criterion's but for header-*. A test that leaks or trips
# UBSan still passes for Criterion, so sanitizers write to files, and any such file fails the run.
set -eu
build=$(cd "$1" && pwd)
shift
root=$(cd "$(dirname "$0")/.." && pwd)
export LAPSE_TEST_BUILD="$build" LAPSE_TEST_ROOT="$root"

# what a test that crashed leaves behind goes with this folder; short, for a Unix socket's name is
TMPDIR=$(mktemp -d /tmp/lapse.XXXXXX)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' HUP INT TERM

logs=$build/sanitizer
rm -rf "$logs"
mkdir -p "$logs"
export ASAN_OPTIONS="log_path=$logs/asan:detect_leaks=1:${ASAN_OPTIONS-}"
export UBSAN_OPTIONS="log_path=$logs/ubsan:print_stacktrace=1:${UBSAN_OPTIONS-}"

failed=
for name in "$@"; do
    echo "== tests/$name"
    case $name in
    header-*) "$build/tests/$name" ;;
    fuzz-*) "$build/tests/$name" "$root/tests/fuzz/corpus/${name#fuzz-}" ;;
    # tests mostly wait for Redis: more at a time than there are cores
    *) "$build/tests/$name" --jobs "${JOBS:-4}" ${ONLY:+--filter "$ONLY"} ;;
    esac || failed="$failed $name"
done
for log in "$logs"/*; do
    if [ -s "$log" ]; then
        failed="$failed ${log##*/}"
        cat "$log"
    fi
done
if [ -n "$failed" ]; then
    echo "FAILED:$failed"
    exit 1
fi

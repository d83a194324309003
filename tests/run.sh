#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh BUILD PROGRAM[=FILTER]...: runs BUILD/tests/PROGRAM, which are Criterion's but for header-*. A test that leaks or
# trips UBSan still passes for Criterion, so sanitizers write to files, and any such file fails the run. VALGRIND=1 runs
# BUILD/forking/PROGRAM under valgrind, and the lapse that it starts; leaks are AddressSanitizer's to find.
set -eu
build=$(cd "$1" && pwd)
shift
root=$(cd "$(dirname "$0")/.." && pwd)
export LAPSE_TEST_BUILD="$build" LAPSE_TEST_ROOT="$root"

# what a test that crashed leaves behind goes with this folder; short, for a Unix socket's name is. In memory where there
# are 4 GiB for it: each test makes some ten small files.
free_kb=$(df -k --output=avail /dev/shm 2>/dev/null | sed -n 2p)
if [ "${free_kb:-0}" -ge 4194304 ] && [ -w /dev/shm ]; then memory=/dev/shm; else memory=/tmp; fi
TMPDIR=$(mktemp -d $memory/lapse.XXXXXX)
export TMPDIR
programs=$(mktemp -d /tmp/lapse.XXXXXX) # such a memory may be one from which nothing is executed
trap 'rm -rf "$TMPDIR" "$programs"' EXIT
trap 'exit 130' HUP INT TERM

logs=$build/sanitizer
rm -rf "$logs"
mkdir -p "$logs"
export ASAN_OPTIONS="log_path=$logs/asan:detect_leaks=1:${ASAN_OPTIONS-}"
# where tests fork, Criterion's messages to its runner are lost with the copy
echo leak:libcriterion > "$build/lsan.supp"
export LSAN_OPTIONS="suppressions=$build/lsan.supp:print_suppressions=0:${LSAN_OPTIONS-}"
export UBSAN_OPTIONS="log_path=$logs/ubsan:print_stacktrace=1:${UBSAN_OPTIONS-}"

# what is inlined is not named, which saves a seventh of each start
under=${VALGRIND:+valgrind -q --read-inline-info=no --log-file="$logs/valgrind.%p" --trace-children=yes --trace-children-skip=*-server,/bin/*,/usr/bin/*}

# tests mostly wait, for Redis and for time to pass, most of all those of api: many more at a time than there are cores
jobs=16
api_jobs=24
runner=tests
if [ -n "$under" ]; then jobs=4 api_jobs=4 runner=forking; fi

failed=
set -f # what follows is not for the shell to look up in folders
for arg in "$@"; do
    name=${arg%%=*}
    filter=${ONLY:-${arg#"$name"}}
    filter=${filter#=}
    echo "== tests/$name $filter"
    # Criterion executes its program again for each test, and calls the test by its address. A build that
    # replaces the program meanwhile would make tests "crash during setup", so a copy is run.
    case $name in
    header-* | fuzz-*) ;;
    *) cp "$build/$runner/$name" "$programs/$name" ;;
    esac
    # shellcheck disable=SC2086 # words
    case $name in
    header-*) "$build/tests/$name" ;;
    # a row of fault is many processes, and says how late they were, with a Redis that writes to disk
    fault) TMPDIR=$programs "$programs/$name" --jobs "${JOBS:-4}" ${filter:+--filter "$filter"} ;;
    api) $under "$programs/$name" --jobs "${JOBS:-$api_jobs}" ${filter:+--filter "$filter"} ;;
    fuzz-*) "$build/tests/$name" "$root/tests/fuzz/corpus/${name#fuzz-}" ;;
    # the others do more than those users may
    *) env -u LAPSE_TEST_ACL $under "$programs/$name" --jobs "${JOBS:-$jobs}" ${filter:+--filter "$filter"} ;;
    esac || failed="$failed $name"
done
set +f
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

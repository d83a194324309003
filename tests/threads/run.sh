#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh BUILD plain|helgrind PROGRAM...: runs each BUILD/threads/PROGRAM on a Redis of its own. A report of a race detector
# is a failure, and so is a program that takes longer than two minutes.
set -euo pipefail
build=$(cd "$1" && pwd)
with=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d /tmp/lapse.XXXXXX)
redis=
trap '[ -z "$redis" ] || kill "$redis" 2>/dev/null || :; wait; rm -rf "$dir"' EXIT
trap 'exit 130' HUP INT TERM
export TSAN_OPTIONS="halt_on_error=1:exitcode=66:${TSAN_OPTIONS-}"

# How much a program does; under helgrind, which is fifty times slower, less.
amount() { # PROGRAM
    case $with/$1 in
    helgrind/schedulers) echo 1000 ;;
    helgrind/close_anytime | helgrind/around) echo 20 ;;
    helgrind/calendars) echo 400 ;;
    helgrind/*) echo 100 ;;
    */schedulers) echo 40000 ;;
    */close_anytime | */around) echo 150 ;;
    *) echo 1000 ;;
    esac
}

start_redis() { # FOLDER
    mkdir "$1"
    redis-server "$here/../../redis.conf" --port 0 --unixsocket "$1/redis" --dir "$1" --daemonize no \
        --logfile "$1/log" --save '' --appendonly no &
    redis=$!
    until [ "$(redis-cli -s "$1/redis" ping 2>/dev/null)" = PONG ]; do
        kill -0 "$redis" || { cat "$1/log"; exit 1; }
    done
}

stop_redis() {
    kill "$redis"
    wait "$redis" || :
    redis=
}

# An address space that is laid out at random in more bits than a sanitizer expects keeps its programs from starting.
under=(setarch -R)
if [ "$with" = helgrind ]; then
    under=(valgrind -q --tool=helgrind --error-exitcode=66 --suppressions="$here/helgrind.supp" --fair-sched=yes)
fi

failed=
for program in "$@"; do
    echo "== threads/$program"
    start_redis "$dir/$program"
    timeout 120 "${under[@]}" "$build/threads/$program" "unix://$dir/$program/redis" "$(amount "$program")" ||
        failed="$failed $program"
    stop_redis
done
[ -z "$failed" ] || { echo "FAILED:$failed"; exit 1; }

#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh BUILD: measures lapse and what else one would use, each on a server of its own, one after the other; README.md
# here tells how to read it. QUICK=1: small sizes, under 3 minutes. BIG=1: lapse also with 5,000,000 waiting.
# ONLY='late burst': some measures.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
here=$root/tests/bench
out=$build/bench
results=$out/results
quick=${QUICK:+1}
ALL='late burst listeners stopped schedule one'
only=${ONLY:-$ALL}
dir=$(mktemp -d "${TMPDIR:-/tmp}/lapse-bench.XXXXXX") || exit 1
started=$SECONDS
pids=()
server=
at=
# shellcheck disable=SC2034 # of timed jobs: a part of their ids, in measures.sh
runs=0

say() { printf '%4d s  %s\n' $((SECONDS - started)) "$*" >&2; }
now() { date +%s%3N; }
until_ms() { # MS
    local left=$(($1 - $(now)))
    [ $left -le 0 ] || { spawn sleep "$((left / 1000)).$(printf %03d $((left % 1000)))"; wait "$!"; gone "$!"; }
}

# ---- processes: each is known by its id until it is gone, and dies with this shell whatever ends it ----
spawn() { # COMMAND...
    setpriv --pdeathsig KILL -- "$@" &
    pids+=($!)
}
gone() { # PID: it was waited for
    local pid left=()
    for pid in "${pids[@]}"; do [ "$pid" = "$1" ] || left+=("$pid"); done
    pids=("${left[@]+"${left[@]}"}")
}
end() { # PID [SIGNAL]
    kill "-${2:-TERM}" "$1" 2>/dev/null
    wait "$1" 2>/dev/null
    gone "$1"
}
finish() {
    local pid
    exec 2> /dev/null # bash tells of each that it is killed
    for pid in "${pids[@]+"${pids[@]}"}"; do kill -KILL "$pid" 2>/dev/null; done
    wait
    rm -rf "$dir"
}
trap finish EXIT
trap 'say interrupted; exit 130' HUP INT TERM

# ---- results: lines of a name and a value; keep() puts a prefix before those of a program ----
put() { echo "$1 $2" >> "$results"; }
keep() { # PREFIX FILE
    sed "s|^|$1.|" "$2" >> "$results"
}
got() { # NAME: its last value
    awk -v name="$1" '$1 == name { v = $2 } END { print v }' "$results"
}
skip() { # SYSTEM WHY: said once
    grep -q "^$1.not_run " "$results" || { put "$1.not_run" "$2"; say "$1 is not run: $2"; }
}

# ---- systems ----
command_of() { # SYSTEM: into $command
    case $1 in
    lapse* | l[0-9]*) command=("$out/lapse") ;;
    zset10) command=("$out/zset") listen_args=(every=10) ;;
    zset1000) command=("$out/zset") listen_args=(every=1000) ;;
    bullmq) command=(node "$here/bull.cjs") ;;
    *) command=("$out/$1") ;;
    esac
}
run() { # SYSTEM VERB ARG...: its results into $dir/got
    # shellcheck disable=SC2034 # command_of sets it
    local system=$1 pid command listen_args
    shift
    command_of "$system"
    spawn "${command[@]}" "$@" "at=$at" > "$dir/got"
    pid=$!
    wait "$pid"
    local status=$?
    gone "$pid"
    [ $status = 0 ] || { say "$system $1 ended with $status"; return 1; }
}
up() { # SYSTEM [PORT]
    local log=$dir/log _
    down
    mkdir -p "$dir/data"
    at=$dir/socket
    if [ "$1" = beanstalk ]; then
        # its log of writes, synced once a second as redis.conf has it for the others
        spawn beanstalkd -l "unix:$at" -b "$dir/data" -f 1000 > "$log" 2>&1
    else
        spawn redis-server "$root/redis.conf" --port "${2:-0}" --unixsocket "$at" --unixsocketperm 700 \
            --dir "$dir/data" --daemonize no --logfile "$log" --slowlog-max-len 1000
    fi
    server=$!
    for _ in {1..500}; do
        [ "$1" = beanstalk ] && [ -S "$at" ] && return
        [ "$1" != beanstalk ] && [ "$(redis PING 2>/dev/null)" = PONG ] && return
        kill -0 "$server" 2>/dev/null || break
        until_ms $(($(now) + 10))
    done
    tail -n 5 "$log" >&2
    say "the server for $1 did not start"
    down
    return 1
}
start() { ! grep -q "^$1.not_run " "$results" && up "$1"; } # SYSTEM: false: it is not run
down() {
    [ -z "$server" ] || end "$server" KILL
    server=
    rm -rf "$dir/data" "$dir/socket"
}
redis() { redis-cli -s "$at" "$@"; }
info() { # SECTION FIELD
    redis INFO "$1" | tr -d '\r' | awk -F: -v f="$2" '$1 == f { print $2 }'
}
# A log of writes being rewritten is work of the fill before, not of what is measured next.
quiet() {
    [ "$1" != beanstalk ] || return 0
    local _
    for _ in {1..600}; do
        case $(info persistence aof_rewrite_in_progress)$(info persistence aof_rewrite_scheduled) in
        00) return ;;
        esac
        until_ms $(($(now) + 100))
    done
}
cpu_us() { # PID: used so far, by all its threads
    cat /proc/"$1"/task/*/schedstat 2>/dev/null | awk '{ s += $1 } END { printf "%.0f\n", s / 1000 }'
}
memory() { # of the server, bytes
    if [ "$1" = beanstalk ]; then
        awk '/^VmRSS/ { printf "%.0f\n", $2 * 1024 }' "/proc/$server/status"
    else
        info memory used_memory
    fi
}

# ---- what there is ----
mkdir -p "$out"
: > "$results"
# shellcheck source=tests/bench/measures.sh
. "$here/measures.sh"
# whose scripts are counted, whatever is built meanwhile
cp -r "$build/lua" "$build/lapse" "$dir"
put machine.date "$(date -u +%Y-%m-%d)"
put machine.cores "$(nproc)"
put machine.cpu "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1 | tr ' ' '_')"
put machine.redis "$(redis-server --version | sed 's/.* v=\([^ ]*\) .*/\1/')"
put machine.load "$(cut -d' ' -f1 /proc/loadavg)"
put machine.quick "${quick:-0}"
if command -v beanstalkd > /dev/null; then
    put machine.beanstalkd "$(beanstalkd -v | awk '{ print $2 }')"
else
    skip beanstalk 'beanstalkd is not installed'
fi
if ! command -v node > /dev/null || ! command -v npm > /dev/null; then
    skip bullmq 'node and npm are not installed'
else
    cp "$here/package.json" "$out/package.json"
    say 'npm install of BullMQ'
    spawn npm --prefix "$out" install --no-audit --no-fund --ignore-scripts --loglevel=error > "$dir/npm" 2>&1
    npm=$!
    if wait $npm; then
        export NODE_PATH=$out/node_modules
        put machine.bullmq "$(node -p "require('bullmq/package.json').version")"
        put machine.node "$(node --version)"
    else
        tail -n 3 "$dir/npm" >&2
        skip bullmq "npm install of it failed"
    fi
    gone "$npm"
fi

for measure in $only; do
    case " $ALL " in *" $measure "*) ;; *) say "no such measure: $measure; there are: $ALL"; exit 2 ;; esac
    "measure_$measure"
    down
done
put machine.seconds $((SECONDS - started))
put machine.load_after "$(cut -d' ' -f1 /proc/loadavg)"
awk -f "$here/table.awk" "$results" > "$out/table.md"
awk -f "$here/chart.awk" "$results" > "$out/lateness.svg"
say "done; the table is $out/table.md too, the chart $out/lateness.svg, every figure $out/results"
cat "$out/table.md"

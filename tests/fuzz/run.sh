#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh BUILD SECONDS TARGET...: lets libFuzzer try each target for so long, from the corpus in the tree; what it finds
# worth keeping goes to BUILD/corpus, what breaks a target to BUILD/found, and fails the run.
set -u
build=$1 seconds=$2
shift 2
failed=
mkdir -p "$build/found"
export ASAN_OPTIONS="detect_leaks=1:${ASAN_OPTIONS-}" UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS-}"
printf '%-10s %12s %10s %8s  %s\n' target inputs 'a second' edges found
for name in "$@"; do
    log=$build/$name.log
    mkdir -p "$build/corpus/$name"
    dict=tests/fuzz/$name.dict
    if "$build/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$build/found/$name-" ${dict:+$([ -e "$dict" ] && echo "-dict=$dict")} \
        "$build/corpus/$name" "tests/fuzz/corpus/$name" > "$log" 2>&1; then
        found=nothing
    else
        found="see $log"
        failed="$failed $name"
        tail -n 40 "$log"
    fi
    awk -v name="$name" -v found="$found" '
        /cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") edges = $(i + 1) }
        /number_of_executed_units/ { n = $2 }
        /average_exec_per_sec/ { rate = $2 }
        END { printf "%-10s %12s %10s %8s  %s\n", name, n, rate, edges, found }' "$log"
done
[ -z "$failed" ] || { echo "found:$failed"; exit 1; }

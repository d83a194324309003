#!/bin/bash
# SPDX-License-Identifier: MIT
# report.sh BUILD: what the tests ran of src/, a line a file; fails under LINES or BRANCHES per cent in all.
# Not counted: the branch of an ASSERT that never goes wrong, and what the compiler adds to a line without code; nor a line
# for which gcov says "taken -1", as it does now and then where it derives a count (GCC bug 68080).
set -euo pipefail
build=$1
cd "$(dirname "$0")/../../.."
gcovr --root . --object-directory "$build/obj/src" --filter src/ --exclude-branches-by-pattern '.*\bASSERT\(.*' \
    --exclude-unreachable-branches --gcov-ignore-parse-errors --json "$build/coverage.json" "$build/obj/src"
mkdir -p "$build/html"
gcovr --root . --add-tracefile "$build/coverage.json" --csv "$build/coverage.csv" --html-details "$build/html/index.html" \
    --txt "$build/coverage.txt"
awk -F, -v lines="${LINES_FLOOR:-97}" -v branches="${BRANCHES_FLOOR:-93}" -v text="$build/coverage.txt" '
    function percent(some, all) { return all ? 100 * some / all : 100 }
    function row(name, l, lc, b, bc, more) {
        printf "%-18s %5d %6.1f %%  %5d %6.1f %%  %s\n", name, l, percent(lc, l), b, percent(bc, b), more
    }
    BEGIN {
        while ((getline line < text) > 0) { split(line, part, " "); never[part[1]] = part[5] }
        print "file               lines    run   branches  taken  lines never run"
    }
    FNR > 1 {
        row($1, $2, $3, $5, $6, never[$1])
        l += $2; lc += $3; b += $5; bc += $6
    }
    END {
        row("all", l, lc, b, bc, "")
        if (percent(lc, l) < lines) bad = "lines: " lines " % are asked for"
        if (percent(bc, b) < branches) bad = bad (bad ? "; " : "") "branches: " branches " % are asked for"
        if (!l) bad = "nothing was run"
        if (bad) { print "coverage: " bad; exit 1 }
    }' "$build/coverage.csv"

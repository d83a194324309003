#!/bin/sh
# SPDX-License-Identifier: MIT
# names.sh BUILD: prints each test of BUILD/tests as "folder suite/test", sorted.
# names.sh BUILD OLD: compares with the list OLD, printed so from an earlier commit: prints "lost ..." for each test that
#     is neither there under its old name nor in renamed.txt with a new one, and fails if there is any.
set -eu
build=$1
here=$(cd "$(dirname "$0")" && pwd)

names() {
    for program in "$build"/tests/*; do
        folder=${program##*/}
        case $folder in header-* | fuzz-*) continue ;; esac
        # a suite is "name: n tests", a test of it "|-- name"
        "$program" --list | sed 's/^[^a-z0-9_]*//' | awk -v "folder=$folder" '
            / tests?$/ { suite = $1; sub(/:$/, "", suite); next }
            { print folder, suite "/" $1 }'
    done | LC_ALL=C sort
}

if [ $# -eq 1 ]; then
    names
    exit
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
names > "$scratch/now"

# "flow" was the name of api, "tools" that of cli. A line of renamed.txt is an old name, or one that ends in "*", and what
# became of it: a new name likewise, or "-" and the test that proves the same.
awk -v "lost=$scratch/lost" '
    FILENAME ~ /renamed\.txt$/ {
        if ($0 ~ /^(#|$)/) next
        n++
        from[n] = $1 " " $2; to[n] = $3 " " $4
        if ($3 == "-") to[n] = $4 " " $5
        next
    }
    FILENAME ~ /now$/ { there[$0] = 1; next }
    {
        name = $0
        sub(/^flow /, "api ", name)
        sub(/^tools /, "cli ", name)
        for (i = 1; i <= n; i++) {
            stem = from[i]
            if (sub(/\*$/, "", stem) ? index(name, stem) == 1 : name == stem) {
                target = to[i]
                name = sub(/\*$/, "", target) ? target substr(name, length(stem) + 1) : target
            }
        }
        if (!(name in there)) { print "lost " $0 (name == $0 ? "" : " (" name ")"); bad = 1 }
    }
    END { exit bad }
' "$here/renamed.txt" "$scratch/now" "$2"

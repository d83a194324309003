#!/bin/sh
# SPDX-License-Identifier: MIT
# doc.sh BUILD [--check]: rewrites what stands between <!-- NAME --> and <!-- /NAME --> in README.md and redis.conf from
# the code; with --check it changes nothing and fails where they differ.
set -eu
build=$1 check=${2-} stale=

rewrite() { # FILE NAME...: the parts are BUILD/NAME.md
    file=$1
    new=$build/$(basename "$file").part
    shift
    [ -e "$file" ] || return 0
    cp "$file" "$new"
    for name in "$@"; do
        awk -v begin="<!-- $name -->" -v end="<!-- /$name -->" -v part="$build/$name.md" '
            index($0, end) { skip = 0 }
            !skip { print }
            index($0, begin) { skip = 1; while ((getline line < part) > 0) print line }
            END { if (skip) { print "no " end > "/dev/stderr"; exit 1 } }' "$new" > "$new.2"
        mv "$new.2" "$new"
    done
    if cmp -s "$new" "$file"; then
        rm "$new"
    elif [ "$check" = --check ]; then
        diff -u "$file" "$new" || true
        stale="$stale $file"
    else
        mv "$new" "$file"
    fi
}

for table in settings errors statistics; do "$build/tables" $table > "$build/$table.md"; done
tools/build/acl.sh "$build" shell > "$build/users.md"
tools/build/acl.sh "$build" conf > "$build/users.conf.md"
rewrite README.md settings errors statistics users
rewrite redis.conf users.conf
[ -z "$stale" ] || { echo "not as the code is:$stale; make doc"; exit 1; }

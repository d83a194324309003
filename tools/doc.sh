#!/bin/sh
# SPDX-License-Identifier: MIT
# doc.sh BUILD [--check]: rewrites the tables between <!-- NAME --> and <!-- /NAME --> in README.md from the code; with
# --check it changes nothing and fails where they differ.
set -eu
build=$1
new=$build/README.md.part
[ -e README.md ] || exit 0
cp README.md "$new"
for table in settings errors statistics; do
    "$build/tables" $table > "$build/$table.md"
    awk -v begin="<!-- $table -->" -v end="<!-- /$table -->" -v file="$build/$table.md" '
        $0 == end { skip = 0 }
        !skip { print }
        $0 == begin { skip = 1; while ((getline line < file) > 0) print line }
        END { if (skip) { print "no " end > "/dev/stderr"; exit 1 } }' "$new" > "$new.2"
    mv "$new.2" "$new"
done
if cmp -s "$new" README.md; then
    rm "$new"
elif [ "${2-}" = --check ]; then
    diff -u README.md "$new" || true
    echo "README.md differs from the code: make doc"
    exit 1
else
    mv "$new" README.md
fi

#!/bin/sh
# SPDX-License-Identifier: MIT
# doc.sh BUILD [--check]: rewrites, from the code, what stands between <!-- NAME --> and <!-- /NAME --> in the documents.
# With --check it changes nothing and fails where they differ.
set -eu
build=$1
check=${2-}
parts=$build/doc
stale=

rewrite() { # FILE NAME: the new text is PARTS/NAME
    file=$1
    name=$2
    awk -v begin="<!-- $name -->" -v end="<!-- /$name -->" -v part="$parts/$name" '
        index($0, end) { inside = 0; ends++ }
        !inside { print }
        index($0, begin) { inside = 1; begins++; while ((getline line < part) > 0) print line }
        END { exit !(begins == 1 && ends == 1 && !inside) }' "$file" > "$parts/new" ||
        { echo "$file: needs one $name between its marks" >&2; exit 1; }

    if cmp -s "$parts/new" "$file"; then
        return
    elif [ "$check" = --check ]; then
        diff -u "$file" "$parts/new" || true
        stale="$stale $file"
    else
        cat "$parts/new" > "$file"
    fi
}

mkdir -p "$parts"
for table in options errors statistics health; do
    "$build/tables" $table > "$parts/$table"
    "$build/tables" $table mdoc > "$parts/$table.mdoc"
done
tools/build/scripts.py users src/lua shell > "$parts/users"
tools/build/scripts.py users src/lua conf > "$parts/users.conf"
tools/build/scripts.py table src/lua keys > "$parts/keys"
tools/build/scripts.py table src/lua 'schedule gather cancel reschedule kill cancel_all kill_all reschedule_all batch_close batch_get get' > "$parts/producer_scripts"
tools/build/scripts.py table src/lua 'claim renew report done retry fail release sweep reclaim configure trim adopt' > "$parts/worker_scripts"
# the program as the reader needs it, without the comments above its first line
sed -n '/^#include/,$p' tools/examples/first.c > "$parts/first.c"
{ echo '```c'; cat "$parts/first.c"; echo '```'; } > "$parts/first"
# in a manual page these characters would be drawn as others, or begin a macro
sed 's/\\/\\e/g; s/-/\\-/g; s/'"'"'/\\(aq/g; s/`/\\(ga/g; s/\^/\\(ha/g; s/~/\\(ti/g; s/^\./\\\&./' "$parts/first.c" \
    > "$parts/first.mdoc"

tools/build/mdoc.py tools/doc/protocol.md Sh > "$parts/protocol.mdoc"
{
    tools/build/mdoc.py src/lua/README.md text 'The head of a script'
    tools/build/scripts.py manual src/lua
} > "$parts/heads.mdoc"
tools/build/mdoc.py src/lua/README.md Ss 'Keys of a queue' 'The record (jobs)' 'The attempt (attempts)' Replies \
    Notices 'Who owns a job' 'Who is alive' > "$parts/stored.mdoc"

rewrite README.md first
rewrite tools/man/lapse.3 first.mdoc
for table in options errors statistics health; do
    rewrite tools/man/lapse.3 $table.mdoc
done
for part in protocol heads stored; do
    rewrite tools/man/lapse-protocol.7 $part.mdoc
done
rewrite tools/doc/options.md options
rewrite tools/doc/errors.md errors
rewrite tools/doc/metrics.md statistics
rewrite tools/doc/metrics.md health
rewrite src/lua/README.md keys
rewrite tools/doc/protocol.md producer_scripts
rewrite tools/doc/protocol.md worker_scripts
rewrite tools/doc/users.md users
rewrite redis.conf users.conf
[ -z "$stale" ] || { echo "differ from the code:$stale; run make doc"; exit 1; }

#!/bin/sh
# SPDX-License-Identifier: MIT
# Lines of src/LAYERS are in reading order: a file includes its own header and those of lines above its own, no others.
# Only the files that talk to hiredis see its headers, only the two that run scripts see what they are made of.
set -eu
[ $# -gt 0 ] || set -- src/*/*.[ch]
awk '
    FILENAME == "src/LAYERS" { line[$1] = FNR; next }
    FNR == 1 {
        own = FILENAME; sub(/^src\//, "", own); sub(/\.[ch]$/, "", own)
        if (!(own in line)) say("is not in src/LAYERS")
    }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        split($0, part, "\""); name = part[2]; sub(/\.h$/, "", name)
        if (name == "scripts") { if (own != "script/script") say("includes scripts.h, which is for script.c") }
        else if (name == "script_ids") { if (own !~ /^script\/(script|verbs)$/) say("includes script_ids.h") }
        else if (!(name in line)) say("includes " part[2] ", which is in no layer")
        else if (line[name] > line[own]) say("includes " part[2] " of a layer above it")
    }
    /^[ \t]*#[ \t]*include[ \t]*<.*hiredis/ && own !~ /^redis\/(transport|reply)$/ { say("includes hiredis") }
    function say(what) { print FILENAME ":" FNR ": " what; bad = 1 }
    END { exit bad }
' src/LAYERS "$@"

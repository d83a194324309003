#!/bin/sh
# SPDX-License-Identifier: MIT
# layers.sh [FILE...]: a file of src/ may include its own header, files before it in the same folder, and files of the
# folders that src/LAYERS allows its folder. So no include runs up, or sideways from one folder to its neighbour.
# Only the files that talk to hiredis include its headers, and only script/ includes what is generated from the scripts.
set -eu
[ $# -gt 0 ] || set -- src/*/*.[ch]
awk '
    FILENAME == "src/LAYERS" {
        if (/^#/ || !NF) next
        folder = $1; names = 0
        for (i = 2; i <= NF; i++) {
            if ($i == ":") names = 1
            else if (names) place[folder "/" $i] = ++n_places
            else if ($i != "<") allowed[folder, $i] = 1
        }
        next
    }
    FNR == 1 {
        own = FILENAME; sub(/^src\//, "", own); sub(/\.[ch]$/, "", own)
        home = own; sub(/\/.*/, "", home)
        if (!(own in place)) say("is not in src/LAYERS")
        seen[own] = 1
    }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        split($0, part, "\""); name = part[2]; sub(/\.h$/, "", name)
        folder = name; sub(/\/.*/, "", folder)
        if (name == "script_texts") { if (own != "script/facts") say("includes " part[2] ", which is for facts.c") }
        else if (name ~ /^script_/) { if (home != "script") say("includes " part[2] ", which is for script/") }
        else if (!(name in place)) say("includes " part[2] ", which is in no layer")
        else if (folder == home) {
            if (place[name] > place[own]) say("includes " part[2] ", which stands behind it in src/LAYERS")
        } else if (!((home, folder) in allowed)) say("includes " part[2] ", but " home "/ may not know " folder "/")
    }
    /^[ \t]*#[ \t]*include[ \t]*<.*hiredis/ && own !~ /^redis\/(transport|reply|tls)$/ { say("includes hiredis") }
    function say(what) { print FILENAME ":" FNR ": " what; bad = 1 }
    END {
        for (name in place) if (ARGC > 3 && !(name in seen)) { print "src/LAYERS: there is no src/" name; bad = 1 }
        exit bad
    }
' src/LAYERS "$@"

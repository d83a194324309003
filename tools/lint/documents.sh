#!/bin/bash
# SPDX-License-Identifier: MIT
# documents.sh: checks the documents: the length of README.md, every relative link and its heading, that the index names
# every page of tools/doc, that the table of faults has the rows of tests/fault and no others, that the scripts of the
# protocol and the tests of the tables of patterns, of asynq and of known bugs exist, and what these two name of ours, and
# that the picture of the demo shows the words of the demo.
set -u
README_LINES=150
bad=0

wrong() {
    echo "$*"
    bad=1
}

documents() {
    find . -name '*.md' -not -path './build*/*' -not -path './.git/*' | sed 's|^\./||' | sort
}

# shellcheck disable=SC2016 # the backquotes are of Markdown
prose() { # FILE: without code
    awk '/^ *```/ { code = !code; next } !code' "$1" | sed 's/`[^`]*`//g'
}

anchors() { # FILE: its headings, as GitHub makes anchors of them
    awk '/^ *```/ { code = !code; next } !code && /^#+ /' "$1" |
        sed 's/^#* *//' | tr '[:upper:]' '[:lower:]' | sed 's/[^[:alnum:] _-]//g; s/ /-/g'
}

check_link() { # FILE TARGET
    local file=$1 target=${2%%#*} anchor='' path

    case $2 in
    http://* | https://* | mailto:*) return ;;
    *'#'*) anchor=${2#*#} ;;
    esac

    path=$file
    [ -z "$target" ] || path=$(dirname "$file")/$target
    if [ ! -e "$path" ]; then
        wrong "$file: $2: no such file"
    elif [ -n "$anchor" ] && ! anchors "$path" | grep -qxF -e "$anchor"; then
        wrong "$file: $2: no such heading"
    fi
}

check_links() {
    local file target

    while read -r file; do
        while read -r target; do
            check_link "$file" "$target"
        done < <(prose "$file" | grep -oE '\]\([^)]+\)' | sed 's/^](//; s/)$//')
    done < <(documents)
}

check_length() {
    local lines

    lines=$(wc -l < README.md)
    [ "$lines" -le $README_LINES ] || wrong "README.md: $lines lines, more than $README_LINES"
}

check_index() {
    local page name

    for page in tools/doc/*.md; do
        name=$(basename "$page")
        [ "$name" = README.md ] || grep -qF "]($name)" tools/doc/README.md || wrong "tools/doc/README.md does not link $name"
    done
}

check_faults() {
    local tested listed

    tested=$(grep -ohE '"F[0-9]+[a-z]?"' tests/fault/*.c | grep -oE 'F[0-9]+' | sort -u)
    listed=$(grep -oE '^\| F[0-9]+ ' tools/doc/faults.md | grep -oE 'F[0-9]+' | sort -u)
    diff <(echo "$tested") <(echo "$listed") | sed -n 's/^</tools\/doc\/faults.md lacks/p; s/^>/no test in tests\/fault has/p' |
        grep . && bad=1
}

# The scripts that protocol.md describes: the first column of its tables of scripts.
check_scripts() {
    local name

    while read -r name; do
        find src/lua -name "$name.lua" | grep -q . || wrong "tools/doc/protocol.md: no script is called $name"
    done < <(awk '/^\| script / { on = 1; getline; next } !/^\|/ { on = 0 } on { print $2 }' tools/doc/protocol.md)
}

# Tests that a table names as `suite/test`, where "*" stands for any letters.
# shellcheck disable=SC2016 # the backquotes are of Markdown
check_tests() {
    local tests document name

    tests=$(grep -ohE '^(Test|FLOW_ALL_MODES)\([a-z0-9_]+, [a-z0-9_]+' tests/*/*.c | sed 's/.*(//; s/, /\//')
    for document in tools/doc/patterns.md tools/doc/asynq.md tests/known_bugs.md; do
        while read -r name; do
            grep -qxE -e "${name//\*/.*}" <<< "$tests" || wrong "$document: no test is called $name"
        done < <(grep -oE '`[a-z0-9_]+/[a-z0-9_*]+`' "$document" | tr -d '`' | sort -u)
    done
}

# What these two tables name of ours, in backquotes: functions, constants, fields and settings (which have an underscore, as
# nothing of other queues has), commands and their options.
# shellcheck disable=SC2016 # the backquotes are of Markdown
check_names() {
    local document named name

    for document in tools/doc/patterns.md tools/doc/asynq.md; do
        named=$(grep -oE '`[^`]+`' "$document" | tr -d '`')
        while read -r name; do
            grep -qhE "\<$name\>|X\(${name#LAPSE_}," include/*.h || wrong "$document: the headers have no $name"
        done < <(grep -oE '\<(lapse_[a-z_]+\(|LAPSE_[A-Z_]+)' <<< "$named" | tr -d '(' | sort -u)
        while read -r name; do
            grep -qhE "\<$name\>" include/*.h src/lua/lib/*.lua src/lua/queue/configure.lua ||
                wrong "$document: nothing has a field $name"
        done < <(grep -xE '[a-z]+(_[a-z]+)+' <<< "$named" | sort -u)
        while read -r name; do
            grep -rqF ".name = \"$name\"," tools/lapse || wrong "$document: there is no command lapse $name"
        done < <(grep -oE '^lapse [a-z]+' <<< "$named" | sed 's/lapse //' | sort -u)
        while read -r name; do
            grep -rqF "\"$name\"," tools/lapse || wrong "$document: no command has --$name"
        done < <(grep -E '^(lapse |--)' <<< "$named" | grep -oE '(^| )--[a-z-]+' | sed 's/.*--//' | sort -u)
    done
}

# The picture shows an earlier run: its times may differ, its words may not.
check_picture() {
    local program words

    program=$(tr -d '\n' < tools/examples/demo.c | sed 's/"  *"//g')
    while read -r words; do
        grep -qF -e "$words" <<< "$program" ||
            wrong "tools/doc/demo.svg: the demo no longer prints '$words'; run make demo-svg"
    done < <(grep -oE '>[^<>0-9]{12,}</tspan>' tools/doc/demo.svg | sed 's/^>//; s/<.*//; s/&amp;/\&/g; s/&lt;/</g; s/&gt;/>/g')
}

check_length
check_links
check_index
check_faults
check_scripts
check_tests
check_names
check_picture
exit $bad

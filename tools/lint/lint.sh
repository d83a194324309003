#!/bin/bash
# SPDX-License-Identifier: MIT
# lint.sh BUILD [CHECK...]: runs the checks that are named, or the default ones (see the end). A check prints what is
# wrong; one that fails does not keep the others from running.
set -u
build=$1
shift
shopt -s nullglob globstar
all_c=(src/**/*.[ch] tools/**/*.[ch] tests/**/*.[ch])
shipped_c=(src/**/*.c tools/**/*.c tests/kit/*.c)
other_tests_c=(tests/{unit,lua,api,sync,cron,threads,cli,fault,fuzz,history,bench,meta}/**/*.c)
scripts_sh=(tools/**/*.sh tests/**/*.sh)

forbid() { # PATTERN REASON FILE...: prints the lines that match, with the reason; fails if there are any
    local pattern=$1 reason=$2
    shift 2
    [ $# -gt 0 ] || return 0
    ! grep -nHE "$pattern" "$@" | awk -v "reason=$reason" '{ print $0 "   <- " reason }' | grep .
}

check_layers() { tools/lint/layers.sh; }

# The public headers are laid out by hand.
check_format() {
    clang-format --dry-run -Werror "${all_c[@]}"
}

# Some of gcc's warnings need the optimisation that a file is compiled with; none of clang's does.
check_warnings() {
    compile_with gcc && compile_with clang -O0
}

compile_with() { # CC CFLAGS
    make -s --no-print-directory "BUILD=$build/lint-$1" "CC=$1" "CFLAGS=${2-} -g0" \
        WARN='-Wall -Wextra -Wconversion -Werror' objects
}

# A check of its own, apart from the warnings: gcc follows paths through the code, which takes minutes.
check_analyzer() {
    local objects=() file
    for file in "${shipped_c[@]}"; do
        objects+=("$build/lint-analyzer/obj/${file%.c}.o")
    done
    make -s --no-print-directory "BUILD=$build/lint-analyzer" CC=gcc WARN='-Wall -Werror -fanalyzer' "${objects[@]}"
}

# .clang-tidy has the checks. Tests other than the kit are checked for style only, which takes seconds.
# Of a function it follows 100,000 states, not the 225,000 of its default, which is half of the time. gcc's analyzer
# looks at the same files.
# One process a file: clang-tidy 14 reports each va_list as uninitialized when it is given several files.
style_checks=bugprone-suspicious-string-compare,readability-braces-around-statements
style_checks=$style_checks,readability-function-size,readability-isolate-declaration

tidy_one() { # FILE [OPTION...]
    local file=$1 glib out
    shift
    read -ra glib <<< "$(pkg-config --cflags glib-2.0)"
    out=$(clang-tidy --quiet "$@" "$file" -- -std=gnu11 -D_GNU_SOURCE -Iinclude -Isrc -Itools/lapse -Itests/kit \
        -Xclang -analyzer-config -Xclang max-nodes=100000 \
        "-I$build" "${glib[@]}" -DLAPSE_WITH_CRON '-DLAPSE_SHARE="/usr/share/lapse"' 2>&1) || { echo "$out"; return 1; }
}

tidy_all() { # OPTION... -- FILE...
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    # shellcheck disable=SC2016 # the inner bash expands it
    printf '%s\n' "$@" | xargs -I {} -P "$(nproc)" bash -c 'tidy_one "$@"' tidy_one {} "${options[@]}"
}

check_tidy() {
    local bad=0
    export build
    export -f tidy_one
    tidy_all -- "${shipped_c[@]}" || bad=1
    tidy_all "--checks=-*,$style_checks" -- "${other_tests_c[@]}" || bad=1
    return $bad
}

check_symbols() {
    local bad=0
    library_symbols liblapse include/lapse.h || bad=1
    library_symbols liblapse-sync include/lapse_sync.h || bad=1
    library_symbols liblapse-cron include/lapse_cron.h || bad=1
    return $bad
}

library_symbols() { # LIBRARY HEADER: it exports what its header declares, and nothing else
    local bad=0 file flag
    grep -o 'LAPSE_API [^;(]*(' "$2" | grep -o 'lapse_[a-z_]*($' | tr -d '(' | sort > "$build/declared"
    for file in "$build/$1.a" "$build/$1.so.0"; do
        case $file in *.a) flag=-g ;; *) flag=-D ;; esac
        nm $flag --defined-only "$file" | awk 'NF == 3 && $2 != "A" { print $3 }' | sed 's/@.*//' | sort > "$build/symbols"
        comm -13 "$build/declared" "$build/symbols" | sed "s|^|$file exports |" | grep . && bad=1
        comm -23 "$build/declared" "$build/symbols" | sed "s|^|$file lacks |" | grep . && bad=1
    done
    return $bad
}

# Looks at what the objects import, so that no macro or function pointer hides a call.
check_calls() {
    local bad=0 object name banned
    for object in "$build"/obj/src/*/*.o; do
        name=${object#"$build"/obj/src/} name=${name%.o}
        banned='fork|vfork|system|popen|pthread_create|signal|sigaction|setlocale|getenv|secure_getenv|setenv|exit|_exit'
        banned="$banned|sleep|usleep|nanosleep|gettimeofday|strcpy|strcat|sprintf|vsprintf|gets|strtok|rand|srand|random"
        [ "$name" = base/mem ] ||
            banned="$banned|malloc|calloc|realloc|reallocarray|free|strdup|strndup|asprintf|vasprintf|getline|open_memstream"
        [ "$name" = base/error ] || banned="$banned|abort|stderr|stdout|printf|puts|putchar|fprintf|vfprintf|fputs|fwrite|perror"
        # the header of hiredis 0.14 has its libev adapter as inline functions, and these call free()
        [ "$name" != redis/transport ] || banned=${banned/|free|/|}
        # the one folder that has threads; liblapse itself has none
        [[ $name != sync/* ]] || banned=${banned/|pthread_create|/|}
        # looks for zones where GLib does
        [ "$name" != cron/zone ] || banned=${banned/|getenv|/|}
        nm -u "$object" | awk '{ print $2 }' | grep -xE "$banned" | sed "s|^|src/$name.c uses |" | grep . && bad=1
    done
    return $bad
}

# Looks at the binaries, which show whether the hardening flags had their effect.
check_hardening() {
    local bad=0 file row
    for file in "$build/lapse" "$build/liblapse.so.0" "$build/liblapse-sync.so.0" "$build/liblapse-cron.so.0" "$build"/examples/*; do
        row=$(checksec --output=csv "--file=$file")
        [[ $row =~ ^Full\ RELRO,Canary\ found,NX\ enabled,(PIE\ enabled|DSO),No\ RPATH,No\ RUNPATH,[^,]*,Yes, ]] ||
            { echo "$file: $row"; bad=1; }
    done
    # the library's object and no program, since the start files of Debian are built without it
    [ "$(uname -m)" != x86_64 ] || readelf -n "$build/obj/liblapse.o" | grep -q 'IBT, SHSTK' ||
        { echo "$build/obj/liblapse.o: no IBT, SHSTK"; bad=1; }
    return $bad
}

# The text of a script is a constant, and values are passed in KEYS and ARGV: no value can become code.
check_scripts() {
    local bad=0 others=() file
    for file in src/*/*.[ch]; do
        # refusal.c has the names of commands that Redis denies
        case $file in src/script/script.c | src/script/refusal.c) ;; *) others+=("$file") ;; esac
    done
    forbid '"(EVAL|EVALSHA|SCRIPT|FUNCTION|FCALL)(_RO)?[" ]' 'only script.c runs scripts' "${others[@]}" || bad=1
    forbid 'redis\.p?call' 'Lua belongs into src/lua' src/*/*.[ch] || bad=1
    forbid '(printf|strcpy|strcat|memp?cpy).*(->|\.)text' 'the text of a script is sent unchanged' src/script/script.c || bad=1
    forbid '(printf|strcpy|strcat|memp?cpy).*redis\.p?call|redis\.p?call.*%[a-z]' 'a script is a constant' \
        tools/**/*.c || bad=1
    forbid '\<(loadstring|load|loadfile|dofile|require)\>[ (]' 'runs text as code' src/lua/*/*.lua || bad=1
    [ "$(grep -c '_text\[\] = {' "$build/script_texts.h")" = "$(grep -c '^static const char .*_text\[\] = {' \
        "$build/script_texts.h")" ] || { echo "$build/script_texts.h: a script that is no constant"; bad=1; }
    return $bad
}

check_text() {
    local bad=0 file unkeyed=()
    for file in Makefile tools/build/*.mk .clang-format .luacheckrc redis.conf .ci/run src/lua/lib/*.lua "${all_c[@]}" \
        "${scripts_sh[@]}" tools/**/*.py; do
        [ "$file" = redis.conf ] || head -n 3 "$file" | grep -q 'SPDX-License-Identifier: MIT' ||
            { echo "$file: no SPDX line"; bad=1; }
    done
    forbid '[[:space:]]+$' 'trailing space' "${all_c[@]}" src/lua/*/*.lua Makefile tools/build/*.mk || bad=1
    forbid '.{101}' 'over 100 columns' "${all_c[@]}" src/lua/*/*.lua || bad=1
    for file in src/*/*.[ch] tools/lapse/**/*.[ch]; do
        case $file in src/job/keys.[ch]) ;; *) unkeyed+=("$file") ;; esac
    done
    forbid '"[^"]*(__key(space|event)@|:\{[%*]|\}:)' 'only job/keys.c spells keys and channels' "${unkeyed[@]}" || bad=1
    forbid '\<(TODO|FIXME|XXX)\>' 'do it now, or open an issue' "${all_c[@]}" src/lua/*/*.lua || bad=1
    forbid '[^[:alnum:]_](u|nano)?sleep[[:space:]]*\(' 'wait for a condition' tests/**/*.[ch] || bad=1
    return $bad
}

# The figures of functions, statements and lines.
check_shape() {
    tests/meta/shape/run.sh && tools/lint/shape.sh --check
}

check_cppcheck() {
    cppcheck --quiet --enable=warning,performance,portability --inline-suppr --error-exitcode=1 --std=c11 \
        --suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches -Iinclude -Isrc "-I$build" -Itools/lapse src tools
}

check_lua() {
    local bad=0 file names others
    tools/build/scripts.py check src/lua || bad=1
    LC_ALL=C forbid '[^[:print:][:space:]]' 'not ASCII' src/lua/*/*.lua || bad=1
    run_luacheck --exclude-files "tests/lua/before" --no-config --std lua51 --max-line-length 120 -- tests/**/*.lua || bad=1
    # the texts that Redis gets: unknown names, and those made twice in a function
    run_luacheck --only 0 1 41 42 --no-max-line-length -- "$build"/lua/*.lua || bad=1
    # each source file: what it defines and does not use, at the line of the source
    names=$(lib_names src/lua/lib/*.lua)
    for file in src/lua/*/*.lua; do
        others=$names
        [[ $file != */lib/* ]] || others=$(grep -vxF "$(lib_names "$file")" <<< "$names")
        # shellcheck disable=SC2086 # a list of names
        run_luacheck --read-globals KEYS ARGV redis bit $others -- "$file" || bad=1
    done
    return $bad
}

lib_names() { # FILE...: prints the names that the files define for others, a line each
    sed -n 's/^local function \([a-z_]*\).*/\1/p; s/^local \([a-zA-Z_, ]*\)\( =.*\)\{0,1\}$/\1/p' "$@" | tr -d ,
}

run_luacheck() {
    local out
    out=$(luacheck --no-color --quiet "$@") || { echo "$out"; return 1; }
}

check_shell() {
    shellcheck "${scripts_sh[@]}" .ci/run
}

check_doc() {
    local bad=0
    tools/build/doc.sh "$build" --check || bad=1
    tools/lint/documents.sh || bad=1
    return $bad
}

check_man() {
    local bad=0
    mandoc -Tlint -Wwarning tools/man/*.[1-8] || bad=1
    tests/meta/manual/run.sh "$build/lapse" || bad=1
    tools/lint/manual.py "$build/lapse" || bad=1
    return $bad
}

# Words that plain English does without: it says again, until, forever and for lack of, and names who does or says a thing.
# They are found in names, too.
check_words() {
    local words="anew|till|whoever|somebody|nobody's|for[ _]ever|for[ _]want[ _]of|is[ _]told|is[ _]said"
    # renamed.txt has the old names of tests; the corpora are bytes
    ! grep -rnIiE "(^|[^[:alnum:]])($words)([^[:alnum:]]|\$)" --exclude={lint.sh,renamed.txt} --exclude-dir=corpus \
        README.md include src tools tests
}

[ $# -gt 0 ] || set -- layers format warnings analyzer tidy symbols calls hardening scripts text words shape cppcheck \
    lua shell doc man
failed=
for check in "$@"; do
    if "check_$check" > "$build/lint.out" 2>&1; then
        echo "ok   $check"
    else
        cat "$build/lint.out"
        echo "FAIL $check"
        failed="$failed $check"
    fi
done
[ -z "$failed" ] || { echo "lint failed:$failed"; exit 1; }

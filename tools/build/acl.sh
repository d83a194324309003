#!/bin/sh
# SPDX-License-Identifier: MIT
# acl.sh BUILD FORM: prints the Redis users that lapse needs, with PASSWORD for the password. FORM: file, as lines of a
# Redis configuration or ACL file; conf, the same as comments; shell, as commands.
#
# Their commands are those that the scripts call, as Redis gets them (BUILD/lua), and those that src/ sends itself (AUTH
# needs no right). A listener may do what a producer may, and that what a monitor may.
set -eu
build=$1 form=$2
read='get list depth'
produce="$read schedule cancel reschedule"

called() { # SCRIPT...: INFO of one section is INFO|memory
    for name in "$@"; do
        grep -ohE "(call|write)\('[A-Z]+'(, '[a-z]+')?" "$build/lua/$name.lua" | sed "s/^[a-z(']*//; s/', '/|/; s/'$//"
    done
}
sent() { # PATTERN
    grep -ohE "\"($1)[\" ]" src/*/*.c | tr -d '" '
}
words() { tr '[:upper:]' '[:lower:]' | sort -u | sed 's/^/+/' | paste -sd ' '; }

user() { # NAME RULE...
    case $form in
    file) echo "user lapse_$*" ;;
    conf) echo "# user lapse_$*" ;;
    shell)
        # +info|memory is no pipe, and a rule in quotes is not to be broken: its space is a ^ meanwhile
        echo "redis-cli ACL SETUSER lapse_$1 reset$(shift && printf " '%s'" "$@")" |
            sed "s/'\([-+][^'(]*\|on\)'/\1/g; s/+[a-z]*|[a-z]*/'&'/g; s/\((+[a-z]*\) /\1^/" | fold -sw 112 | tr '^' ' ' |
            sed 's/ $//; $!s/$/ \\/; 2,$s/^/    /; s/^/    /' ;;
    esac
}

all=$(basename -s .lua "$build"/lua/*.lua)
keys='~lapse:{*}:*' notices='&lapse:{*}:notice:*' expired='(+psubscribe &__keyevent@*__:expired)'
# shellcheck disable=SC2086 # words
{
    commands=$({ called $all; sent 'PING|SELECT|EVAL[A-Z_]*|P?UNSUBSCRIBE|SUBSCRIBE'; } | words)
    user listener on '>PASSWORD' "$keys" "$notices" "-@all $commands" "$expired"
    commands=$({ called $produce; sent 'PING|SELECT|EVAL[A-Z_]*'; } | words)
    user producer on '>PASSWORD' "$keys" "$notices" "-@all $commands"
    commands=$({ called $read; sent 'PING|SELECT|EVAL[A-Z]*_RO'; } | words)
    user monitor on '>PASSWORD' "%R$keys" "-@all $commands"
}

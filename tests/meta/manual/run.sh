#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh PROGRAM: whether tools/lint/manual.py notices what a manual page lacks, shown on pages that are broken here.
set -euo pipefail
cd "$(dirname "$0")/../../.."
program=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0

expect() { # WORDS SED_SCRIPT: on pages that the script has changed, it says the words and nothing else
    local words=$1 script=$2 said

    cp tools/man/*.[13] "$dir"
    sed -i -E "$script" "$dir"/*.[13]
    if said=$(tools/lint/manual.py "$program" "$dir"); then
        echo "manual.py does not notice: $words"
        bad=1
    elif [ "$said" != "$dir/$words" ]; then
        echo "manual.py says '$said' instead of '$dir/$words'"
        bad=1
    fi
}

expect 'lapse.3: the synopsis lacks lapse_version' '/^\.Fn lapse_version void/d'
expect 'lapse.3: the synopsis has lapse_versions, which is not in include/lapse.h' \
    's/^(\.Fn lapse_version) void/&\n.Fn lapse_versions void/'
expect 'lapse.3: lapse_strerror is declared as const char * lapse_strerror ( int err ) in include/lapse.h' \
    's/^\.Fn lapse_strerror "int err"/.Fn lapse_strerror "int code"/'
expect 'lapse.3: struct lapse_due differs from include/lapse.h' '/^ *int64_t at_ms;/d'
expect 'lapse.3: lacks lease_ms of struct lapse_options' '/^\.It Va lease_ms$/d'
expect 'lapse.3: lacks via_sweep of struct lapse_stats' '/^\.It Va via_sweep$/d'
expect 'lapse.3: lacks LAPSE_EAUTH' '/^\.It Dv LAPSE_EAUTH$/d'
expect 'lapse.3: lacks LAPSE_HEALTH_DENIED' '/^\.It Dv LAPSE_HEALTH_DENIED$/d'
expect 'lapse_sync.3: the synopsis lacks lapse_sync_free' '/^\.Fn lapse_sync_free "/d'
expect 'lapse_sync.3: struct lapse_sync_listen_options differs from include/lapse_sync.h' '/^ *unsigned threads;/d'
expect 'lapse.1: lacks the command depth' 's/\<Cm depth/Cm/g'
expect 'lapse.1: lacks --grace' 's/\<Fl -grace//g'
expect 'lapse.1: names --graces, which no help lists' 's/(\.Op Fl -grace) /.Op Fl -graces\n&/'

exit $bad

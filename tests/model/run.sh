#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh BUILD: checks each model whole, and that without any one of its guards the checker finds what must not be.
# QUICK=1 leaves out what takes longer than some seconds.
set -u
out=$(cd "$1" && pwd)/model
src=$(cd "$(dirname "$0")" && pwd)
rm -rf "$out"
mkdir -p "$out"

# MODEL [-DNAME...]
holds=(
    'lease -DJOBS=1'
    'lease -DJOBS=1 -DWITH_CANCEL'
    'failover -DJOBS=1'
    'order'
    'move'
)
long=(
    'lease -DJOBS=1 -DWITH_CANCEL -DLIVES=2'
    'lease -DJOBS=1 -DBREAKS=2'
    'lease -DSHORT -DTRIES=1'
    'failover -DMOST=4 -DTRIES=1'
)
breaks=(
    'lease -DJOBS=1 -DNO_TAKEN'
    'lease -DJOBS=1 -DNO_DUE'
    'lease -DJOBS=1 -DNO_WAITING'
    'lease -DJOBS=1 -DNO_RUNNING'
    'lease -DJOBS=1 -DNO_TOKEN'
    'lease -DJOBS=1 -DNO_LEASE'
    'lease -DJOBS=1 -DWITH_CANCEL -DNO_BUSY'
    'lease -DJOBS=1 -DNO_PAUSE'
    'lease -DJOBS=1 -DNO_CLOCK'
    'lease -DJOBS=1 -DNO_KNOWN'
    'failover -DJOBS=1 -DNO_HOLDER'
    'failover -DJOBS=1 -DNO_GROWTH'
    'failover -DJOBS=1 -DNO_SEALED_SCHEDULE'
    'failover -DJOBS=1 -DNO_SEALED_CLAIM'
    'failover -DJOBS=1 -DNO_SEALED_RENEWAL'
    'order -DNO_ORDER'
    'move -DNO_NONE'
    'move -DNO_HALF'
)

# WANTED MODEL [-DNAME...]: a folder for each, as spin writes into that in which it runs
check() {
    local wanted=$1 model=$2 seen states from=$SECONDS
    shift
    local dir=$out/${*// /}
    shift
    mkdir -p "$dir"
    cp "$src"/*.pml "$dir"
    cd "$dir" || exit 1
    if ! spin -a "$@" "$model.pml" > spin.log 2>&1 ||
        ! gcc -O1 -DSAFETY -DMEMLIM=8000 -w -o pan pan.c > gcc.log 2>&1 || ! ./pan -m1000000 -n > pan.log 2>&1; then
        echo "FAILED: $model $*: it does not run, see $dir"
        return 1
    fi
    seen=broken
    grep -q 'errors: 0$' pan.log && seen=holds
    grep -qE 'Search not completed|reached -DMEMLIM|max search depth' pan.log && [ $seen = holds ] && seen='not finished'
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored$/\1/p' pan.log)
    if [ "$seen" != "$wanted" ]; then
        echo "FAILED: $model $*: $seen, where it should be: $wanted; see $dir"
        return 1
    fi
    printf '%-50s %-7s %9s states, %3d s\n' "$model $*" "$seen" "$states" $((SECONDS - from))
    rm -rf "$dir"
}
export -f check
export out src

[ -z "${QUICK:-}" ] && holds+=("${long[@]}")
{
    printf 'holds %s\n' "${holds[@]}"
    printf 'broken %s\n' "${breaks[@]}"
} | xargs -P "$(nproc)" -I {} bash -c 'check {}'

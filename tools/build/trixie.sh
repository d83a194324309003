#!/bin/bash
# SPDX-License-Identifier: MIT
# trixie.sh: runs the tests on Debian 13 (hiredis 1.2), with Redis 8 and with Valkey 8.1, in a root that it makes once, in
# TRIXIE (~/.cache/lapse/trixie). The source tree is mounted there read-only, and the build stays in the root.
set -eu
root=${TRIXIE:-${XDG_CACHE_HOME:-$HOME/.cache}/lapse/trixie}
servers=${SERVERS:-redis-server valkey-server}
tree=$(cd "$(dirname "$0")/../.." && pwd)
[ "$(id -u)" = 0 ] || { echo "trixie: needs root: sudo make test-trixie" >&2; exit 1; }

# All mounts are in a namespace of our own and end with it, however this script ends.
[ -n "${LAPSE_TRIXIE-}" ] || LAPSE_TRIXIE=1 exec unshare --mount --pid --fork --kill-child -- "$0" "$@"
mount --make-rprivate /

if [ ! -e "$root/etc/debian_version" ]; then
    command -v debootstrap >/dev/null || { echo "trixie: apt-get install debootstrap" >&2; exit 1; }
    echo "==== making a Debian 13 root in $root"
    rm -rf "$root.part"
    mkdir -p "${root%/*}"
    debootstrap --variant=minbase trixie "$root.part" "${MIRROR:-http://deb.debian.org/debian}" > "$root.log" 2>&1 ||
        { tail -n 20 "$root.log"; echo "trixie: debootstrap failed: $root.log" >&2; exit 1; }
    mv "$root.part" "$root"
fi

within() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TMPDIR=/tmp "$@"; }
mkdir -p "$root/mnt/tree" "$root/var/cache/lapse"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
cp /etc/resolv.conf "$root/etc/resolv.conf"

printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
mount --bind "$tree" "$root/mnt/tree"
mount -o remount,bind,ro "$root/mnt/tree"
for group in build run test valkey; do
    within /mnt/tree/tools/build/install-deps.sh "$group"
done
# shellcheck disable=SC2016 # dpkg-query expands it
within dpkg-query -W -f '${Package} ${Version}\n' gcc libhiredis-dev libev-dev libcriterion-dev redis-server valkey-server

build=/var/cache/lapse/build
within make -s -C /mnt/tree -j"$(nproc)" BUILD=$build all
failed=
for server in $servers; do
    echo "==== $server"
    within LAPSE_TEST_SERVER="$server" ${ONLY:+"ONLY=$ONLY"} make -C /mnt/tree -j"$(nproc)" BUILD=$build check ||
        failed="$failed $server"
done
echo "==== flows by TLS"
within ${ONLY:+"ONLY=$ONLY"} make -C /mnt/tree -j"$(nproc)" BUILD=$build check-tls || failed="$failed TLS"
[ -z "$failed" ] || { echo "trixie: failed with$failed"; exit 1; }

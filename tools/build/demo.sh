#!/bin/sh
# SPDX-License-Identifier: MIT
# demo.sh: runs tools/examples/demo.c on a private Redis, which is removed afterwards. BUILD is where the programs are.
set -eu
build=${BUILD:-build}
dir=$(mktemp -d)
dev=
trap '[ -z "$dev" ] || kill "$dev" 2>/dev/null; wait; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
mkfifo "$dir/url"
"$build/lapse" dev --conf "$(dirname "$0")/../../redis.conf" > "$dir/url" &
dev=$!
read -r url < "$dir/url"
"$build/examples/demo" "$url"

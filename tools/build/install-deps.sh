#!/bin/sh
# SPDX-License-Identifier: MIT
# install-deps.sh GROUP...: installs the Debian packages that are missing; fast and silent when none is.
set -eu
want=
for group in "$@"; do
    case $group in
    build) want="$want gcc make binutils libc6-dev libhiredis-dev libssl-dev libev-dev libglib2.0-dev pkg-config python3" ;;
    run) want="$want redis-server tzdata" ;;
    valkey) want="$want valkey-server" ;;
    test)
        want="$want g++ openssl stunnel4 libcriterion-dev libjansson-dev jq"
        # Since Debian 13 zones such as EST5EDT and Eire, of which cron lines are tested, are in a package of their own.
        grep -qs '^VERSION_ID="12"' /etc/os-release || want="$want tzdata-legacy" ;;
    node) command -v npm >/dev/null || want="$want nodejs npm" ;;
    fault) want="$want strace iproute2 iptables" ;;
    model) want="$want spin" ;;
    coverage) want="$want gcovr" ;;
    valgrind) want="$want valgrind" ;;
    bench)
        want="$want python3 gnuplot-nox beanstalkd"
        command -v npm >/dev/null || want="$want nodejs npm" ;;
    lint)
        want="$want clang libclang-rt-dev clang-format clang-tidy cppcheck lua-check shellcheck mandoc checksec" ;;
    *) echo "install-deps.sh: no such group: $group" >&2; exit 2 ;;
    esac
done

command -v dpkg-query >/dev/null || { echo "not Debian: please install the equivalents of:$want" >&2; exit 0; }
missing=
for package in $want; do
    status=$(dpkg-query -W -f='${db:Status-Status} ' "$package" 2>/dev/null) || status=
    case " $status" in *" installed "*) ;; *) missing="$missing $package" ;; esac
done
[ -n "$missing" ] || exit 0

line="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" = 0 ]; then root=
elif sudo -n true 2>/dev/null; then root='sudo -n'
else
    echo "packages are missing; please run: sudo $line" >&2
    exit 1
fi

# Only the programs of these packages are needed: policy-rc.d keeps apt from starting their services.
policy=/usr/sbin/policy-rc.d
case "$missing" in
*redis-server* | *valkey-server* | *beanstalkd*)
    if [ ! -e $policy ]; then
        trap '$root rm -f $policy' EXIT
        trap 'exit 1' HUP INT TERM
        printf '#!/bin/sh\nexit 101\n' | $root tee $policy >/dev/null
        $root chmod 755 $policy
    fi ;;
esac

echo "installing:$missing" >&2
install() {
    # shellcheck disable=SC2086 # a list of words
    $root env DEBIAN_FRONTEND=noninteractive $line >&2
}
install || { $root apt-get update >&2 && install; }

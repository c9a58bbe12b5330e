#!/usr/bin/env bash
# Tries what `make dist` made, as root: the Debian package in a root of Debian's packages, the static command in one
# with nothing else, the wheel in an environment of its own. Leaves nothing.
#   scripts/check_dist.sh FOLDER
set -euo pipefail
dist=$(realpath "${1:?usage: scripts/check_dist.sh FOLDER}")
[ "$(id -u)" = 0 ] || { echo "check_dist: skipped: needs root, for a root folder of its own"; exit 0; }
command -v debootstrap >/dev/null || { echo "check_dist: skipped: needs debootstrap"; exit 0; }

work=$(mktemp -d)
root=$work/root
clean() {
    ! mountpoint -q "$root/proc" || umount "$root/proc"
    rm -rf "$work"
}
trap clean EXIT
fail() { echo "check_dist: $*" >&2; exit 1; }
(cd "$dist" && sha256sum --check --quiet SHA256SUMS)

# What a person has whose machine is as small as can be, and a reader of manuals.
debootstrap --variant=minbase --include=libelf1,zlib1g,man-db "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" > "$work/log" 2>&1 \
    || { tail -5 "$work/log" >&2; fail "no root of Debian's packages"; }
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }
mount -t proc proc "$root/proc"
# Images of containers leave manuals out; this one is to have them.
rm -f "$root/etc/dpkg/dpkg.cfg.d/docker"
cp "$dist"/*.deb "$root/tmp/suimon.deb"
files() { (cd "$root" && find etc usr var/lib/systemd -type f ! -path '*/man/index.db' ! -path '*cache*' | sort); }
files > "$work/before"
inside dpkg --install /tmp/suimon.deb > "$work/log" 2>&1 || { cat "$work/log" >&2; fail "it does not install"; }
inside suimon --version
inside suimon compare --link "2Mbit 60ms 100packets" --cc reno,fs-at --duration 5s --no-files
inside suimon paper fs-at --experiment single-flow --no-files > /dev/null || fail "a paper does not run"
inside suimon cc check || [ $? = 4 ] || fail "suimon cc check"
inside man suimon-shell | grep -q "behind a link of your choice" || fail "no manual of suimon shell"
inside bash -c '. /usr/share/bash-completion/completions/suimon && complete -p suimon' > /dev/null || fail "no completion"
inside dpkg --purge suimon > "$work/log" 2>&1 || { cat "$work/log" >&2; fail "it does not go"; }
files > "$work/after"
diff "$work/before" "$work/after" || fail "it leaves or takes files"
echo "check_dist: the Debian package: passed"

static=$(ls "$dist"/*-static.tar.xz 2>/dev/null || true)
if [ -n "$static" ]; then
    mkdir "$work/bare" && tar -xJf "$static" --strip-components=1 -C "$work/bare"
    chroot "$work/bare" /suimon --version
    chroot "$work/bare" /suimon compare --link "2Mbit 60ms 100packets" --cc reno,fs-at --duration 5s --no-files > /dev/null
    echo "check_dist: the static command, with nothing else beside it: passed"
fi

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-index "$dist"/*.whl
(cd "$work" && venv/bin/python -c '
import suimon as sm
result = sm.compare("2Mbit 60ms 100packets", ["reno", "fs-at"], seconds=5)
print(sm.__version__, len(result.runs))')
echo "check_dist: the wheel: passed"

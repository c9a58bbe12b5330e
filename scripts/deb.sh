#!/usr/bin/env bash
# Makes a package for Debian and Ubuntu from a built command.
#   scripts/deb.sh COMMAND FOLDER     writes FOLDER/suimon_VERSION_ARCHITECTURE.deb
set -euo pipefail
cd "$(dirname "$0")/.."
command=$(realpath "${1:?usage: scripts/deb.sh COMMAND FOLDER}")
out=$(realpath "${2:?usage: scripts/deb.sh COMMAND FOLDER}")

version=$("$command" --version | cut -d' ' -f2)
architecture=$(dpkg --print-architecture)
maintainer="The Suimon developers <suimon@users.noreply.github.com>"
# Of the commit, so that the same sources give the same bytes.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
stage=$work/stage
install -D -m 755 "$command" "$work/suimon"
strip --strip-unneeded "$work/suimon"
DESTDIR=$stage PREFIX=/usr ZSH_COMPLETIONS=share/zsh/vendor-completions scripts/install.sh "$work/suimon" >/dev/null

# As Debian has it: the package manager knows what is installed; manuals and change logs are compressed.
rm "$stage/usr/share/suimon/installed"
doc=$stage/usr/share/doc/suimon
rm "$doc/LICENSE"
gzip -9n "$stage"/usr/share/man/man1/*.1
scripts/third_party.py | gzip -9n > "$doc/THIRD-PARTY.txt.gz"
cat > "$doc/changelog" <<CHANGELOG
suimon ($version) unstable; urgency=medium

  * What changed stands in CHANGELOG.md.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
CHANGELOG
cat > "$doc/copyright" <<COPYRIGHT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: suimon
Source: $(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)

Files: *
Copyright: $(date -u -d "@$SOURCE_DATE_EPOCH" +%Y) the Suimon developers
License: Apache-2.0
 On Debian systems, the full text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
 .
 THIRD-PARTY.txt.gz has the licences of the packages that the command contains.
COPYRIGHT
gzip -9n "$doc/changelog"
mkdir -p "$stage/usr/share/lintian/overrides"
cat > "$stage/usr/share/lintian/overrides/suimon" <<'OVERRIDES'
# Programs for the kernel's virtual machine are of its architecture.
suimon: binary-from-other-architecture [usr/lib/suimon/bpf/*.bpf.o]
OVERRIDES

mkdir -p "$work/debian" "$stage/DEBIAN"
printf 'Source: suimon\nPackage: suimon\n' > "$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O --ignore-missing-info suimon 2>/dev/null | sed 's/^shlibs:Depends=//')
cat > "$stage/DEBIAN/control" <<CONTROL
Package: suimon
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Section: net
Priority: optional
Installed-Size: $(du -sk --apparent-size "$stage/usr" | cut -f1)
Depends: $depends
Suggests: iproute2
Homepage: $(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)
Description: keeps queues short and links full
 Suimon compares congestion controls, queue disciplines and path schedulers
 over a link of your choice: in a deterministic packet simulator, behind
 emulated links with real programs, and in the running kernel.
 .
 It loads FS-AT, a sender that limits its flight to what the path holds, into
 the kernel, and joins several interfaces into one.
CONTROL
cat > "$stage/DEBIAN/prerm" <<'SCRIPT'
#!/bin/sh
set -e
# What runs from files that go away ends before them, and what is loaded leaves the kernel.
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl stop suimon-bond.service suimon-bond-server.service suimon-gateway.service suimon-measure.timer suimon-measure-server.service 'suimon-cc@*.service' 'suimon-queue@*.service' 'suimon-shape@*.service' || true
fi
SCRIPT
for moment in postinst postrm; do
    cat > "$stage/DEBIAN/$moment" <<'SCRIPT'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
SCRIPT
done
chmod 755 "$stage"/DEBIAN/{prerm,postinst,postrm}
(cd "$stage" && find usr -type f -print0 | sort -z | xargs -0 md5sum > DEBIAN/md5sums)
package=$out/suimon_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zxz --build "$stage" "$package" >/dev/null
echo "$package"

#!/usr/bin/env bash
# Makes what can be handed to others, each the same bytes for the same commit, wherever it is built.
#   scripts/dist.sh FOLDER
#   scripts/dist.sh --only-command      builds the command alone, by $PROFILE [default: dist]
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: scripts/dist.sh FOLDER|--only-command}
profile=${PROFILE:-dist}
if [ "$out" != --only-command ]; then
    rm -rf "$out"
    mkdir -p "$out"
    out=$(realpath "$out")
fi
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
CARGO_TARGET_DIR=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
stage() { printf '\ndist: %s\n' "$1"; }

# No path of this machine enters what is built.
sources=$PWD
cargo_home=${CARGO_HOME:-$HOME/.cargo}
library=$(rustc --print sysroot)/lib/rustlib/src/rust
map="--remap-path-prefix=$sources=suimon --remap-path-prefix=$library=rust --remap-path-prefix=$cargo_home=cargo --remap-path-prefix=$CARGO_TARGET_DIR=target"
export CARGO_ENCODED_RUSTFLAGS=${map// /$'\x1f'}
export CFLAGS="-ffile-prefix-map=$cargo_home=cargo -ffile-prefix-map=$CARGO_TARGET_DIR=target"

stage "the command"
cargo build --profile "$profile" --locked -p suimon-cli
[ "$out" != --only-command ] || exit 0
command=$CARGO_TARGET_DIR/$profile/suimon
version=$("$command" --version | cut -d' ' -f2)
name=suimon-$version-$(uname -m)-linux
# packed STAGED-COMMAND NAME: a command, its licence and what it is, as an archive.
packed() {
    local folder=$CARGO_TARGET_DIR/dist-stage/$2
    rm -rf "$folder"
    install -D -m 755 "$1" "$folder/suimon"
    strip --strip-unneeded "$folder/suimon"
    install -m 644 LICENSE README.md CHANGELOG.md LIMITATIONS.md "$out/THIRD-PARTY.txt" "$folder"
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$folder/.." -cJf "$out/$2.tar.xz" "$2"
}
scripts/third_party.py > "$out/THIRD-PARTY.txt"
packed "$command" "$name"

stage "the Debian package"
scripts/deb.sh "$command" "$out"
lintian --allow-root --fail-on error "$out"/*.deb

stage "the static command (musl; without congestion control for the kernel, whose loader takes a C library that musl has not)"
musl=$(uname -m)-unknown-linux-musl
if [ -d "$(rustc --print sysroot)/lib/rustlib/$musl/lib" ]; then
    CC=musl-gcc cargo build --profile "$profile" --locked --target "$musl" -p suimon-cli --no-default-features --features bond,parquet,view
    packed "$CARGO_TARGET_DIR/$musl/$profile/suimon" "$name-static"
    "$CARGO_TARGET_DIR/$musl/$profile/suimon" --version
else
    echo "dist: skipped: the standard library for $musl is not installed (rustup target add $musl)"
fi

stage "Python wheel and source distribution"
tools=$CARGO_TARGET_DIR/dist-tools
[ -x "$tools/bin/maturin" ] || python3 -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check "maturin>=1.9,<2" ziglang twine
# Zig links against old C libraries too, so that the wheel runs on any Linux since 2014.
PATH="$tools/bin:$PATH" "$tools/bin/maturin" build --zig --compatibility manylinux2014 --locked --out "$out"
"$tools/bin/maturin" sdist --out "$out"
"$tools/bin/twine" check --strict "$out"/*.whl "$out"/suimon-*.tar.gz

stage "crates"
unpublished=$(cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys
packages = json.load(sys.stdin)["packages"]
print(*("--exclude=" + each["name"] for each in packages if each["publish"] == []))')
cargo package --workspace $unpublished --locked --quiet
mkdir "$out/crates"
cp "$CARGO_TARGET_DIR"/package/*.crate "$out/crates"

stage "the list of what it is made of (CycloneDX)"
[ -x "$tools/bin/cargo-cyclonedx" ] || env -u CARGO_ENCODED_RUSTFLAGS -u CFLAGS \
    cargo install --quiet --locked --root "$tools" cargo-cyclonedx@0.5.9
PATH="$tools/bin:$PATH" cargo cyclonedx --format json --describe binaries --manifest-path crates/cli/Cargo.toml --quiet
mv crates/cli/suimon*.cdx.json "$out/suimon-$version.cdx.json"
rm -f crates/*/*.cdx.json

(cd "$out" && find . -type f ! -name SHA256SUMS | sort | sed 's#^\./##' | xargs -d '\n' sha256sum > SHA256SUMS)
printf '\ndist: %s\n' "$out"
cat "$out/SHA256SUMS"

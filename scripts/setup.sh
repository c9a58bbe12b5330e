#!/usr/bin/env bash
# Installs what this machine lacks; quick and silent where nothing is missing.
#   scripts/setup.sh demo      what `make demo` needs: a C linker, Rust, curl
#   scripts/setup.sh build     what the whole command needs beside it: clang, libelf, zlib
#   scripts/setup.sh checks    what `make test` and `make lint` need beside it: Chromium, Node.js, Python tools, valgrind, ip, QEMU
#   scripts/setup.sh dist      what `make dist` needs beside the whole command: a static C library, Debian's tools
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
    demo | build | checks | dist) wanted=$1 ;;
    *) echo "usage: scripts/setup.sh demo|build|checks|dist" >&2; exit 2 ;;
esac

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
have() { command -v "$1" >/dev/null 2>&1; }
fail() { echo "setup: $*" >&2; exit 1; }
node_is_new() { have node && node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 18 ? 0 : 1)'; }

# Packages of Debian and Ubuntu.
packages=()
have cc || packages+=(build-essential)
# Rust comes by curl, and so does the charting library where npm is not there to bring it.
have curl || { have cargo && have npm; } || packages+=(curl ca-certificates)
# `suimon cc`: programs for the kernel, and libbpf, which loads them.
if [ "$wanted" != demo ] && [ "$(uname -s)" = Linux ]; then
    have clang || packages+=(clang)
    have make || packages+=(make)
    have pkg-config || packages+=(pkg-config)
    [ -e /usr/include/libelf.h ] || packages+=(libelf-dev)
    [ -e /usr/include/zlib.h ] || packages+=(zlib1g-dev)
fi
if [ "$wanted" = checks ] || [ "$wanted" = dist ]; then
    have python3 && python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3 python3-venv)
fi
if [ "$wanted" = checks ]; then
    have node || packages+=(nodejs)
    have npm || packages+=(npm)
    have chromium || have chromium-browser || have google-chrome || [ -n "${CHROMIUM:-}" ] || packages+=(chromium)
    have valgrind || packages+=(valgrind)
    have ip || packages+=(iproute2)
    # `suimon lab`: an emulated machine, and the means to take a kernel apart; some tests have its guests ping.
    if [ "$(uname -sm)" = "Linux x86_64" ]; then
        have qemu-system-x86_64 || packages+=(qemu-system-x86)
        have depmod || packages+=(kmod)
        have zstd || packages+=(zstd)
        have xz || packages+=(xz-utils)
        have ping || packages+=(iputils-ping)
    fi
fi
if [ "$wanted" = dist ]; then
    have musl-gcc || packages+=(musl-tools)
    have dpkg-deb && have dpkg-shlibdeps || packages+=(dpkg-dev)
    have fakeroot || packages+=(fakeroot)
    have lintian || packages+=(lintian)
fi
if [ ${#packages[@]} -gt 0 ]; then
    as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    command="apt-get install -y --no-install-recommends ${packages[*]}"
    have apt-get || fail "this machine lacks packages that Debian calls: ${packages[*]}"
    [ ${#as_root[@]} = 0 ] || have sudo || fail "run this as root, then again what you ran: $command"
    echo "setup: installing ${packages[*]}"
    "${as_root[@]}" apt-get update -q
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive $command
fi

if ! have cargo; then
    echo "setup: installing Rust"
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal
fi
needed=$(sed -n 's/^rust-version = "1\.\([0-9]*\).*/\1/p' Cargo.toml)
rust_is_new() { [ "$(rustc --version | sed 's/^rustc 1\.\([0-9]*\).*/\1/')" -ge "$needed" ]; }
if ! rust_is_new; then
    have rustup || fail "$(rustc --version) is too old: install 1.$needed or newer, from https://rustup.rs"
    rustup update stable
fi

if [ "$wanted" = dist ] && have rustup; then
    rustup target list --installed | grep -qx "$(uname -m)-unknown-linux-musl" || rustup target add "$(uname -m)-unknown-linux-musl" || true
fi

if [ "$wanted" = checks ]; then
    if ! { cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1; then
        have rustup || fail "install rustfmt and clippy beside $(cargo --version)"
        rustup component add rustfmt clippy
    fi
    # Other platforms' standard libraries, against which scripts/check_platforms.sh checks; it says so where one is missing.
    if have rustup; then
        for target in x86_64-pc-windows-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl thumbv7em-none-eabihf; do
            rustup target list --installed | grep -qx "$target" || rustup target add "$target" || true
        done
    fi
    node_is_new || fail "Node.js $(node --version) is too old: install 18 or newer, from https://nodejs.org"
    web=crates/report/web
    if ! [ "$web/node_modules/.package-lock.json" -nt "$web/package-lock.json" ]; then
        npm ci --prefix "$web" --no-audit --no-fund
    fi
    if ! [ .venv/installed -nt requirements-dev.txt ]; then
        python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "$(python3 --version) is too old: install 3.11 or newer"
        python3 -m venv --clear .venv
        .venv/bin/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
        # The package of this checkout, as it stands.
        echo "$PWD/python" > "$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/suimon.pth"
        touch .venv/installed
    fi
fi

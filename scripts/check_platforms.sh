#!/usr/bin/env bash
# Type-checks for other platforms what is to work there: the Python half on Windows, all that needs no C compiler on
# 64-bit ARM and over another C library, the algorithms where there is no operating system. Says so where Rust's standard
# library for one (or `core` and `alloc` alone) is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

check() { # target, what it is, arguments of cargo
    local target=$1 what=$2
    shift 2
    if [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
        cargo check --quiet --locked --target "$target" "$@"
        echo "check_platforms: $target: passed ($what)"
    else
        echo "check_platforms: $target: skipped: its standard library is not installed (rustup target add $target)"
    fi
}

whole() { # target, features of the command
    check "$1" "Python's half; the command with $2" -p suimon-python -p suimon-cli --no-default-features --features "$2"
}

whole x86_64-pc-windows-gnu parquet
whole aarch64-unknown-linux-gnu parquet,view
whole x86_64-unknown-linux-musl parquet,view
check thumbv7em-none-eabihf "units and algorithms without std" -p suimon-units -p suimon-algorithms --no-default-features

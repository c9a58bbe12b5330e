#!/usr/bin/env bash
# Type-checks for other platforms what is to work there: the Python half on Windows, all that needs no C compiler on
# 64-bit ARM and over another C library. Says so where Rust's standard library for one is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

check() { # target, features of the command
    if [ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ]; then
        cargo check --quiet --locked --target "$1" -p suimon-python -p suimon-cli --no-default-features --features "$2"
        echo "check_platforms: $1: passed (Python's half; the command with $2)"
    else
        echo "check_platforms: $1: skipped: its standard library is not installed (rustup target add $1)"
    fi
}

check x86_64-pc-windows-gnu parquet
check aarch64-unknown-linux-gnu parquet,view
check x86_64-unknown-linux-musl parquet,view

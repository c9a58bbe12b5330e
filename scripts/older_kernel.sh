#!/bin/bash
# Runs the programs of bpf/ on a kernel that gives cong_control two arguments (before 6.10), in virtual time.
#
#   scripts/older_kernel.sh [VERSION]      [default: 6.1]
#
# Needs what `suimon lab` needs, and a suimon that is built. Half a minute, once the kernel is set up.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -le 1 ] && [ "${1:-}" != --help ] || { sed -n '2,6s/^# \?//p' "$0" >&2; exit 2; }
version=${1:-6.1}
target=${CARGO_TARGET_DIR:-target}
latest() { find "$target" -path "*/build/$1" -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2-; }
suimon=$(find "$target" -maxdepth 2 -name suimon -type f -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2-)
library=$(latest '*/out/libbpf.a')
object=$(latest '*/out/fs_at.bpf.o')
[ -n "$suimon" ] && [ -n "$library" ] && [ -n "$object" ] || { echo "$0: suimon is not built: make build" >&2; exit 2; }
"$suimon" lab list | grep -q "^$version" || "$suimon" lab setup --kernel "$version"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$(dirname "$object")"/*.bpf.o "$folder/"
cc -O2 -Wall -static -I"$(dirname "$library")/include" bpf/test/older_kernel.c "$library" -lelf -lz -o "$folder/older_kernel"
"$suimon" lab --kernel "$version" --with-program rmmod -- sh -c 'rmmod tcp_yeah tcp_vegas; exec "$0" "$1"' "$folder/older_kernel" "$folder" | tee "$folder/log"
[ "$(grep -c ': Success' "$folder/log")" = 6 ]

#!/bin/bash
# Runs the programs of bpf/ on a kernel that gives cong_control two arguments (before 6.10), in a virtual machine.
#
#   scripts/older_kernel.sh VMLINUZ      as in boot/ of Debian's linux-image-6.1.0-*-cloud-amd64-unsigned
#
# Needs qemu-system-x86, cpio or busybox, and a suimon that is built. A quarter of a minute on a calm machine.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# = 1 ] && [ -r "$1" ] || { sed -n '2,6s/^# \?//p' "$0" >&2; exit 2; }
command -v qemu-system-x86_64 > /dev/null || { echo "$0: qemu-system-x86_64 is not there: apt-get install qemu-system-x86" >&2; exit 2; }
target=${CARGO_TARGET_DIR:-target}
latest() { find "$target" -path "*/build/$1" -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2-; }
library=$(latest '*/out/libbpf.a')
object=$(latest '*/out/fs_at.bpf.o')
[ -n "$library" ] && [ -n "$object" ] || { echo "$0: suimon is not built: make build" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/tree/{proc,sys,dev}
cp "$(dirname "$object")"/*.bpf.o "$folder/tree/"
cc -O2 -Wall -static -I"$(dirname "$library")/include" bpf/test/older_kernel.c "$library" -lelf -lz -o "$folder/tree/init"
(cd "$folder/tree" && find . | { cpio --quiet -o -H newc || busybox cpio -o -H newc; } 2> /dev/null | gzip -1 > ../initrd)
timeout 120 qemu-system-x86_64 -accel tcg -cpu max -m 512 -nographic -no-reboot -kernel "$1" -initrd "$folder/initrd" \
    -append "console=ttyS0 quiet panic=-1" < /dev/null > "$folder/log" 2>&1 || true
grep -a "^older kernel" "$folder/log" | tr -d '\r' || { tail -20 "$folder/log" >&2; exit 1; }
[ "$(grep -ac ': Success' "$folder/log")" = 4 ]

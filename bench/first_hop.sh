#!/bin/bash
# The first hop beside the far one, over two emulated links: bench/first_hop.sh [SUIMON]
# Once the first link (the Wi-Fi) is the slow one, and once the second (the access line). Each prints what was told.
set -euo pipefail
suimon=$(realpath "${1:-target/debug/suimon}")
slow=(--down "20Mbit 6ms 200kB" --up "5Mbit 6ms 60kB")
fast=(--down "60Mbit 30ms 300kB" --up "60Mbit 30ms 300kB")

measured() {
    local -n near=$1 far=$2
    "$suimon" shell --quiet "${far[@]}" --server "$suimon measure --serve --log warn" -- \
        "$suimon" shell --quiet "${near[@]}" -- bash -c "sleep 1; $suimon measure far --load 5s" |
        grep -E "First hop|Grade|others wait"
}
echo "The first link is slow: 20/5 Mbit/s, buffers of 80 and 96 ms"
measured slow fast
echo "The second link is slow"
measured fast slow

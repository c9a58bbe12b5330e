#!/usr/bin/env python3
"""Whether two builds of the command give the same bytes: 20 combinations of what is registered, a million packets.

    bench/same_bytes.py BEFORE AFTER

Each combination runs with both commands. Their JSON results, samples included, must be equal but for the version.
"""

import argparse
import hashlib
import json
import subprocess
import sys

# A million packets of 1500 bytes take two minutes at 100 Mbit/s.
SECONDS = 125
COMBINATIONS = [
    ("100Mbit 40ms 200packets", "reno", "droptail"),
    ("100Mbit 40ms 200packets", "cubic,fs-at", "codel"),
    ("100Mbit 40ms 200packets", "bbr", "droptail"),
    ("100Mbit 40ms 500kB", "cubic", "fq-codel"),
    ("100Mbit 40ms 500kB", "vegas,compound", "pie"),
    ("100Mbit 40ms 500kB", "prague,cubic", "dualpi2"),
    ("100Mbit 40ms 500kB", "cubic", "cake"),
    ("100Mbit 40ms 200packets", "reno", "red"),
    ("100Mbit 40ms 200packets", "reno", "ared"),
    ("100Mbit 40ms 200packets", "reno", "rem"),
    ("100Mbit 40ms 200packets", "reno", "red:mode=packets"),
    ("100Mbit 40ms 200packets", "bic", "sred"),
    ("100Mbit 40ms 200packets", "htcp", "shyu"),
    ("100Mbit 40ms 200packets", "reno", "rtt-aqm"),
    ("100Mbit 40ms 200packets", "reno", "dpd"),
    ("100Mbit 40ms 200packets", "reno", "dpd-qt+ared"),
    ("100Mbit 40ms 200packets", "reno", "even"),
    ("100Mbit 40ms 200packets loss=0.01%", "cubic-linux", "red"),
    ("100Mbit 40ms 500kB jitter=2ms", "fs-at+cubic", "droptail"),
    ("wifi 802.11g 54Mbit", "scalable,dctcp", "droptail"),
]


def digest(command: str, link: str, senders: str, queue: str) -> tuple[str, int]:
    """The SHA-256 of a combination's results, and how many packets passed."""
    call = [command, "compare", "--link", link, "--cc", senders, "--queue", queue, "--mixed", "--flows", "4"]
    call += ["--duration", f"{SECONDS}s", "--json", "--series"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(call)}: {done.stderr.strip()}")
    runs = json.loads(done.stdout)["runs"]
    packets = sum(run["packets_sent"] for run in runs)
    return hashlib.sha256(json.dumps(runs).encode()).hexdigest()[:16], packets


def main() -> int:
    """Compares both commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="the command as it was")
    parser.add_argument("after", help="the command as it is")
    arguments = parser.parse_args()
    moved = 0
    for link, senders, queue in COMBINATIONS:
        before, packets = digest(arguments.before, link, senders, queue)
        after, _ = digest(arguments.after, link, senders, queue)
        moved += before != after
        verdict = "same" if before == after else f"moved: {before} {after}"
        print(f"{link:36} {senders:18} {queue:40} {packets:>9} packets  {verdict}", flush=True)
    print(f"{len(COMBINATIONS) - moved} of {len(COMBINATIONS)} combinations give the same bytes")
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main())

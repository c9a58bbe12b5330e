"""CPU time per byte of FS-AT in the kernel over CUBIC's, at line rate between two network namespaces joined by veth.

Runs come in pairs, in changing order, so that what else the machine does falls on both alike. Needs root, iperf3
and iproute2.

    sudo python3 bench/congestion.py target/release/suimon
"""

import argparse
import json
import os
import statistics
import subprocess
import time


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class Hosts:
    """Two namespaces of this process's own, joined by veth; gone at the end."""

    def __init__(self) -> None:
        self.names = [f"cost{os.getpid()}{end}" for end in "ab"]

    def __enter__(self) -> "Hosts":
        near, far = self.names
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "-n", near, "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", far)
        for name, device, address in ((near, "near", "10.99.0.1/24"), (far, "far", "10.99.0.2/24")):
            run("ip", "-n", name, "address", "add", address, "dev", device)
            run("ip", "-n", name, "link", "set", device, "up")
        self.server = subprocess.Popen(["ip", "netns", "exec", far, "iperf3", "-s"], stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        return self

    def __exit__(self, *_: object) -> None:
        self.server.kill()
        self.server.wait()
        for name in self.names:
            run("ip", "netns", "delete", name)

    def transfer(self, congestion: str, seconds: float) -> tuple[float, float]:
        """Nanoseconds of CPU per byte at both ends together, and Gbit/s."""
        inside = ["ip", "netns", "exec", self.names[0]]
        client = ["iperf3", "-c", "10.99.0.2", "-C", congestion, "-t", str(seconds), "-J"]
        end = json.loads(run(*inside, *client))["end"]
        percent = end["cpu_utilization_percent"]
        received = end["sum_received"]
        cpu_seconds = (percent["host_total"] + percent["remote_total"]) / 100 * received["seconds"]
        return cpu_seconds * 1e9 / received["bytes"], received["bits_per_second"] / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suimon")
    parser.add_argument("--algorithm", default="fs-at+cubic", help="as suimon cc list shows it [fs-at+cubic]")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--seconds", type=int, default=2)
    arguments = parser.parse_args()
    name = f"cost{os.getpid()}"
    run(arguments.suimon, "cc", "load", arguments.algorithm, "--as", name)
    ratios, rates, base = [], [], []
    try:
        with Hosts() as hosts:
            hosts.transfer("cubic", 1)
            for pair in range(arguments.pairs):
                order = ["cubic", name] if pair % 2 == 0 else [name, "cubic"]
                measured = {congestion: hosts.transfer(congestion, arguments.seconds) for congestion in order}
                ratios.append(measured[name][0] / measured["cubic"][0])
                rates.append(measured[name][1] / measured["cubic"][1])
                base.append(measured["cubic"])
    finally:
        run(arguments.suimon, "cc", "unload", name)
    ratios.sort()
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    print(f"CUBIC: {statistics.median(cost for cost, _ in base):.3f} ns of CPU per byte, "
          f"{statistics.median(rate for _, rate in base):.1f} Gbit/s (medians of {len(base)} runs)")
    print(f"{arguments.algorithm} over CUBIC, {len(ratios)} pairs: CPU per byte {statistics.median(ratios):.3f} "
          f"(quartiles {low:.3f} to {high:.3f}), throughput {statistics.median(rates):.3f}")


if __name__ == "__main__":
    main()

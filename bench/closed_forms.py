"""What a paper's printed numbers imply by themselves: python3 bench/closed_forms.py

Each line is a computation from numbers that the papers of papers/fs-at and papers/rtt-aqm print; nothing is simulated
but the exponential average of section 4.2 of RTT-AQM, fed with independent draws.
"""

from __future__ import annotations

import math
import random
import statistics

PACKET_BITS = 12_000
WINDOW = 66
RTT = 0.18


def bdp(rate: float) -> float:
    """Bandwidth-delay product in packets over 180 ms."""
    return rate * RTT / PACKET_BITS


def vegas_maxima() -> None:
    print("FS-AT, Table 1, Vegas: control begins at a window of 4 to 8 BDP, so 3 to 7 BDP wait")
    for name, rate, printed in (("64 kbit/s", 64e3, 15), ("384 kbit/s", 384e3, 27), ("1 Mbit/s", 1e6, 49)):
        low, high = 3 * bdp(rate), min(7 * bdp(rate), WINDOW - bdp(rate))
        verdict = "inside" if low <= printed <= high else "OUTSIDE"
        print(f"  {name:11} {low:5.1f} to {high:5.1f} packets; printed {printed}: {verdict}")


def vegas_descent(rate: float, top: int, steps: float) -> tuple[float, float]:
    """Seconds, and packets times seconds, from `top` waiting packets down to 3, one in `steps` round trips."""
    trip = [steps * (RTT + queue * PACKET_BITS / rate) for queue in range(top, 3, -1)]
    return sum(trip), sum(queue * time for queue, time in zip(range(top, 3, -1), trip, strict=True))


def vegas_means() -> None:
    print("FS-AT, section 4.1, Vegas: mean backlog of 10 MB if the maximum drains a segment in a round trip to 3")
    for name, rate, top, printed in (("1 Mbit/s", 1e6, 49, 4.3), ("2 Mbit/s", 2e6, 36, 15.1)):
        total = 10e6 / 1448 * PACKET_BITS / rate
        seconds, area = vegas_descent(rate, top, 1)
        mean = (area + 3 * (total - seconds)) / total
        steps = (printed - 3) * total / (area - 3 * seconds)
        print(f"  {name:9} {mean:5.1f} packets; printed {printed}, which is one segment in {steps:.2f} round trips")


def drs() -> None:
    reno = WINDOW - bdp(1e6) - 1 - 1.4
    print("FS-AT, DRS at 1 Mbit/s: equation 12 against the printed saving and maximum")
    queue = min(bdp(1e6), WINDOW - bdp(1e6))
    print(f"  equation 12: {queue:.1f} packets, a saving of {100 * (1 - queue / reno):.1f} %; printed: 46.4 %")
    left = reno * (1 - 0.464)
    print(f"  the printed saving leaves {left:.1f} of Reno's {reno:.1f} packets; the printed maximum is 27")
    print(f"  one segment of the window is {100 / reno:.2f} points of saving; the tolerance is 4")


def fs_at_maxima() -> None:
    print("FS-AT, Table 1 against the text's bound of 3 BDP on FS-AT's maximum")
    for name, rate, printed in (("64 kbit/s", 64e3, 6), ("384 kbit/s", 384e3, 13), ("1 Mbit/s", 1e6, 37)):
        own = bdp(rate) + 1
        verdict = "inside" if printed <= 3 * bdp(rate) else "OUTSIDE"
        print(
            f"  {name:11} 3 BDP are {3 * bdp(rate):5.1f} packets over 180 ms, {3 * own:5.1f} with a packet's own "
            f"transmission in the RTT; printed {printed}: {verdict}"
        )


def hsdpa() -> None:
    print("FS-AT, Fig 10: ten segments over blocks of 2 ms at 3.36 Mbit/s")
    exact = 10 * PACKET_BITS / 3.36e6
    for blocks in (math.floor(exact / 0.002), math.ceil(exact / 0.002)):
        print(f"  {blocks} blocks: {10 * PACKET_BITS / (blocks * 0.002) / 1e3:.0f} kbit/s")
    print(f"  the link's own rate takes {exact * 1e3:.2f} ms, {exact / 0.002:.2f} blocks")
    print(
        "  printed maxima, as times of ten segments in ms: "
        + ", ".join(f"{10 * PACKET_BITS / rate:.2f}" for rate in (3354.2, 3334.5, 3332.2, 3346.6, 3349.9))
    )


def mixture() -> None:
    share = 0.24 / 0.38
    mean = share * 50 + (1 - share) * 110
    spread = 60 * math.sqrt(share * (1 - share) * 0.1 / 1.9)
    expected = 100 * spread * math.sqrt(2 / math.pi) / mean
    print("RTT-AQM, section 4.2: equation 1 fed with exact round-trip times of flows drawn by their rates")
    print(f"  mean {mean:.1f} ms, deviation {spread:.2f} ms: a mean error of {expected:.2f} %; printed 6.24 %")
    for estimates in (300, 600, 1200):
        errors = []
        for seed in range(2000):
            draws = random.Random(seed)
            value, off = mean, 0.0
            for _ in range(estimates):
                value = 0.9 * value + 0.1 * (50 if draws.random() < share else 110)
                off += abs(value - mean) / mean
            errors.append(100 * off / estimates)
        below = sum(error <= 6.24 for error in errors) / len(errors)
        print(
            f"  runs of {estimates} estimates: {statistics.mean(errors):.2f} ± {statistics.stdev(errors):.2f} %, "
            f"at most 6.24 % in {100 * below:.0f} % of them"
        )


if __name__ == "__main__":
    for computation in (vegas_maxima, vegas_means, fs_at_maxima, drs, hsdpa, mixture):
        computation()

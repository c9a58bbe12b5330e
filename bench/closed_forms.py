"""What a paper's printed numbers imply by themselves: python3 bench/closed_forms.py

Each line is a computation from numbers that the papers of papers/fs-at, papers/rtt-aqm and papers/buffer-path print;
nothing is simulated but the exponential average of section 4.2 of RTT-AQM, fed with independent draws.
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


def vegas_descent(rate: float, top: int, bottom: int, steps: float, rtt: float = RTT) -> tuple[float, float]:
    """Seconds, and packets times seconds, from `top` waiting packets down to `bottom`, one in `steps` round trips."""
    queues = range(top, bottom, -1)
    trip = [steps * (rtt + queue * PACKET_BITS / rate) for queue in queues]
    return sum(trip), sum(queue * time for queue, time in zip(queues, trip, strict=True))


def vegas_means() -> None:
    print("FS-AT, section 4.1, Vegas: mean backlog of 10 MB if the maximum drains a segment in a round trip to 3")
    for name, rate, top, printed in (("1 Mbit/s", 1e6, 49, 4.3), ("2 Mbit/s", 2e6, 36, 15.1)):
        total = 10e6 / 1448 * PACKET_BITS / rate
        seconds, area = vegas_descent(rate, top, 3, 1)
        mean = (area + 3 * (total - seconds)) / total
        steps = (printed - 3) * total / (area - 3 * seconds)
        print(f"  {name:9} {mean:5.1f} packets; printed {printed}, which is one segment in {steps:.2f} round trips")


def reno_backlog(rate: float) -> float:
    """Reno's mean backlog: the window less the product and the packet being sent, and 1.4 packets for the start."""
    return WINDOW - bdp(rate) - 1 - 1.4


def drs() -> None:
    reno = reno_backlog(1e6)
    print("FS-AT, DRS at 1 Mbit/s: equation 12 against the printed saving and maximum")
    queue = min(bdp(1e6), WINDOW - bdp(1e6))
    print(f"  equation 12: {queue:.1f} packets, a saving of {100 * (1 - queue / reno):.1f} %; printed: 46.4 %")
    left = reno * (1 - 0.464)
    print(f"  the printed saving leaves {left:.1f} of Reno's {reno:.1f} packets; the printed maximum is 27")
    for counted in (20, 21):
        left = 2 * counted - bdp(1e6) - 1
        saving = 100 * (1 - left / reno)
        print(f"  {counted} segments counted in a round trip: {left:.1f} packets, a saving of {saving:.1f} %")
    print("  20 segments take 240 ms, the round trip by a window of 4 over 180 ms; the paper's is 12 ms longer")


def fs_at_savings() -> None:
    print("FS-AT, Fig 8: saving of Reno's backlog where the rate is constant and an ACK confirms two segments")
    print("  rcv: segments confirmed from the ACK that opens an interval to the one that closes it")
    print("  printed: (7) begins an interval at 3/2 rcv, (8) ends it at 2 rcv, and its mean is 25/16 rcv")
    print("  fit: the closing ACK counts twice, and the target stays at twice that")
    for name, rate, saving in (("384 kbit/s", 384e3, 78.0), ("1 Mbit/s", 1e6, 55.3)):
        ack = 2 * PACKET_BITS / rate
        acks = math.ceil((RTT + PACKET_BITS / rate + 20e-6) / ack)
        for mode, flight in (("printed", 25 / 16 * 2 * acks), ("fit", 2 * 2 * (acks + 1))):
            left = flight - bdp(rate) - 1
            print(
                f"  {name:10} {mode:8} flight {flight:4.1f}, backlog {left:4.1f}, "
                f"saving {100 * (1 - left / reno_backlog(rate)):.1f} %; printed {saving}"
            )


def fs_at_maxima() -> None:
    print("FS-AT, Table 1 against the text's bound of 3 BDP on FS-AT's maximum")
    for name, rate, printed in (("64 kbit/s", 64e3, 6), ("384 kbit/s", 384e3, 13), ("1 Mbit/s", 1e6, 37)):
        own = bdp(rate) + 1
        verdict = "inside" if printed <= 3 * bdp(rate) else "OUTSIDE"
        print(
            f"  {name:11} 3 BDP are {3 * bdp(rate):5.1f} packets over 180 ms, {3 * own:5.1f} with a packet's own "
            f"transmission in the RTT; printed {printed}: {verdict}"
        )
    print("  from a window of 2 on, slow start doubles up to the first window beyond the product, and twice that:")
    for name, rate, printed in (("64 kbit/s", 64e3, 6), ("384 kbit/s", 384e3, 13)):
        first = 2 ** math.floor(math.log2(bdp(rate) + 1) + 1)
        low, high = 2 * first - bdp(rate) - 1, 4 * first - bdp(rate) - 1
        print(f"  {name:11} {low:4.1f} to {high:4.1f} packets as one or two round trips pass first; printed {printed}")


def hsdpa() -> None:
    print("FS-AT, Fig 10: ten segments over blocks of 2 ms at 3.36 Mbit/s")
    exact = 10 * PACKET_BITS / 3.36e6
    for blocks in (math.floor(exact / 0.002), math.ceil(exact / 0.002)):
        print(f"  {blocks} blocks: {10 * PACKET_BITS / (blocks * 0.002) / 1e3:.0f} kbit/s")
    print(f"  the link's own rate takes {exact * 1e3:.2f} ms, {exact / 0.002:.2f} blocks")
    units = 10 * math.ceil(PACKET_BITS / 320) / 21
    print(f"  packets that fill whole RLC units of 320 bits take {units:.2f} blocks of 21 units, so 18 at least")
    print(
        "  printed maxima, as times of ten segments in ms: "
        + ", ".join(f"{10 * PACKET_BITS / rate:.2f}" for rate in (3354.2, 3334.5, 3332.2, 3346.6, 3349.9))
    )


def hsdpa_deviation() -> None:
    print("FS-AT, Fig 10, ST at 10 dB: a mean of 2888.5, a maximum of 3349.9 and a deviation of 687.5 kbit/s")
    top, mean, deviation = 3349.9, 2888.5, 687.5
    low = mean - deviation**2 / (top - mean)
    share = (top - mean) / (top - low)
    print(f"  with others at the maximum, {100 * share:.0f} % of the samples are at {low:.0f} kbit/s, or fewer below")
    usual, late = PACKET_BITS * 10 / top, PACKET_BITS * 10 / low
    print(f"  these take {late:.0f} ms rather than {usual:.0f}: {late - usual:.0f} more, where a repetition takes 12")


def drs_over_fading() -> None:
    print("FS-AT, Fig 12: saving by DRS of twice the largest measurement, (12) with the paper's averages and maxima")
    trip = RTT + 0.035
    for name, mean, top in (("VA30 0 dB", 849.1, 1338.1), ("ST 0 dB", 1271.3, 1383.1), ("ST -5 dB", 522.8, 586.4)):
        product = mean * 1e3 * trip / PACKET_BITS
        queue = min(2 * product * top / mean, WINDOW) - product
        saving = 100 * (1 - queue / (WINDOW - product))
        print(f"  {name:10} product {product:4.1f}, backlog {queue:4.1f}: {saving:.0f} %")
    product = 456.1e3 * trip / PACKET_BITS
    ratio = (WINDOW - 0.79 * (WINDOW - product)) / (2 * product)
    print(f"  VA30 -5 dB saves less than 79 % if its maximum is {ratio:.2f} times its mean; printed 4.62 is a misprint")


def vegas_over_fading() -> None:
    print("FS-AT, Fig 11, VA30: the packets of a round trip vary, and a queue of 2 (alpha 1, beta 3) covers most")
    trip = RTT + 0.035
    for name, mean, deviation in (
        ("15 dB", 1585.0, 197.1),
        ("10 dB", 1474.9, 167.4),
        ("5 dB", 1251.8, 150.0),
        ("0 dB", 849.1, 110.5),
        ("-5 dB", 456.1, 81.48),
    ):
        product = mean * 1e3 * trip / PACKET_BITS
        # A printed deviation is that of ten packets; a round trip of more averages over it.
        spread = product * deviation / mean / math.sqrt(max(product / 10, 1))
        normal = statistics.NormalDist()
        # Mean of what a normal deviation exceeds the queue by.
        beyond = spread * normal.pdf(2 / spread) - 2 * normal.cdf(-2 / spread)
        print(f"  {name:6} {product:4.1f} ± {spread:.1f} packets: {100 * beyond / product:.1f} % of the link stay idle")
    print("  -5 dB with 81.48 for the printed deviation of 814.8")


def vegas_burst_over_fading() -> None:
    print("FS-AT, Fig 12, Vegas: mean backlog of 10 MB at the averages of Fig 10 if the rate were constant")
    print("  a first burst of 7 products, as far as the window allows, drains a segment in a round trip to 2")
    trip = RTT + 0.035
    cells = {
        "VA30": (1585.0, 1474.9, 1251.8, 849.1, 456.1),
        "PA3": (2584.0, 2371.1, 2026.3, 1230.0, 519.6),
        "ST": (2921.1, 2888.5, 2252.3, 1271.3, 522.8),
    }
    backlogs = []
    for profile, averages in cells.items():
        row = []
        for average in averages:
            rate = average * 1e3
            product = rate * trip / PACKET_BITS
            total = 10e6 / 1448 * PACKET_BITS / rate
            seconds, area = vegas_descent(rate, int(min(7 * product, WINDOW - product)), 2, 1, trip)
            row.append((area + 2 * (total - seconds)) / total)
        print(f"  {profile:5}" + ", ".join(f"{backlog:4.1f}" for backlog in row) + " packets from 15 dB down to -5 dB")
        backlogs += row
    few = sum(backlog <= 3 for backlog in backlogs)
    middle = statistics.median(backlogs)
    print(f"  {few} of {len(backlogs)} have at most 3, the middle {middle:.1f}; printed: mostly at most 3")


def datagrams() -> None:
    print("Buffer-path, section 5.2: medium time of 500 kbit/s of datagrams over 802.11b, which path 1 loses")
    rate, tcp = 2e6, 941.207e3
    exchange = {payload: 50 + 310 + 5 + 192 + (payload + 28 + 28) * 8 / rate * 1e6 + 10 + 304 for payload in (256, 512)}
    for payload, micros in exchange.items():
        share = 500e3 / (8 * payload) * micros / 1e6
        lost = share * tcp / 1e3
        print(f"  {payload} bytes: {micros:.0f} us a datagram, {100 * share:.0f} % of the medium: {lost:.0f} kbit/s")


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


LINK = 1.25e6
SEGMENT = 1_040
QUANTILES = [statistics.NormalDist().inv_cdf((nth + 0.5) / 400) for nth in range(400)]


def marking(queue: float, rate: float, target: float, rtt: float, flows: int) -> float:
    """RTT-AQM's p (section 3.3), where the flows gain N segments in each round-trip time."""
    predicted = queue + (rate - LINK) * rtt
    wanted = LINK + (target - predicted) / rtt
    top, bottom = rate + flows * SEGMENT / rtt, rate / 2
    if predicted <= target or wanted >= top:
        return 0.0
    if wanted <= bottom:
        return 1.0
    return float(1 - ((wanted - bottom) / (top - bottom)) ** (1 / max(rate * rtt / SEGMENT / flows, 1)))


def literal_level(
    noise: float, target: float, groups: list[tuple[int, float, int]], forced: float | None = None
) -> float:
    """The queue in bytes at which the mean p holds Reno at the windows that fill the link, W^2 = 3 / (2 p).

    A group of flows has a size, a propagation time, and the number of such queues on its way, each of which marks.
    """
    flows = sum(count for count, _, _ in groups)
    low, high = 0.0, 2 * target
    while high - low > 1:
        queue = (low + high) / 2
        trips = [propagation + queues * (queue + SEGMENT) / LINK for _, propagation, queues in groups]
        # Each group's packets in a second, with a window of one over the square root of its queues.
        shares = [count / trip / math.sqrt(queues) for (count, _, queues), trip in zip(groups, trips, strict=True)]
        needed = 1.5 * (sum(shares) * SEGMENT / LINK) ** 2
        # The representative round-trip time weighs by rate (2).
        mean_trip = sum(share * trip for share, trip in zip(shares, trips, strict=True)) / sum(shares)
        rates = [LINK * (1 + noise * quantile) for quantile in QUANTILES]
        p = statistics.mean(marking(queue, rate, target, forced or mean_trip, flows) for rate in rates)
        low, high = (low, queue) if p > needed else (queue, high)
    return low


def literal_levels() -> None:
    print("RTT-AQM, literal: the queue where (3) to (14), over a normally distributed X, mark as often as Reno needs")
    print("  printed: 90.2 KB in section 5.1, 90.3 and 95.2 with 50 and 200 ms forced; about 40 in section 5.2")
    for noise in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4):
        single = [literal_level(noise, 100e3, [(30, 0.028, 1)], forced) / 1e3 for forced in (None, 0.05, 0.2)]
        hops = literal_level(noise, 50e3, [(10, 0.006, 1), (10, 0.010, 2)]) / 1e3
        print(
            f"  X varies by {100 * noise:2.0f} %: {single[0]:5.1f}, {single[1]:5.1f}, {single[2]:5.1f} KB; "
            f"section 5.2: {hops:4.1f} KB"
        )


if __name__ == "__main__":
    for computation in (
        vegas_maxima,
        vegas_means,
        fs_at_maxima,
        fs_at_savings,
        drs,
        hsdpa,
        hsdpa_deviation,
        vegas_over_fading,
        vegas_burst_over_fading,
        drs_over_fading,
        datagrams,
        mixture,
        literal_levels,
    ):
        computation()

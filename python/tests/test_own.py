"""Algorithms in Python run in the simulator, and do what the same in Rust does."""

from __future__ import annotations

from collections import deque

import pytest
import suimon as sm

LINK = sm.Link("4Mbit", delay="20ms", buffer="30 packets")


class PlainReno(sm.CongestionControl):
    """Reno, RFC 5681, as crates/algorithms has it."""

    def __init__(self, beta: float = 0.5) -> None:
        self.beta = beta
        self.bytes_acked = 0

    def on_ack(self, ack: sm.Ack, limits: sm.Limits) -> None:
        if ack.in_recovery or not ack.cwnd_limited or ack.newly_acked_bytes == 0:
            return
        if limits.in_slow_start:
            limits.cwnd_bytes += min(ack.slow_start_credit_bytes, limits.ssthresh_bytes - limits.cwnd_bytes)
            return
        self.bytes_acked += ack.avoidance_credit_bytes
        if self.bytes_acked >= limits.cwnd_bytes:
            self.bytes_acked -= int(limits.cwnd_bytes)
            limits.cwnd_bytes += ack.mss_bytes

    def on_congestion(self, event: sm.Congestion, limits: sm.Limits) -> None:
        self.bytes_acked = 0
        limits.ssthresh_bytes = max(int(event.used_window_bytes * self.beta), 2 * event.mss_bytes)

    def probe(self) -> dict[str, float]:
        return {"acked_bytes": self.bytes_acked}


class Fifo(sm.QueueDiscipline):
    """First in, first out."""

    def __init__(self) -> None:
        self.waiting: deque[sm.Packet] = deque()

    def enqueue(self, packet: sm.Packet, now_s: float) -> None:
        self.waiting.append(packet)

    def dequeue(self, now_s: float) -> sm.Packet | None:
        return self.waiting.popleft() if self.waiting else None


class HeadDrop(Fifo):
    """Marks or drops what has waited for longer than a target."""

    def __init__(self, target_ms: float = 20.0) -> None:
        super().__init__()
        self.target_s = target_ms / 1e3

    def dequeue(self, now_s: float) -> sm.Packet | None:
        while self.waiting:
            packet = self.waiting.popleft()
            if now_s - packet.arrived_s <= self.target_s or packet.mark():
                return packet
            packet.drop()
        return None


class Quickest(sm.PathScheduler):
    """The path with the lowest round-trip time that would send at once."""

    def place(self, state: sm.SendState, now_s: float) -> int | None:
        ready = [path for path in state.paths if path.ready]
        return min(ready, key=lambda path: path.srtt_s or 0.0).index if ready else None


def flow_numbers(result: sm.Result) -> list[list[object]]:
    columns = ("delivered_bytes", "packets_sent", "retransmissions", "window_cuts", "rtt_mean_ms")
    return [result.flows[column].to_list() for column in columns]


def test_reno_in_python_is_reno_in_rust() -> None:
    python = sm.compare(LINK, [PlainReno], seconds=20)
    rust = sm.compare(LINK, "reno", seconds=20)
    assert flow_numbers(python) == flow_numbers(rust)
    assert python.flows["window_cuts"][0] > 2
    assert python.flows["algorithm"].to_list() == ["plain-reno"]
    assert max(value for value in python.flow_series["acked_bytes"].to_list() if value is not None) > 0


def test_a_class_goes_by_its_name_with_parameters_and_below_a_wrapper() -> None:
    sm.register(PlainReno)
    result = sm.compare(LINK, ["plain-reno:beta=0.9", "fs-at+plain-reno", "fs-at"], seconds=10)
    assert result.flows["algorithm"].to_list() == ["plain-reno:beta=0.9", "fs-at+plain-reno", "fs-at"]
    steep, wrapped, reference = result.flows["delivered_bytes"].to_list()
    assert wrapped == reference
    assert steep > reference / 2
    scenario = sm.Scenario.over(LINK, [PlainReno, "cubic"], queue=Fifo, seconds=2)
    assert scenario.run().flows["algorithm"].to_list() == ["plain-reno", "cubic"]
    assert "plain-reno" in [algorithm.name for algorithm in sm.algorithms("congestion control")]


def test_a_fifo_in_python_is_drop_tail() -> None:
    python = sm.compare(LINK, "cubic", queues=Fifo, seconds=10)
    rust = sm.compare(LINK, "cubic", queues="droptail", seconds=10)
    assert flow_numbers(python) == flow_numbers(rust)
    for column in ("backlog_mean_packets", "backlog_max_packets", "dropped_overflow", "delay_p95_ms"):
        assert python.queues[column].to_list() == rust.queues[column].to_list()


def test_a_queue_in_python_drops_and_keeps_delay_down() -> None:
    result = sm.compare(LINK, "reno", queues=[HeadDrop, "head-drop:target_ms=60"], seconds=20)
    short, long = result.queues["delay_p95_ms"].to_list()
    assert short < 30 < long < 70
    assert result.queues["dropped_early"][0] > 0
    assert result.runs["utilisation"][1] > 0.9


def test_a_scheduler_in_python_is_lowest_rtt() -> None:
    result = sm.compare_paths(["4Mbit 20ms", sm.Link("2Mbit", delay="40ms")], [Quickest, "lowest-rtt"], seconds=10)
    rows = {row["scheduler"]: row for row in result.aggregates.to_dicts()}
    assert rows["quickest"]["delivered_bytes"] == rows["lowest-rtt"]["delivered_bytes"]
    assert rows["quickest"]["goodput_bps"] > 4.5e6


class Broken(sm.CongestionControl):
    """Fails at the first loss."""

    def on_ack(self, ack: sm.Ack, limits: sm.Limits) -> None:
        limits.cwnd_bytes += ack.newly_acked_bytes

    def on_congestion(self, event: sm.Congestion, limits: sm.Limits) -> None:
        raise LookupError(f"a {event.kind} that nobody expected")


@pytest.mark.parametrize("seeds", [1, 4])
def test_an_exception_inside_comes_out_of_the_call(seeds: int) -> None:
    with pytest.raises(LookupError, match="a loss that nobody expected"):
        sm.compare(LINK, ["reno", Broken], seconds=60, seeds=seeds)
    with pytest.raises(LookupError, match="a loss that nobody expected"):
        sm.Scenario.over(LINK, Broken).run()


def test_what_an_algorithm_must_not_do_is_refused() -> None:
    class Negative(PlainReno):
        def on_ack(self, ack: sm.Ack, limits: sm.Limits) -> None:
            limits.cwnd_bytes = -1

    class Stranger(Fifo):
        def dequeue(self, now_s: float) -> sm.Packet | None:
            return "a packet"  # type: ignore[return-value]

    class Lost(sm.PathScheduler):
        def place(self, state: sm.SendState, now_s: float) -> int:
            return 7

    with pytest.raises(sm.InputError, match="cwnd_bytes: -1 is no size; accepted: bytes from zero on"):
        sm.compare(LINK, Negative, seconds=1)
    with pytest.raises(sm.InputError, match="dequeue gave a packet; accepted: a packet that enqueue got"):
        sm.compare(LINK, "reno", queues=Stranger, seconds=1)
    with pytest.raises(sm.InputError, match="place gave 7; accepted: None, a path's index"):
        sm.compare_paths(["1Mbit 10ms", "1Mbit 20ms"], Lost, seconds=1)
    with pytest.raises(NotImplementedError, match="CongestionControl.on_ack"):
        sm.compare(LINK, sm.CongestionControl, seconds=1)
    with pytest.raises(sm.InputError, match="senders: .*Fifo.* is no congestion control"):
        sm.compare(LINK, Fifo, seconds=1)  # type: ignore[arg-type]


def test_names_that_are_taken_and_parameters_without_a_default_are_refused() -> None:
    class Reno(PlainReno):
        pass

    class Bare(PlainReno):
        def __init__(self, gain: float) -> None:
            super().__init__(gain)

    with pytest.raises(sm.InputError, match='"reno" is a congestion control of the registry'):
        sm.register(Reno)
    with pytest.raises(sm.InputError, match="gain has no default"):
        sm.register(Bare)
    with pytest.raises(sm.InputError, match="plain-reno has no parameter"):
        sm.compare(LINK, [PlainReno, "plain-reno:alpha=1"], seconds=1)


def test_a_class_defined_anew_takes_the_place_of_the_one_before() -> None:
    def defined(growth: int) -> type[sm.CongestionControl]:
        class Anew(PlainReno):
            def on_ack(self, ack: sm.Ack, limits: sm.Limits) -> None:
                limits.cwnd_bytes = growth * ack.mss_bytes

        return Anew

    slow = sm.compare(LINK, defined(2), seconds=5).flows["goodput_bps"][0]
    fast = sm.compare(LINK, defined(8), seconds=5).flows["goodput_bps"][0]
    assert fast > 3 * slow

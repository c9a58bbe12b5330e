"""What a gateway carries between network namespaces, beside HAProxy, socat and a plain route. Needs root."""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from measure import HERE, WORK, BenchError, compiled, run

CLIENT, GATEWAY, SERVER = "10.94.1.2", "10.94.1.1", "10.94.2.2"
PORT, LISTEN = 5201, 8443
CONNECTIONS_PORT = 7000
CONNECTIONS = 10_000

HAPROXY = """global
    maxconn 4000
    nbthread {threads}
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    option splice-auto
listen all
    bind :{listen}
    server s {server}:{port}
"""


@dataclass(frozen=True)
class Way:
    """From the client to the server: what runs between them, and where the client connects."""

    name: str
    command: list[str] | None
    is_ready: Callable[[], bool]
    direct: bool = False


def ways(suimon: Path, port: int) -> list[Way]:
    config = WORK / f"haproxy-{port}.cfg"
    threads = len(os.sched_getaffinity(0))
    config.write_text(HAPROXY.format(threads=threads, listen=LISTEN, server=SERVER, port=port))
    control = WORK / "gateway.sock"
    gateway = [str(suimon), "gateway", "--max-of-client", "60000", "--control", str(control)]
    forward = [*gateway, "--listen", str(LISTEN), "--to", f"{SERVER}:{port}"]
    transparent = [*gateway, "--lan", "bench-s", "--radio", "bench-c"]

    def is_there() -> bool:
        return answers(suimon, control)

    found = [
        Way("plain route", None, is_there, direct=True),
        Way("gateway, FS-AT", forward, is_there),
        Way("gateway, CUBIC", [*forward, "--radio-cc", "cubic"], is_there),
        Way("gateway between devices, FS-AT", transparent, is_there, direct=True),
    ]
    if shutil.which("haproxy"):
        found.append(Way("HAProxy", ["haproxy", "-db", "-f", str(config)], listens("g", LISTEN)))
    if shutil.which("socat"):
        listen = f"TCP-LISTEN:{LISTEN},fork,reuseaddr,backlog=4096"
        command = ["socat", "-b", "262144", listen, f"TCP:{SERVER}:{port}"]
        found.append(Way("socat", command, listens("g", LISTEN)))
    return found


def inside(namespace: str, command: list[str]) -> list[str]:
    return ["ip", "netns", "exec", f"bench-{namespace}", *command]


@contextmanager
def row() -> Iterator[None]:
    """Client, gateway and server, each in a network of its own."""
    names = ("c", "g", "s")
    remove = [["ip", "netns", "del", f"bench-{name}"] for name in names]
    for command in remove:
        subprocess.run(command, stderr=subprocess.DEVNULL, check=False)
    try:
        for name in names:
            run(["ip", "netns", "add", f"bench-{name}"], "ip netns")
            run(["ip", "-n", f"bench-{name}", "link", "set", "lo", "up"], "ip link")
            run(inside(name, ["sysctl", "-qw", "net.core.somaxconn=65535"]), "sysctl")
            run(inside(name, ["sysctl", "-qw", "net.ipv4.ip_local_port_range=1024 65000"]), "sysctl")
        for end, near, far in (("c", CLIENT, GATEWAY), ("s", SERVER, "10.94.2.1")):
            device = f"bench-{end}"
            words = ["ip", "-n", device, "link", "add", "veth0", "type", "veth", "peer", "name", device]
            run([*words, "netns", "bench-g"], "ip link")
            for namespace, name, address in ((device, "veth0", near), ("bench-g", device, far)):
                run(["ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", name], "ip addr")
                run(["ip", "-n", namespace, "link", "set", name, "up"], "ip link")
            run(["ip", "-n", device, "route", "add", "default", "via", far], "ip route")
        run(inside("g", ["sysctl", "-qw", "net.ipv4.ip_forward=1"]), "sysctl")
        yield
    finally:
        for command in remove:
            subprocess.run(command, stderr=subprocess.DEVNULL, check=False)


def listens(namespace: str, port: int) -> Callable[[], bool]:
    """Whether something accepts connections there."""
    return lambda: f":{port} " in run(inside(namespace, ["ss", "-Htln"]), "ss")


@contextmanager
def running(namespace: str, command: list[str] | None, is_ready: Callable[[], bool]) -> Iterator[int | None]:
    """A program, with its process id, from when it is ready until the end of the block."""
    if command is None:
        yield None
        return
    with (WORK / "program.log").open("wb") as log:
        whole = inside(namespace, command)
        program = subprocess.Popen(whole, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        began = time.monotonic()
        while not is_ready():
            if program.poll() is not None or time.monotonic() - began > 60:
                raise BenchError(f"{command[0]} is not ready: {(WORK / 'program.log').read_text()[-500:]}")
            time.sleep(0.1)
        # `ip netns exec` becomes the program.
        yield program.pid
    finally:
        # With the processes that it made.
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        time.sleep(0.5)


def answers(suimon: Path, control: Path) -> bool:
    """Whether a gateway is there."""
    status = [str(suimon), "gateway", "status", "--control", str(control)]
    return subprocess.run(status, capture_output=True, check=False).returncode == 0


def throughput(suimon: Path, rounds: int, seconds: int) -> dict[str, list[float]]:
    """Gbit/s of one download over each way, one after the other in each round."""
    WORK.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[float]] = {}
    with row(), running("s", ["iperf3", "-s", "-p", str(PORT)], listens("s", PORT)):
        for _ in range(rounds):
            for way in ways(suimon, PORT):
                to, port = (SERVER, PORT) if way.direct else (GATEWAY, LISTEN)
                with running("g", way.command, way.is_ready):
                    command = ["iperf3", "-c", to, "-p", str(port), "-R", "-t", str(seconds), "-O", "1", "--json"]
                    done = json.loads(run(inside("c", command), f"iperf3 over {way.name}"))
                found.setdefault(way.name, []).append(done["end"]["sum_received"]["bits_per_second"] / 1e9)
    return found


def new_connections(suimon: Path, rounds: int, seconds: int) -> dict[str, list[float]]:
    """Connections a second over each way, 64 at once, each with a byte from the server and a reset from the client."""
    program = str(compiled("connections"))
    found: dict[str, list[float]] = {}
    with row(), running("s", [program, "serve", str(CONNECTIONS_PORT)], listens("s", CONNECTIONS_PORT)):
        for _ in range(rounds):
            for way in ways(suimon, CONNECTIONS_PORT):
                # A process for each connection: some fail.
                if way.name == "socat":
                    continue
                to, port = (SERVER, CONNECTIONS_PORT) if way.direct else (GATEWAY, LISTEN)
                with running("g", way.command, way.is_ready):
                    command = [program, "rate", to, str(port), str(seconds), "64"]
                    done = float(run(inside("c", command), f"connections over {way.name}"))
                found.setdefault(way.name, []).append(done)
    return found


@dataclass(frozen=True)
class Memory:
    """What a way takes for its open connections: the process alone, and the machine with all four sockets of each."""

    process_bytes: int
    machine_bytes: int


# In the lab root may have as many open files as it wants; each way has a guest of its own.
JOB = """set -e
ulimit -n 1048576
sysctl -qw net.core.somaxconn=65535
available() {{ sed -n 's/^MemAvailable:[[:space:]]*\\([0-9]*\\) kB/\\1/p' /proc/meminfo; }}
./connections serve {port} &
process=$$
to={port}
if {gateway}; then
    to={listen}
    suimon gateway --listen {listen} --to 127.0.0.1:{port} --max-of-client 60000 --control c.sock 2> gateway.log &
    process=$!
fi
sleep 5
before=$(available)
sleep 600 | ./connections hold 127.0.0.1 $to {count} > said &
while ! grep -q open said; do sleep 0.2; done
sleep 5
echo $(sed -n 's/^VmRSS:[[:space:]]*\\([0-9]*\\) kB/\\1/p' /proc/$process/status) $((before - $(available))) > memory
"""


def memory(suimon: Path) -> dict[str, Memory]:
    """Memory of ten thousand open connections, in a guest of their own: direct, and through a gateway."""
    folder = WORK / "gateway-memory"
    folder.mkdir(parents=True, exist_ok=True)
    run(["cc", "-O2", "-static", "-o", str(folder / "connections"), str(HERE / "connections.c")], "cc")
    found = {}
    for name, gateway in (("without", "false"), ("gateway, FS-AT", "true")):
        job = JOB.format(port=CONNECTIONS_PORT, listen=LISTEN, gateway=gateway, count=CONNECTIONS)
        (folder / "job.sh").write_text(job)
        command = [str(suimon), "lab", "--memory", "1GB", "--with", "connections", "--", "sh", "job.sh"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200, check=False)
        if done.returncode != 0:
            raise BenchError(f"{name}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
        process, machine = (int(word) * 1024 for word in (folder / "memory").read_text().split())
        found[name] = Memory(process, machine)
    return found


def middle(values: list[float]) -> float:
    return statistics.median(values)

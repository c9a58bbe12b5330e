"""How long a page of 1 MB takes through a gateway: alone, and beside a download to the same client.

On a real kernel in virtual time (`suimon lab`), and in the simulator. In both the server sends as soon as the client
is connected.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from measure import WORK, BenchError, run

SERVER_RTT_MS = 100
PAGE_BYTES = 1_000_000
# When the first page begins, the download, and the second page; in seconds.
ALONE, DOWNLOAD, BESIDE, END = 1, 10, 20, 60


@dataclass(frozen=True)
class Radio:
    """A link to the phone whose buffer holds a second."""

    rate: str
    rtt_ms: int
    buffer: str


RADIOS = [Radio("2Mbit", 80, "250kB"), Radio("20Mbit", 80, "2500kB")]

JOB = """set -e
ip netns add s
ip link add far0 type veth peer name srv0 netns s
ip addr add 10.93.0.1/24 dev far0; ip link set far0 up
ip -n s addr add 10.93.0.2/24 dev srv0; ip -n s link set srv0 up; ip -n s link set lo up
ip -n s route add default via 10.93.0.1
for side in "" "-n s"; do
    device=$([ -z "$side" ] && echo far0 || echo srv0)
    tc $side qdisc add dev $device root netem delay {delay}ms limit 100000
done
sysctl -qw net.ipv4.ip_forward=1 net.ipv4.tcp_no_metrics_save=1
ip netns exec s sysctl -qw net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_congestion_control=cubic
ip netns exec s socat TCP-LISTEN:5201,fork,reuseaddr OPEN:/dev/zero,rdonly 2> server.log &
to=10.93.0.2:5201
if {gateway}; then
    suimon gateway --listen 8443 --to 10.93.0.2:5201 --control gateway.sock 2> gateway.log &
    for wait in $(seq 100); do [ -S gateway.sock ] && break; sleep 0.1; done
    to=far:8443
fi
cat > client.sh <<'CLIENT'
page() {{
    begun=$(date +%s%N)
    socat -u "TCP:$1" - 2> /dev/null | head -c {page} > /dev/null
    echo $(($(date +%s%N) - begun)) >> pages
}}
sleep {alone}; page "$1"
sleep 5
socat -u "TCP:$1" OPEN:/dev/null 2> /dev/null & download=$!
sleep {later}; page "$1"
kill $download
CLIENT
suimon shell --link "{rate} {rtt}ms {buffer}" -- sh client.sh $to
"""


def of_kernel(suimon: Path, radio: Radio, gateway: bool) -> list[float]:
    """Seconds of the page alone and beside the download, in the lab."""
    folder = WORK / "gateway" / f"pages-{radio.rate}-{'with' if gateway else 'without'}"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    job = JOB.format(
        delay=SERVER_RTT_MS // 2,
        gateway="true" if gateway else "false",
        page=PAGE_BYTES,
        alone=ALONE,
        later=BESIDE - DOWNLOAD,
        rate=radio.rate,
        rtt=radio.rtt_ms,
        buffer=radio.buffer,
    )
    (folder / "job.sh").write_text(job)
    command = [str(suimon), "lab", "--memory", "1GB", "--with-program", "socat", "--", "sh", "job.sh"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1800, check=False)
    pages = folder / "pages"
    if done.returncode != 0 or not pages.is_file():
        raise BenchError(f"{folder.name}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    return [int(line) / 1e9 for line in pages.read_text().split()]


SCENARIO = """name = "pages"
duration = "{end}s"
record_interval = "off"
[[link]]
name = "radio"
between = ["gateway", "phone"]
rate = "{rate}"
delay = "{radio_delay}ms"
buffer = "{buffer}"
[link.reverse]
rate = "unlimited"
[[link]]
name = "servers"
between = ["server", "gateway"]
rate = "1Gbit"
delay = "{server_delay}ms"
buffer = "unbounded"
reported = false
"""
FLOW = """
[[flow]]
name = "{name}"
from = "server"
to = "phone"
cc = "cubic-linux"
window = "6MB"
start = "{start}s"
{rest}
"""


def of_simulator(suimon: Path, radio: Radio, gateway: bool) -> list[float]:
    """The same in the simulator."""
    text = SCENARIO.format(
        end=END,
        rate=radio.rate,
        radio_delay=radio.rtt_ms // 2,
        buffer=radio.buffer,
        server_delay=SERVER_RTT_MS // 2,
    )
    through = 'gateway = { node = "gateway", cc = "fs-at", buffer = "6MB" }' if gateway else ""
    for name, start, size in (("alone", ALONE, PAGE_BYTES), ("download", DOWNLOAD, 0), ("beside", BESIDE, PAGE_BYTES)):
        rest = f'size = "{size}B"\n{through}' if size else through
        text += FLOW.format(name=name, start=start, rest=rest)
    file = WORK / "gateway" / "pages.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    flows = json.loads(run([str(suimon), "run", str(file), "--json", "--no-files"], "pages"))["flows"]
    times = {flow["flow"]: (flow["completed_s"] or END) - flow["start_s"] for flow in flows}
    return [times["alone"], times["beside"]]


def table(suimon: Path) -> list[str]:
    """The table of pages: alone and beside a download, without a gateway and through one."""
    lines = [
        "| Radio | Without: alone | beside a download | Gateway: alone | beside a download "
        "| Simulated without: alone | beside a download | Simulated gateway: alone | beside a download |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for radio in RADIOS:
        found = [find(suimon, radio, gateway) for find in (of_kernel, of_simulator) for gateway in (False, True)]
        cells = " | ".join(f"{alone:.2f} s | {beside:.2f} s" for alone, beside in found)
        lines.append(f"| {radio.rate}, {radio.rtt_ms} ms | {cells} |")
        print(lines[-1], flush=True)
    return lines

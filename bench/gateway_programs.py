"""Real programs through a gateway between two devices: what they get, and from whom, is as without. Needs root."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway_speed import CLIENT, SERVER, answers, inside, listens, row, running
from measure import ROOT, WORK, BenchError, run

FOLDER = WORK / "gateway-programs"
PAGES, MAIL, LARGE = FOLDER / "pages", FOLDER / "mail", FOLDER / "pages" / "large"
LARGE_BYTES = 1_000_000_000
IMAGES = 40
CONTROL = FOLDER / "gateway.sock"

PAGE = """<!doctype html><title>page</title><p id="said">none</p>
<script>addEventListener("load", () => document.getElementById("said").textContent =
  [...document.images].filter(image => image.naturalWidth > 0).length + " images")</script>
"""
# A server of mail speaks first. It keeps who came, and the last message.
MAIL_SERVER = """
import socketserver, sys
class Session(socketserver.StreamRequestHandler):
    def handle(self):
        say = lambda text: self.wfile.write(text + b"\\r\\n")
        say(b"220 mail is here")
        for line in self.rfile:
            word = line[:4].upper()
            if word == b"DATA":
                say(b"354 go on")
                message = b"".join(iter(self.rfile.readline, b".\\r\\n"))
                open(sys.argv[1], "wb").write(self.client_address[0].encode() + b"\\n" + message)
            say(b"221 bye" if word == b"QUIT" else b"250 fine")
            if word == b"QUIT":
                return
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
Server(("", 25), Session).serve_forever()
"""


@dataclass(frozen=True)
class Program:
    """A program, what it needs installed, the service that it asks, and what it gets: the same each time."""

    name: str
    needs: list[str]
    service: list[str]
    port: int
    gets: Callable[[], str]


def of_client(command: list[str]) -> str:
    return run(inside("c", command), command[0])


def make_pages() -> None:
    PAGES.mkdir(parents=True, exist_ok=True)
    images = "".join(f'<img src="{nth}.svg">' for nth in range(IMAGES))
    (PAGES / "index.html").write_text(PAGE + images)
    for nth in range(IMAGES):
        circles = "".join(f'<circle cx="{nth + x}" cy="{x}" r="3"/>' for x in range(500))
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100">{circles}</svg>'
        (PAGES / f"{nth}.svg").write_text(svg)
    if not LARGE.exists() or LARGE.stat().st_size != LARGE_BYTES:
        block = hashlib.sha256(b"block").digest() * 31_250
        LARGE.write_bytes(b"")
        with LARGE.open("ab") as file:
            for nth in range(LARGE_BYTES // len(block)):
                file.write(nth.to_bytes(8, "big") + block[8:])


def page() -> str:
    folder = FOLDER / "browser"
    shutil.rmtree(folder, ignore_errors=True)
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "--dump-dom"]
    browser = next(name for name in BROWSERS if shutil.which(name))
    dom = of_client([browser, *options, f"http://{SERVER}:8000/index.html"])
    if f"{IMAGES} images" not in dom:
        raise BenchError(f"the page came without its images: {dom[:200]}")
    return dom


BROWSERS = ["chromium", "chromium-browser", "google-chrome"]


def large() -> str:
    return of_client(["sh", "-c", f"curl -sS http://{SERVER}:8000/large | sha256sum"])


def clone() -> str:
    folder = FOLDER / "clone"
    shutil.rmtree(folder, ignore_errors=True)
    of_client(["git", "clone", "-q", f"git://{SERVER}/project", str(folder)])
    return run(["git", "-C", str(folder), "rev-parse", "HEAD"], "git") + run(["git", "-C", str(folder), "fsck"], "git")


def shell() -> str:
    options = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]
    login = ["ssh", "-i", str(FOLDER / "key"), *options, f"root@{SERVER}"]
    # Both directions at once, and the addresses that the server sees.
    command = "sha256sum; echo ${SSH_CONNECTION% * * *}"
    return of_client(["sh", "-c", f"head -c 20000000 {LARGE} | {' '.join(login)} '{command}'"])


def mail() -> str:
    message = FOLDER / "message"
    message.write_text("Subject: hello\r\n\r\nBody.\r\n")
    MAIL.unlink(missing_ok=True)
    of_client(
        ["curl", "-sS", f"smtp://{SERVER}", "--mail-from", "a@b", "--mail-rcpt", "c@d", "--upload-file", str(message)]
    )
    return MAIL.read_text()


def sshd() -> list[str]:
    """The command of a server of ssh with keys of its own."""
    if not shutil.which("sshd"):
        return ["sshd"]
    for name in ("key", "host"):
        if not (FOLDER / name).exists():
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(FOLDER / name)], "ssh-keygen")
    Path("/run/sshd").mkdir(exist_ok=True)
    options = ["PidFile=none", "UsePAM=no", "StrictModes=no", f"AuthorizedKeysFile={FOLDER / 'key.pub'}"]
    words = [word for option in options for word in ("-o", option)]
    return [shutil.which("sshd") or "sshd", "-D", "-e", "-f", "/dev/null", "-h", str(FOLDER / "host"), *words]


def programs() -> list[Program]:
    pages = [sys.executable, "-u", "-m", "http.server", "8000", "--directory", str(PAGES)]
    repository = ["git", "daemon", "--export-all", f"--base-path={FOLDER}", "--reuseaddr"]
    browser = next((name for name in BROWSERS if shutil.which(name)), BROWSERS[0])
    mails = [sys.executable, "-c", MAIL_SERVER, str(MAIL)]
    return [
        Program(f"{browser}: a page with {IMAGES} images", [browser], pages, 8000, page),
        Program("curl: 1 GB by HTTP", ["curl"], pages, 8000, large),
        Program("git clone of this project", ["git"], repository, 9418, clone),
        Program("ssh: 20 MB to a command", ["ssh", "sshd"], sshd(), 22, shell),
        Program("a message by SMTP, where the server speaks first", ["curl"], mails, 25, mail),
    ]


@contextmanager
def split(suimon: Path) -> Iterator[Callable[[], int]]:
    """A gateway between the devices; how many connections it has split."""
    command = [str(suimon), "gateway", "--lan", "bench-s", "--radio", "bench-c", "--control", str(CONTROL)]

    def count() -> int:
        status = [str(suimon), "gateway", "status", "--json", "--control", str(CONTROL)]
        return int(json.loads(run(status, "gateway status"))["split"])

    with running("g", command, lambda: answers(suimon, CONTROL)):
        yield count


def table(suimon: Path) -> list[str]:
    """What each program got with a gateway, beside what it got without."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    make_pages()
    shutil.rmtree(FOLDER / "project", ignore_errors=True)
    run(["git", "clone", "-q", "--bare", str(ROOT), str(FOLDER / "project")], "git clone")
    lines = ["| Program | With a gateway it got | Connections split |", "| --- | --- | --- |"]
    with row():
        for program in programs():
            if missing := [name for name in program.needs if not shutil.which(name)]:
                print(f"gateway: {program.name} is left out, since {missing[0]} is not installed", file=sys.stderr)
                continue
            with ExitStack() as stack:
                stack.enter_context(running("s", program.service, listens("s", program.port)))
                without = program.gets()
                count = stack.enter_context(split(suimon))
                through = program.gets()
                same = "the same" if through == without else "**something else**"
                seen = ", from the client's address" if CLIENT in through else ""
                lines.append(f"| {program.name} | {same}{seen} | {count()} |")
                print(lines[-1], flush=True)
    return lines

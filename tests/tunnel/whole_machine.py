"""All traffic of a machine through a tunnel over two links: pages in Chromium, a call and a download at once, while a link fails.

    sudo python3 tests/tunnel/whole_machine.py --binary target/release/ropewalk

`ropewalk emulate` makes the client's two links of scenarios/tunnel-call.toml (50 Mbit/s, 20 ms; 10 Mbit/s, 100 ms) between two network
namespaces. The ends pair by a code. The far end is the hub, and a web server behind it at 203.0.113.80. The first link is pulled and
put back. At last the tunnel ends, is killed once with SIGKILL, and the client must be as it was before.
"""

import argparse
import http.server
import json
import os
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve()
SCENARIO = HERE.parent.parent.parent / "scenarios" / "tunnel-call.toml"
SERVER, WEB_PORT, CALL_PORT = "203.0.113.80", 8080, 8081
HUB_IN_TUNNEL = "10.88.0.1"
IMAGES, IMAGE_BYTES, PAGES = 20, 50_000, 3
CALL_INTERVAL_S = 0.02
CALL_PAYLOAD = 160
PATIENCE_S = 60.0


def wait_for(what: str, found: Callable[[], object], patience: float = PATIENCE_S) -> object:
    """Polls until `found` returns something true, and returns it."""
    end = time.monotonic() + patience
    while not (value := found()):
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not within {patience:g} s")
        time.sleep(0.05)
    return value


def step(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---- The far end: hub and web server.


class Pages(http.server.BaseHTTPRequestHandler):
    """A page of images that says when all of them are there, and a download without end."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path.startswith("/download"):
            self.download()
        elif self.path.startswith("/image"):
            self.answer("image/svg+xml", b"<svg xmlns='http://www.w3.org/2000/svg'/>".ljust(IMAGE_BYTES))
        else:
            sources = "".join(f"<img src='/image{n}{self.path.replace('/', '-')}'>" for n in range(IMAGES))
            script = "onload=()=>document.body.append(`${[...document.images].filter(i=>i.complete).length} images`)"
            self.answer("text/html", f"<body>{sources}<script>{script}</script></body>".encode())

    def answer(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def download(self) -> None:
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        piece = bytes(1 << 16)
        try:
            while True:
                self.wfile.write(piece)
        except OSError:
            pass

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


def listen_to_call(room: Path) -> None:
    """Writes the delay of each packet of the call, in milliseconds, by number. Both ends have one clock."""
    ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ear.bind((SERVER, CALL_PORT))
    with (room / "call").open("w", encoding="utf-8", buffering=1) as out:
        while True:
            packet = ear.recv(2048)
            number, sent = struct.unpack_from("!IQ", packet)
            out.write(f"{number} {(time.monotonic_ns() - sent) / 1e6:.3f}\n")


def far(room: Path, binary: str) -> None:
    subprocess.run(["ip", "address", "add", f"{SERVER}/32", "dev", "lo"], check=True)
    with (room / "code").open("w", encoding="utf-8") as out:
        subprocess.run([binary, "pair", "--name", "hub", "--as", "client"], check=True, stdout=out, stderr=out)
    threading.Thread(target=listen_to_call, args=(room,), daemon=True).start()
    state = ["--run-directory", str(room / "far"), "--state-directory", str(room / "far")]
    hub = [binary, "tunnel", "serve", "--allow", "client", *state]
    with (room / "hub.log").open("w", encoding="utf-8") as log, subprocess.Popen(hub, stderr=log) as serving:
        signal.signal(signal.SIGTERM, lambda *_: serving.send_signal(signal.SIGINT) or sys.exit(0))
        http.server.ThreadingHTTPServer((SERVER, WEB_PORT), Pages).serve_forever()


# ---- The near end: the client.


def machine_state() -> dict[str, str]:
    """What a tunnel may change on a machine: interfaces, routes, rules, and the packet filter."""
    commands = {
        "interfaces": "ip -o link show",
        "routes": "ip -o route show table all",
        "routes of IPv6": "ip -6 -o route show table all",
        "rules": "ip -o rule show",
        "filter": "nft list ruleset",
    }
    found = {}
    for name, line in commands.items():
        if shutil.which(line.split()[0]):
            text = subprocess.run(line.split(), capture_output=True, text=True, check=True).stdout
            # Lifetimes pass, and an interface that was down and up again keeps its place but not its queue's state.
            found[name] = "\n".join(sorted(one.split(" expires ")[0].split(" state ")[0] for one in text.splitlines()))
    return found


class Call(threading.Thread):
    """Sends 50 packets per second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.sent_at: list[float] = []
        self.over = threading.Event()

    def run(self) -> None:
        mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # Expedited forwarding, as telephones mark their packets.
        mouth.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 46 << 2)
        due = time.monotonic()
        while not self.over.is_set():
            head = struct.pack("!IQ", len(self.sent_at), time.monotonic_ns())
            self.sent_at.append(time.monotonic())
            try:
                mouth.sendto(head.ljust(CALL_PAYLOAD, b"\0"), (SERVER, CALL_PORT))
            except OSError:
                pass
            due += CALL_INTERVAL_S
            time.sleep(max(0.0, due - time.monotonic()))


class Download(threading.Thread):
    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.bytes, self.over = 0, threading.Event()
        self.longest_pause_s = 0.0

    def run(self) -> None:
        with urllib.request.urlopen(f"http://{SERVER}:{WEB_PORT}/download", timeout=PATIENCE_S) as answer:
            last = time.monotonic()
            while not self.over.is_set() and (piece := answer.read1(1 << 16)):
                self.bytes += len(piece)
                last, before = time.monotonic(), last
                self.longest_pause_s = max(self.longest_pause_s, last - before)


def load_page(number: int) -> float:
    """Loads a page of images in Chromium, and returns the seconds that it took."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    begun = time.monotonic()
    if browser is None:
        page = urllib.request.urlopen(f"http://{SERVER}:{WEB_PORT}/{number}", timeout=PATIENCE_S).read().decode()
        for image in range(page.count("<img")):
            urllib.request.urlopen(f"http://{SERVER}:{WEB_PORT}/image{image}", timeout=PATIENCE_S).read()
        return time.monotonic() - begun
    with tempfile.TemporaryDirectory() as profile:
        words = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--dump-dom"]
        words += ["--timeout=30000", f"http://{SERVER}:{WEB_PORT}/{number}"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    if f"{IMAGES} images" not in done.stdout:
        raise SystemExit(f"page {number} is not whole: {done.stdout[-300:]}\n{done.stderr[-2000:]}")
    return time.monotonic() - begun


def is_reachable() -> bool:
    return subprocess.run(["ping", "-c", "1", "-W", "1", HUB_IN_TUNNEL], capture_output=True, check=False).returncode == 0


class Near:
    """The client's side of the demonstration."""

    def __init__(self, room: Path, binary: str) -> None:
        self.room, self.binary = room, binary
        self.results: dict[str, object] = {}

    def pair(self) -> None:
        code = room_code(self.room)
        line = [self.binary, "pair", "--to", os.environ["ROPEWALK_REMOTE_1"], "--name", "client", "--as", "hub"]
        subprocess.run(line, check=True, input=code, text=True, stdout=subprocess.DEVNULL)
        step("paired by a code")

    def up(self) -> subprocess.Popen:
        """Starts the tunnel, and waits until the hub answers through it."""
        files = ["--run-directory", str(self.room / "near"), "--dns-file", str(self.room / "resolv.conf")]
        line = [self.binary, "tunnel", "up", "--peer", "hub", "--no-dns", *files]
        with (self.room / "client.log").open("a", encoding="utf-8") as log:
            tunnel = subprocess.Popen(line, stderr=log)
        begun = time.monotonic()
        wait_for("the hub", lambda: tunnel.poll() is not None or is_reachable())
        if tunnel.poll() is not None:
            raise SystemExit((self.room / "client.log").read_text(encoding="utf-8"))
        self.results.setdefault("up_after_s", round(time.monotonic() - begun, 2))
        return tunnel

    def pull_link(self) -> None:
        """Pulls the first link for five seconds."""
        device = os.environ["ROPEWALK_DEVICE_1"]
        subprocess.run(["ip", "link", "set", device, "carrier", "off"], check=True)
        step(f"{device} is pulled")
        time.sleep(5)
        subprocess.run(["ip", "link", "set", device, "carrier", "on"], check=True)
        step(f"{device} is put back")

    def use(self) -> None:
        """Pages, a call and a download at once, before, while and after the first link is pulled."""
        call, download = Call(), Download()
        call.start()
        download.start()
        pages = [load_page(number) for number in range(PAGES)]
        pulled = threading.Thread(target=self.pull_link)
        pulled.start()
        pages.append(load_page(PAGES))
        pulled.join()
        time.sleep(3)
        pages.append(load_page(PAGES + 1))
        call.over.set()
        download.over.set()
        time.sleep(1)
        # After a kill, the last line may be cut off.
        lines = [line.split() for line in (self.room / "call").read_text(encoding="utf-8").splitlines()]
        delays = sorted(float(line[1]) for line in lines if len(line) == 2)
        arrived = {int(line[0]) for line in lines if len(line) == 2}
        gaps, last = 0, 0
        for number in range(len(call.sent_at)):
            last = 0 if number in arrived else last + 1
            gaps = max(gaps, last)
        self.results |= {
            "pages_s": [round(one, 2) for one in pages],
            "download_mbit_s": round(download.bytes * 8 / len(call.sent_at) / CALL_INTERVAL_S / 1e6, 2),
            "download_longest_pause_s": round(download.longest_pause_s, 2),
            "call_packets": len(call.sent_at),
            "call_lost": len(call.sent_at) - len(arrived),
            "call_longest_gap_s": round(gaps * CALL_INTERVAL_S, 2),
            "call_delay_ms": {"p50": statistics.median(delays), "p99": delays[int(len(delays) * 0.99)]},
        }

    def run(self) -> None:
        before = machine_state()
        self.pair()
        tunnel = self.up()
        step(f"the tunnel is up after {self.results['up_after_s']} s")
        self.use()
        tunnel.send_signal(signal.SIGINT)
        tunnel.wait(timeout=10)
        check_same(before, "after the tunnel has ended")
        killed = self.up()
        killed.kill()
        killed.wait()
        tunnel = self.up()
        tunnel.send_signal(signal.SIGINT)
        tunnel.wait(timeout=10)
        check_same(before, "after it was killed, and started again")
        step("the client is as it was before")
        (self.room / "results.json").write_text(json.dumps(self.results), encoding="utf-8")


def room_code(room: Path) -> str:
    def found() -> str | None:
        file = room / "code"
        shown = re.search(r"the code is ([^;\s]+);", file.read_text(encoding="utf-8")) if file.exists() else None
        return shown.group(1) if shown else None

    return str(wait_for("the code", found))


def check_same(before: dict[str, str], when: str) -> None:
    after = machine_state()
    for name, text in before.items():
        if after[name] != text:
            raise SystemExit(f"{name} differ {when}.\nBefore:\n{text}\nAfter:\n{after[name]}")


def whole(binary: Path) -> dict:
    """Runs everything; the results."""
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        python = f"{sys.executable} {HERE} --binary {binary.resolve()} --room {room}"
        words = [binary, "emulate", SCENARIO, "--quiet", "--far", f"{python} --side far", "--", "sh", "-c", f"exec {python} --side near"]
        subprocess.run(words, check=True, timeout=300)
        return json.loads((room / "results.json").read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--side", choices=("near", "far"), help=argparse.SUPPRESS)
    parser.add_argument("--room", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        # Keys and peers of this side.
        os.environ["XDG_CONFIG_HOME"] = str(arguments.room / f"config-{arguments.side}")
    if arguments.side == "far":
        far(arguments.room, str(arguments.binary))
    elif arguments.side == "near":
        Near(arguments.room, str(arguments.binary)).run()
    elif os.geteuid() != 0:
        parser.error("network namespaces need root: run it with sudo")
    else:
        print(json.dumps(whole(arguments.binary), indent=2))


if __name__ == "__main__":
    main()

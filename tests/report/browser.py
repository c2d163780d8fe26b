"""Drives Chromium over its debugging pipe: no driver, no port, no package beyond the standard library."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe",
]
PATIENCE_S = 60


def find() -> str | None:
    """The browser's executable: ``$CHROMIUM``, or the system's name for it."""
    names = [os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"]
    return next((path for path in map(shutil.which, filter(None, names)) if path), None)


class Browser:
    """One browser with one page. Use it as a context manager."""

    def __init__(self, executable: str) -> None:
        self.profile = tempfile.TemporaryDirectory(prefix="ropewalk-chromium-", ignore_cleanup_errors=True)
        to_read, self.writer = os.pipe()
        self.reader, to_write = os.pipe()
        # The browser reads commands from descriptor 3 and answers on 4; the shell puts ours there.
        script = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'
        command = ["bash", "-c", script, executable, *FLAGS, f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.count = 0
        self.events: list[dict] = []
        target = self.call("Target.createTarget", url="about:blank", session=None)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True, session=None)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.writer)
        os.close(self.reader)
        self.profile.cleanup()

    def _receive(self) -> dict:
        deadline = time.monotonic() + PATIENCE_S
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.reader], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(self.reader, 1 << 20) if ready else b""
            if not piece:
                raise RuntimeError("the browser " + ("closed the pipe" if ready else f"said nothing for {PATIENCE_S} s"))
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method: str, session: str | None = "", **params: object) -> dict:
        """Sends one command and waits for its answer; events that arrive meanwhile are kept."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def evaluate(self, expression: str) -> object:
        """The value of a JavaScript expression (promises are awaited) in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def open(self, file: Path, width: int, height: int, scheme: str) -> None:
        """Loads a file in a window of the given size (390 is a phone) with light or dark system colours."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url="about:blank")
        self.events.clear()
        self.call("Page.navigate", url=file.resolve().as_uri())
        deadline = time.monotonic() + PATIENCE_S
        while not self.evaluate("document.readyState === 'complete' && Boolean(document.getElementById('title'))"):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{file} did not load")
            time.sleep(0.05)
        # Two frames: the observers have seen the layout and every canvas is painted.
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Presses the mouse at one point, moves and lets go at another."""
        half = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        steps = [("mouseMoved", start, "none"), ("mousePressed", start, "left"), ("mouseMoved", half, "left"),
                 ("mouseMoved", end, "left"), ("mouseReleased", end, "left")]
        for kind, (x, y), button in steps:
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=0 if kind == "mouseMoved" else 1)

    def problems(self) -> list[str]:
        """What the console reported: errors, exceptions, refused resources."""
        found = []
        for event in self.events:
            method, params = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"].get("text")))
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
                found.append(str(params["args"]))
            elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(params["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Every address that the page asked for."""
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]

    def screenshot(self, file: Path) -> None:
        """The whole page as a PNG."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        file.write_bytes(base64.b64decode(data))

    def pdf(self, file: Path) -> None:
        """The page as it prints."""
        data = self.call("Page.printToPDF", preferCSSPageSize=True, paperWidth=8.27, paperHeight=11.69)["data"]
        file.write_bytes(base64.b64decode(data))

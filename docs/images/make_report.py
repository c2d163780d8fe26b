#!/usr/bin/env python3
"""Makes report.png, the picture in README.md: the top of a report, as Chromium shows it.

    python3 docs/images/make_report.py target/release/ropewalk
"""

import base64
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "report"))
sys.dont_write_bytecode = True

import browser  # noqa: E402

WIDTH, HEIGHT = 1100, 1245


def main():
    """Runs the comparison, opens its report, keeps the top of the page."""
    executable = browser.find()
    if executable is None or len(sys.argv) != 2:
        sys.exit("usage: make_report.py path/to/ropewalk   (needs chromium)")
    command = [str(Path(sys.argv[1]).resolve()), "compare", "scenarios/kuhn-2-200-45.toml",
               "--schedulers", "round-robin,min-rtt,daps", "--report"]  # fmt: skip
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "kuhn.html"
        (Path(directory) / "scenarios").symlink_to(ROOT / "scenarios")
        subprocess.run([*command, report.name], cwd=directory, check=True, stdout=subprocess.DEVNULL)
        with browser.Browser(executable) as page:
            page.open(report, WIDTH, 900, "light")
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}
            shot = page.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
    file = ROOT / "docs" / "images" / "report.png"
    file.write_bytes(base64.b64decode(shot["data"]))
    print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()

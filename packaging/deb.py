"""The Debian package, by dpkg-deb."""

import hashlib
import os
import subprocess
from pathlib import Path

from common import PACKAGING, Architecture, epoch, put, version
from contents import Contents, deb_tree


def build(out: Path, scratch: Path, architecture: Architecture, from_: Contents, fast: bool) -> Path:
    """Writes ropewalk_VERSION_ARCHITECTURE.deb."""
    tree = scratch / "deb"
    deb_tree(tree, from_)
    files = sorted(path for path in tree.rglob("*") if path.is_file())
    # Installed-Size is in KiB.
    size = sum(-(-path.stat().st_size // 1024) for path in files)
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(tree)}\n" for path in files]
    control = (PACKAGING / "debian" / "control").read_text()
    control = control.replace("@VERSION@", version()).replace("@SIZE@", str(size))
    control = control.replace("@ARCHITECTURE@", architecture.debian)
    put(tree / "DEBIAN" / "control", control)
    put(tree / "DEBIAN" / "md5sums", "".join(sums))
    for script in ("postinst", "prerm", "postrm"):
        put(tree / "DEBIAN" / script, (PACKAGING / "debian" / script).read_bytes(), 0o755)
    tree.chmod(0o755)
    target = out / f"ropewalk_{version()}_{architecture.debian}.deb"
    compression = ["-Zgzip", "-z1"] if fast else ["-Zxz", "-z9"]
    command = ["dpkg-deb", "--root-owner-group", *compression, "--build", tree, target]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch())}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return target

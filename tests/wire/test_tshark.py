"""Wireshark's dissector reads the packets of the engine without complaint."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

TSHARK = shutil.which("tshark")
pytestmark = pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")

# Packets without a layer below SCTP.
LINKTYPE_SCTP = 248
FIELDS = ["sctp.checksum.status", "sctp.chunk_type", "_ws.malformed", "_ws.expert.message"]
GOOD = "1"

# Remarks on behaviour that is permitted.
HARMLESS = {
    "",
    "Retransmitted TSN",
    "More than 100 TSNs were gap-acknowledged in this SACK.",
}

TYPES = {
    "DATA": "0",
    "INIT": "1",
    "INIT_ACK": "2",
    "SACK": "3",
    "HEARTBEAT": "4",
    "HEARTBEAT_ACK": "5",
    "ABORT": "6",
    "SHUTDOWN": "7",
    "SHUTDOWN_ACK": "8",
    "COOKIE_ECHO": "10",
    "COOKIE_ACK": "11",
    "ECNE": "12",
    "CWR": "13",
    "SHUTDOWN_COMPLETE": "14",
    "AUTH": "15",
    "NR_SACK": "16",
    "I_DATA": "64",
    "ASCONF_ACK": "128",
    "RE_CONFIG": "130",
    "PAD": "132",
    "FORWARD_TSN": "192",
    "ASCONF": "193",
    "I_FORWARD_TSN": "194",
    "UNKNOWN": "215",
    "delay": "177,176,0",
}


def dissect(packets: list[bytes], capture: Path) -> list[list[str]]:
    header = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, LINKTYPE_SCTP)
    records = [
        struct.pack("<IIII", number, 0, len(packet), len(packet)) + packet
        for number, packet in enumerate(packets)
    ]
    capture.write_bytes(header + b"".join(records))
    fields = [word for field in FIELDS for word in ("-e", field)]
    command = [str(TSHARK), "-r", str(capture), "-o", "sctp.checksum:CRC 32c", "-T", "fields", *fields]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(packets)
    return [line.split("\t") for line in lines]


def test_every_packet_is_sound_and_its_checksum_good(
    emitted: list[tuple[str, bytes]], tmp_path: Path
) -> None:
    rows = dissect([packet for _, packet in emitted], tmp_path / "emitted.pcap")
    for (what, packet), (checksum, types, malformed, remark) in zip(emitted, rows, strict=True):
        told = f"{what}: {packet.hex()}"
        assert checksum == GOOD, told
        assert malformed == "", f"{told}: {remark}"
        assert remark in HARMLESS, told
        if what == "ERROR":
            # It also parses the chunk that an ERROR quotes.
            assert types.split(",")[0] == "9", told
        elif what != "association":
            assert types == TYPES[what], told


def test_the_dissector_would_notice(emitted: list[tuple[str, bytes]], tmp_path: Path) -> None:
    _, packet = next(row for row in emitted if row[0] == "INIT")
    wrong_sum = bytes([*packet[:8], packet[8] ^ 1, *packet[9:]])
    cut = packet[:-4]
    (status, *_), (other, _, malformed, _) = dissect([wrong_sum, cut], tmp_path / "bad.pcap")
    assert status != GOOD
    assert other != GOOD
    assert malformed != ""

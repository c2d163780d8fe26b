"""The engine's codec compared with scapy's, an independent one: in both directions, byte by byte."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest
from scapy.layers import sctp
from scapy.packet import NoPayload, Packet, Padding

Understood = Callable[[list[bytes]], list[tuple[bytes | None, str]]]


# Chunks that end with a parameter, whose padding scapy counts in the length: permitted but not required.
OF_PARAMETERS = (
    sctp.SCTPChunkInit,
    sctp.SCTPChunkInitAck,
    sctp.SCTPChunkHeartbeatReq,
    sctp.SCTPChunkHeartbeatAck,
)


# scapy takes the streams in these for parameters.
MISREAD = {"FORWARD_TSN", "I_FORWARD_TSN"}


def sealed(packet: bytes) -> bytes:
    """The packet with the checksum that scapy computes."""
    blank = packet[:8] + bytes(4) + packet[12:]
    return packet[:8] + sctp.crc32c(blank).to_bytes(4, "big") + packet[12:]


def forget(part: Packet) -> None:
    """Clears the bytes that scapy has read, and all lengths, so that it must compute them again."""
    while not isinstance(part, NoPayload):
        part.raw_packet_cache = None
        if not (isinstance(part, OF_PARAMETERS) and part.len % 4):
            part.fields.pop("len", None)
        if isinstance(part.payload, Padding):
            part.remove_payload()
        for value in part.fields.values():
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, Packet):
                    forget(inner)
        part = part.payload


def rebuilt(packet: bytes) -> bytes:
    """The packet as scapy encodes it after decoding."""
    parts = sctp.SCTP(packet)
    forget(parts)
    again = bytes(parts)
    return sealed(again + bytes(-len(again) % 4))


def test_scapy_takes_every_packet_apart_and_puts_it_together_again(
    emitted: list[tuple[str, bytes]],
) -> None:
    for what, packet in emitted:
        if what not in MISREAD:
            assert rebuilt(packet) == packet, f"{what}: {packet.hex()}"


CLASSES = {
    "DATA": sctp.SCTPChunkData,
    "INIT": sctp.SCTPChunkInit,
    "INIT_ACK": sctp.SCTPChunkInitAck,
    "SACK": sctp.SCTPChunkSACK,
    "HEARTBEAT": sctp.SCTPChunkHeartbeatReq,
    "HEARTBEAT_ACK": sctp.SCTPChunkHeartbeatAck,
    "ABORT": sctp.SCTPChunkAbort,
    "SHUTDOWN": sctp.SCTPChunkShutdown,
    "SHUTDOWN_ACK": sctp.SCTPChunkShutdownAck,
    "ERROR": sctp.SCTPChunkError,
    "COOKIE_ECHO": sctp.SCTPChunkCookieEcho,
    "COOKIE_ACK": sctp.SCTPChunkCookieAck,
    "SHUTDOWN_COMPLETE": sctp.SCTPChunkShutdownComplete,
    "AUTH": sctp.SCTPChunkAuthentication,
    "ASCONF": sctp.SCTPChunkAddressConf,
    "ASCONF_ACK": sctp.SCTPChunkAddressConfAck,
}


def test_scapy_sees_the_chunks_that_were_meant(emitted: list[tuple[str, bytes]]) -> None:
    seen = set()
    for what, packet in emitted:
        if what in CLASSES:
            parts = sctp.SCTP(packet)
            assert (parts.sport, parts.dport, parts.tag) == (5001, 9899, 0x01020304)
            assert isinstance(parts.payload, CLASSES[what]), what
            assert isinstance(parts.payload.payload, Padding) or not parts.payload.payload, what
            seen.add(what)
    assert seen == set(CLASSES)


def test_scapy_reads_the_same_numbers(emitted: list[tuple[str, bytes]]) -> None:
    first = {}
    for what, packet in emitted:
        first.setdefault(what, sctp.SCTP(packet).payload)
    data = first["DATA"]
    assert (data.tsn, data.stream_id, data.stream_seq) == (0xFFFFFFFE, 5, 65535)
    assert (data.beginning, data.ending, data.unordered, data.delay_sack) == (1, 1, 0, 0)
    assert data.proto_id == 0x0A0B0C0D
    assert bytes(data.data) == b"hello"
    init = first["INIT"]
    assert (init.init_tag, init.a_rwnd, init.init_tsn) == (0xDEADBEEF, 1 << 20, 0xFFFFFFFF)
    assert (init.n_out_streams, init.n_in_streams) == (10, 65535)
    addresses = [one.addr for one in init.params if hasattr(one, "addr")]
    assert addresses == ["192.0.2.1", "2001:db8::1", "198.51.100.7"]
    assert first["COOKIE_ECHO"].cookie == b"\xc0" * 90
    assert first["SHUTDOWN"].cumul_tsn_ack == 0x80000000
    assert first["SACK"].a_rwnd == 4321


def from_scapy() -> list[tuple[str, Packet]]:
    """Packets that scapy builds, and text that the engine's reading of them must contain."""
    address = sctp.SCTPChunkParamIPv4Addr(addr="192.0.2.9")
    address6 = sctp.SCTPChunkParamIPv6Addr(addr="2001:db8::9")
    init = {"init_tag": 7, "a_rwnd": 5000, "n_out_streams": 3, "n_in_streams": 4, "init_tsn": 9}
    cookie = sctp.SCTPChunkParamStateCookie(cookie=b"c" * 36)
    extensions = sctp.SCTPChunkParamSupportedExtensions(supported_extensions=[0x82, 0xB0, 0xB1, 0xC0])
    preservative = sctp.SCTPChunkParamCookiePreservative(sug_cookie_inc=777)
    adaptation = sctp.SCTPChunkParamAdaptationLayer(indication=5)
    info = sctp.SCTPChunkParamHeartbeatInfo(data=b"whatever")
    return [
        ("stream: StreamId(8)", sctp.SCTPChunkData(tsn=3, stream_id=8, stream_seq=1, data=b"x" * 7)),
        ("cumulative: Serial32(17)", sctp.SCTPChunkSACK(cumul_tsn_ack=17, a_rwnd=8)),
        (
            f"words: [{18 << 16 | 19}, {20 << 16 | 31}]",
            sctp.SCTPChunkSACK(
                cumul_tsn_ack=16,
                n_gap_ack=2,
                n_dup_tsn=1,
                gap_ack_list=["2:3", "4:15"],
                dup_tsn_list=[5],
            ),
        ),
        ("192.0.2.9, 2001:db8::9", sctp.SCTPChunkInit(**init, params=[address, address6])),
        ("preserve_millis: 777", sctp.SCTPChunkInit(**init, params=[preservative])),
        ("extensions: Extensions(928)", sctp.SCTPChunkInit(**init, params=[extensions])),
        ("adaptation: Some(5)", sctp.SCTPChunkInit(**init, params=[adaptation])),
        ('b"' + "c" * 36, sctp.SCTPChunkInitAck(**init, params=[cookie])),
        ("Heartbeat(b\"whatever\")", sctp.SCTPChunkHeartbeatReq(params=[info])),
        ("HeartbeatAck(b\"whatever\")", sctp.SCTPChunkHeartbeatAck(params=[info])),
        ("reflected: true", sctp.SCTPChunkAbort(TCB=1)),
        ("Shutdown(Serial32(5))", sctp.SCTPChunkShutdown(cumul_tsn_ack=5)),
        ("ShutdownAck", sctp.SCTPChunkShutdownAck()),
        ("ShutdownComplete { reflected: true }", sctp.SCTPChunkShutdownComplete(TCB=1)),
        ("CookieEcho(b\"abcde\")", sctp.SCTPChunkCookieEcho(cookie=b"abcde")),
        ("CookieAck", sctp.SCTPChunkCookieAck()),
    ]


@pytest.mark.parametrize(("named", "chunk"), from_scapy())
def test_the_engine_reads_what_scapy_writes_and_writes_it_again(
    named: str, chunk: Packet, understood: Understood
) -> None:
    packet = bytes(sctp.SCTP(sport=1234, dport=9899, tag=99) / chunk)
    # scapy leaves the padding of the last chunk out.
    packet = sealed(packet + bytes(-len(packet) % 4))
    ((again, text),) = understood([packet])
    assert again == packet, text
    assert named in text


def test_a_packet_with_another_checksum_is_none(understood: Understood) -> None:
    packet = bytes(sctp.SCTP(sport=1234, dport=9899, tag=99) / sctp.SCTPChunkCookieAck())
    blank = packet[:8] + bytes(4) + packet[12:]
    adler = packet[:8] + zlib.adler32(blank).to_bytes(4, "big") + packet[12:]
    (again, text), (good, _) = understood([adler, packet])
    assert again is None
    assert "checksum" in text
    assert good == packet

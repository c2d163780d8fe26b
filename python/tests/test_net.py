"""Sockets over loopback addresses: unencrypted and sealed, errors, threads."""

from __future__ import annotations

import asyncio
import doctest
import os
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from net_pair import LOOPBACK, pair

import ropewalk as rw
from ropewalk import net
from ropewalk.net import aio


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("paths", [1, 2])
def test_messages_cross_both_ways_with_stream_and_ppid(plain: bool, paths: int) -> None:
    with pair(plain=plain, paths=paths) as (near, far):
        near.send(b"there", stream=3, ppid=7)
        far.send(bytearray(b"and back"))
        there, back = far.receive(timeout=10), near.receive(timeout=10)
        assert there is not None and back is not None
        assert (there.data, there.stream, there.ppid, there.part) == (b"there", 3, 7, "whole")
        assert (back.data, back.stream, back.ppid) == (b"and back", 0, 0)
        assert (there.ssn, back.ssn) == (0, 0) and there.tsn != back.tsn
        assert repr(there) == "<Message of 5 bytes, stream 3, ppid 7, whole>"


@pytest.mark.parametrize("plain", [False, True])
def test_two_paths_carry_data_and_say_so(plain: bool) -> None:
    blocks = [bytes([i % 251]) * 1200 for i in range(4000)]
    with pair(plain=plain, paths=2, scheduler="round-robin") as (near, far):
        figures: list[net.Stats] = []

        def send() -> None:
            near.send_all(blocks)
            near.flush()
            figures.append(near.stats())
            near.shutdown()

        sender = threading.Thread(target=send)
        sender.start()
        received = [message.data for message in far]
        sender.join()
        assert received == blocks
        [stats] = figures
        assert len(stats.paths) == 2
        assert sum(path.delivered_bytes for path in stats.paths) == 1200 * len(blocks)
        for path in stats.paths:
            assert path.status == "active" and path.delivered_bytes > 0
            assert path.srtt_s is not None and 0 < path.srtt_s < 5
            assert path.remote is not None and path.remote.startswith("127.0.0.")


def test_what_is_longer_than_a_packet_or_the_receive_buffer_arrives() -> None:
    whole, vast = os.urandom(100_000), os.urandom(400_000)
    with pair(receive_buffer="128 KiB") as (near, far):
        assert len(whole) > near.message_size
        near.send(whole)
        message = far.receive(timeout=10)
        assert message is not None and message.data == whole
        near.send(memoryview(vast))
        parts = [far.receive(timeout=10)]
        while parts[-1] is not None and parts[-1].part != "last":
            parts.append(far.receive(timeout=10))
        assert [part.part for part in parts if part][0] == "first"
        assert b"".join(part.data for part in parts if part) == vast


def test_messages_without_order_all_arrive_beside_those_with_one() -> None:
    with pair(paths=2, receive_buffer=20_000) as (near, far):
        ordered = [f"ordered {i}".encode() * 100 for i in range(200)]
        loose = [f"loose {i}".encode() * 100 for i in range(200)]

        def send() -> None:
            for first, second in zip(ordered, loose, strict=True):
                near.send(first, stream=1)
                near.send(second, ppid=9, unordered=True, immediate=True)
            near.send_all(loose, unordered=True)

        sender = threading.Thread(target=send)
        sender.start()
        found = [far.receive(timeout=10) for _ in range(600)]
        sender.join()
        messages = [message for message in found if message is not None]
        assert [m.data for m in messages if m.stream == 1] == ordered
        assert sorted(m.data for m in messages if m.stream == 0) == sorted(loose * 2)
        assert sum(m.ppid == 9 for m in messages) == 200


def test_leaving_the_block_delivers_everything_and_ends_the_iteration() -> None:
    with net.listen(LOOPBACK) as listener:
        peer = listener.public_key
        got: list[bytes] = []

        def serve() -> None:
            with listener.accept(timeout=10) as far:
                got.extend(message.data for message in far)
                assert far.receive() is None and far.receive_all() == []

        server = threading.Thread(target=serve)
        server.start()
        with net.connect(listener.addresses, peer=peer) as near:
            for i in range(1000):
                near.send(i.to_bytes(2, "big"))
        server.join()
        assert got == [i.to_bytes(2, "big") for i in range(1000)]
        with pytest.raises(net.ClosedError):
            near.send(b"late")


def test_services_and_clients_of_one_host_are_told_apart_by_sctp_ports() -> None:
    with net.listen(LOOPBACK, plain=True, port=[5000, 5001]) as listener:
        for port, local_port in [(5000, 6000), (5001, 6000), (5000, None)]:
            near = net.connect(listener.addresses, plain=True, port=port, local_port=local_port)
            far = listener.accept(timeout=10)
            assert near.ports is not None and far.ports == near.ports[::-1]
            assert near.ports[1] == port and near.ports[0] == (local_port or near.ports[0])
            near.abort()
        with pytest.raises(net.ConnectError):
            net.connect(listener.addresses, plain=True)


def test_an_exception_in_the_block_aborts_and_the_peer_is_told() -> None:
    with net.listen(LOOPBACK, plain=True) as listener:
        with pytest.raises(KeyError), net.connect(listener.addresses, plain=True) as near:
            far = listener.accept(timeout=10)
            raise KeyError(near)
        with pytest.raises(net.ClosedError, match="the peer aborted it"):
            far.receive(timeout=10)


def test_keys_are_proved_and_only_those_allowed_get_in(tmp_path: Path) -> None:
    server, client = net.generate_key(tmp_path / "server.key"), net.generate_key()
    assert net.public_key(tmp_path / "server.key") == server.public == net.public_key(server)
    assert (tmp_path / "server.key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(net.OptionError, match="server.key"):
        net.generate_key(tmp_path / "server.key")
    with net.listen(LOOPBACK, key=tmp_path / "server.key", allow=[client.public]) as listener:
        assert listener.public_key == server.public
        near = net.connect(listener.addresses, peer=server.public, key=client)
        far = listener.accept(timeout=10)
        assert (near.peer, far.peer) == (server.public, client.public)
        for key, peer in [(net.generate_key(), server.public), (client, client.public)]:
            with pytest.raises(net.ConnectError, match="does not answer") as caught:
                net.connect(listener.addresses, peer=peer, key=key, timeout=1)
            assert "public key" in str(caught.value) and key.public in str(caught.value)
        near.abort()
    with pytest.raises(net.ClosedError, match="closed"):
        listener.accept()


@pytest.fixture
def paired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list of peers as `ropewalk pair` writes it, beside the user's default key."""
    settings = tmp_path / "settings" / "ropewalk"
    settings.mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    net.generate_key(settings / "identity.key")
    return settings / "peers.toml"


def entry(name: str, key: str, more: str = "") -> str:
    return f"[[peer]]\nname = {name!r}\nkey = {key!r}\n{more}\n"


def test_paired_peers_are_known_by_name(paired: Path) -> None:
    own = net.public_key(paired.with_name("identity.key"))
    server = net.generate_key()
    # The list of this machine is that of both ends here.
    paired.write_text(entry("laptop", own))
    with net.listen(LOOPBACK, key=server, allow="laptop") as listener:
        addresses = f"addresses = {listener.addresses}"
        paired.write_text(entry("laptop", own) + entry("server", server.public, addresses))
        # Without `to` and `key`: the stored addresses, and the key that was paired.
        near = net.connect(peer="server")
        far = listener.accept(timeout=10)
        assert (near.peer, far.peer) == (server.public, own)
        near.send(b"by name")
        assert next(iter(far)).data == b"by name"
        far.abort()

        async def again() -> str | None:
            async with await aio.connect(peer="server") as association:
                return association.peer

        assert asyncio.run(again()) == server.public
        # A key that is given is used, and another list may be named.
        with pytest.raises(net.ConnectError, match="does not answer"):
            net.connect(peer="server", key=net.generate_key(), timeout=0.5)
        other = paired.with_name("others.toml")
        other.write_text(entry("alias", server.public))
        net.connect(listener.addresses, peer="alias", peers=other).abort()


def test_the_restrictions_of_a_named_peer_apply(paired: Path) -> None:
    own = net.public_key(paired.with_name("identity.key"))
    paired.write_text(entry("laptop", own, 'expires = "2001-01-01"'))
    with net.listen(LOOPBACK, allow="laptop") as listener:
        # With a name and without a key, the listener has the default key too.
        assert listener.public_key == own
        with pytest.raises(net.ConnectError):
            net.connect(
                listener.addresses, peer=own, key=paired.with_name("identity.key"), timeout=0.5
            )


def test_unknown_names_are_refused_with_those_that_are_known(paired: Path) -> None:
    paired.write_text(entry("laptop", net.generate_key().public))
    for call in (lambda: net.connect(peer="server"), lambda: net.listen(LOOPBACK, allow="server")):
        with pytest.raises(net.OptionError, match=r"no peer of this name in .*peers\.toml.*laptop"):
            call()
    with pytest.raises(net.OptionError, match="no address of laptop is known"):
        net.connect(peer="laptop")
    paired.write_text("[[peer]]\nname = 3\n")
    with pytest.raises(net.OptionError, match=r"peers\.toml:2"):
        net.connect(peer="laptop")


def test_a_secret_does_not_show_itself(tmp_path: Path) -> None:
    key = net.generate_key(tmp_path / "key")
    secret = (tmp_path / "key").read_text().strip()
    assert len(secret) == 44
    assert secret not in repr(key) and key.public in repr(key)


def test_a_wait_ends_in_time_and_loses_nothing() -> None:
    with pair() as (near, far):
        with pytest.raises(net.TimedOut, match=r"no message came within 0.05 s"):
            far.receive(timeout=0.05)
        with pytest.raises(TimeoutError):
            far.receive(timeout=0)
        near.send(b"after all")
        message = far.receive(timeout=10)
        assert message is not None and message.data == b"after all"
        with pytest.raises(net.OptionError, match="timeout = -1"):
            far.receive(timeout=-1)
    with net.listen(LOOPBACK) as listener, pytest.raises(net.TimedOut, match="no association"):
        listener.accept(timeout=0.05)


def test_a_full_send_buffer_blocks_until_the_peer_reads() -> None:
    block = bytes(10_000)
    with pair(receive_buffer=20_000) as (near, far):
        sent = 0
        with pytest.raises(net.TimedOut, match="the send buffer was not free"):
            while sent < 1000:
                near.send(block, timeout=0.2)
                sent += 1
        assert 0 < sent < 1000
        for _ in range(sent):
            assert far.receive(timeout=10) is not None
        near.send(block, timeout=10)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_control_c_is_heard_while_waiting() -> None:
    with net.listen(LOOPBACK) as listener:
        timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            listener.accept(timeout=60)
        timer.join()


def test_other_threads_go_on_and_closing_wakes_who_waits() -> None:
    with net.listen(LOOPBACK) as listener:
        timer = threading.Timer(0.1, listener.close)
        timer.start()
        with pytest.raises(net.ClosedError):
            listener.accept(timeout=20)
        timer.join()


def test_paths_tell_what_becomes_of_them() -> None:
    with net.listen([LOOPBACK] * 2) as listener:
        near = net.connect(listener.addresses, via=[LOOPBACK] * 2, peer=listener.public_key)
        event = near.path_event(timeout=10)
        assert event is not None and event.kind == "changed"
        assert event.path in (0, 1) and event.status == "active"
        near.shutdown(timeout=10)
        assert all(isinstance(event, net.PathEvent) for event in near.path_events())


SOMEBODY = net.generate_key().public


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"to": "127.0.0.1"}, "peer is missing"),
        ({"peer": SOMEBODY}, "to is missing"),
        ({"plain": True}, "to is missing"),
        ({"to": "127.0.0.1", "peer": "short"}, "44 characters, and this has 5"),
        ({"to": "127.0.0.1", "plain": True, "peer": "x"}, "plain=True excludes"),
        ({"to": "127.0.0.1:0", "plain": True}, "give the peer's port"),
        ({"to": "127.0.0.1:99999", "plain": True}, "192.0.2.7:9000"),
        ({"to": "127.0.0.1", "plain": True, "port": 0}, "port = 0"),
        ({"to": "127.0.0.1", "peer": "x", "port": 5000}, "SCTP ports need plain=True"),
        ({"to": [], "plain": True}, "to is empty"),
        ({"to": "no.such.name.invalid", "plain": True}, "no.such.name.invalid"),
        ({"to": "127.0.0.1", "plain": True, "scheduler": "dapz"}, "daps"),
        ({"to": "127.0.0.1", "plain": True, "congestion": "rfc9261"}, "rfc9260"),
        ({"to": "127.0.0.1", "plain": True, "profile": "rfc4960"}, "live, rfc9260 are"),
        ({"to": "127.0.0.1", "plain": True, "receive_buffer": 100}, "at least 1500"),
        ({"to": "127.0.0.1", "plain": True, "receive_buffer": "16 apples"}, "16 apples"),
        ({"to": "127.0.0.1", "plain": True, "streams": 0}, "streams = 0"),
        ({"to": "127.0.0.1", "plain": True, "mtu": 10}, "mtu = 10"),
        ({"to": "127.0.0.1", "plain": True, "timeout": -2}, "timeout = -2"),
        ({"to": "127.0.0.1", "peer": SOMEBODY, "key": "/no/such/file"}, "/no/such/file"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_hint(arguments: dict[str, Any], part: str) -> None:
    with pytest.raises(net.OptionError) as caught:
        net.connect(**arguments)
    assert part in str(caught.value)
    assert isinstance(caught.value, rw.RopewalkError) and isinstance(caught.value, ValueError)


def test_messages_that_cannot_be_sent_are_refused() -> None:
    with pair(streams=4) as (near, _):
        assert near.streams == 4
        with pytest.raises(TypeError, match=r"str; text.encode\(\)"):
            near.send("text")  # type: ignore[arg-type]
        for arguments, part in [
            ({"data": b""}, "at least one byte"),
            ({"data": b"x", "stream": 4}, "has 4 streams"),
            ({"data": b"x", "stream": -1}, "stream = -1"),
            ({"data": b"x", "ppid": 2**32}, "ppid = 4294967296"),
        ]:
            with pytest.raises(net.OptionError, match=part):
                near.send(**arguments)  # type: ignore[arg-type]


def test_addresses_that_are_taken_or_not_ours_are_named() -> None:
    with net.listen(LOOPBACK) as listener:
        with pytest.raises(net.BindError, match="another program has this port"):
            net.listen(listener.addresses)
    with pytest.raises(net.BindError, match="no interface has this address"):
        net.listen("192.0.2.1:0")
    with pytest.raises(net.OptionError, match="eth0"):
        net.listen("eth0")


def test_nobody_there_is_told_with_what_may_be_wrong() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(net.ConnectError, match="plain=True") as caught:
            net.connect(address, plain=True, timeout=0.3)
        assert address in str(caught.value)
        assert isinstance(caught.value, ConnectionError)


def test_names_and_ipv6_reach_the_peer() -> None:
    with net.listen(["127.0.0.1:0"]) as listener:
        port = listener.addresses[0].rpartition(":")[2]
        net.connect(f"localhost:{port}", via="127.0.0.1", peer=listener.public_key).abort()
    try:
        listener = net.listen("[::1]:0")
    except net.BindError:
        pytest.skip("this machine has no IPv6")
    with listener:
        assert listener.addresses[0].startswith("[::1]:")
        near = net.connect(listener.addresses, peer=listener.public_key)
        near.send(b"six")
        message = listener.accept(timeout=10).receive(timeout=10)
        assert message is not None and message.data == b"six"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_opens_its_own_sockets_and_is_told_about_the_others() -> None:
    with pair() as (near, far):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                try:
                    near.send(b"from the child")
                except net.NetError as error:
                    assert "do not survive a fork" in str(error)
                    with pair() as (own, other):
                        own.send(b"mine")
                        assert other.receive(timeout=10).data == b"mine"  # type: ignore[union-attr]
                    status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        near.send(b"from the parent")
        message = far.receive(timeout=10)
        assert message is not None and message.data == b"from the parent"


def test_the_examples_of_both_modules_run() -> None:
    for module in (net, aio):
        found = doctest.testmod(module)
        assert found.attempted > 0 and found.failed == 0

"""Extensions of SCTP, which are in use if both ends ask for them."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from net_pair import LOOPBACK, pair

from ropewalk import net


@pytest.mark.parametrize("plain", [False, True])
def test_messages_of_several_streams_are_interleaved_if_both_ends_ask_for_it(plain: bool) -> None:
    options: dict[str, Any] = {"interleaving": True, "stream_scheduler": "priority"}
    with pair(plain=plain, **options) as (near, far):
        assert near.interleaves and far.interleaves
        near.set_stream_value(1, 0)
        near.set_stream_scheduler("weighted-fair")
        for stream in range(3):
            near.send(bytes([stream]) * 200_000, stream=stream)
        found = [far.receive(timeout=10) for _ in range(3)]
        messages = [message for message in found if message is not None]
        assert sorted(message.stream for message in messages) == [0, 1, 2]
        assert all(message.data == bytes([message.stream]) * 200_000 for message in messages)
        with pytest.raises(net.OptionError, match="streams"):
            near.set_stream_value(2000, 1)
        with pytest.raises(net.OptionError, match="round-robin-per-packet"):
            near.set_stream_scheduler("fair")
    with pair(plain=plain) as (near, _):
        assert not near.interleaves


def fill(association: net.Association, **how: Any) -> int:
    """Sends messages of 1000 bytes until there is no room. Returns their number."""
    count = 0
    with pytest.raises(net.TimedOut):
        while True:
            association.send(bytes(1000), timeout=0.5, **how)
            count += 1
    return count


def test_messages_of_lower_priority_make_room_and_what_is_given_up_is_counted() -> None:
    with pair(receive_buffer="128 KiB") as (near, far):
        count = fill(near, priority=9)
        assert near.abandoned_messages() == 0
        near.send(b"urgent", priority=1, timeout=0.5)
        given_up = near.abandoned_messages()
        assert given_up >= 1
        messages = [far.receive(timeout=10) for _ in range(count - given_up + 1)]
        assert messages[-1] is not None and messages[-1].data == b"urgent"


def test_messages_are_not_sent_after_their_lifetime() -> None:
    with pair(receive_buffer="128 KiB") as (near, far):
        count = fill(near, lifetime=0.2, retransmissions=3)
        until = time.monotonic() + 10
        while near.abandoned_messages() == 0 and time.monotonic() < until:
            time.sleep(0.05)
        near.send(b"last")
        got = []
        while not got or got[-1] != b"last":
            message = far.receive(timeout=10)
            assert message is not None
            got.append(message.data)
        assert 1 <= near.abandoned_messages() <= count
        assert len(got) - 1 + near.abandoned_messages() >= count
        for wrong in ({"lifetime": 0}, {"retransmissions": 256}, {"priority": -1}):
            with pytest.raises(net.OptionError, match=next(iter(wrong))):
                near.send(b"x", **wrong)  # type: ignore[arg-type]


def test_the_peer_is_told_why_an_association_is_aborted() -> None:
    with pair() as (near, far):
        near.abort("the licence is over")
        with pytest.raises(net.ClosedError, match="and says: the licence is over"):
            far.receive(timeout=10)


ALL_REQUESTS = ["reset-streams", "reset-association", "add-streams"]


@pytest.mark.parametrize("plain", [False, True])
def test_streams_are_reset_and_added_and_both_ends_are_told(plain: bool) -> None:
    def reset(direction: Any, streams: tuple[int, ...]) -> net.StreamEvent:
        return net.StreamEvent("streams-reset", "performed", direction, streams, 0, 0)

    options: dict[str, Any] = {"reconfiguration": True, "accepted_requests": ALL_REQUESTS}
    with pair(plain=plain, streams=4, **options) as (near, far):
        assert near.reconfigures and far.reconfigures
        near.send(b"before", stream=2)
        near.reset_streams([2, 2])
        near.send(b"after", stream=2)
        first = far.receive(timeout=10)
        assert first is not None and first.data == b"before"
        assert far.stream_event(timeout=10) == reset("incoming", (2,))
        assert near.stream_event(timeout=10) == reset("outgoing", (2,))
        later = far.receive(timeout=10)
        assert later is not None and later.data == b"after"

        near.reset_streams(direction="incoming")
        assert far.stream_event(timeout=10) == reset("outgoing", ())
        assert near.stream_event(timeout=10) == reset("incoming", ())

        near.add_streams(outgoing=2)
        added = net.StreamEvent("streams-added", "performed", None, (), 2, 0)
        assert near.stream_event(timeout=10) == added
        assert far.stream_event(timeout=10) == replace(added, outgoing=0, incoming=2)
        assert near.streams == 6
        near.send(b"new", stream=5)
        fresh = far.receive(timeout=10)
        assert fresh is not None and (fresh.data, fresh.stream) == (b"new", 5)

        far.reset_association()
        for end in (near, far):
            event = end.stream_event(timeout=10)
            assert event is not None
            assert (event.kind, event.outcome) == ("association-reset", "performed")
        with pytest.raises(net.OptionError, match="no such stream"):
            near.reset_streams([6])
        with pytest.raises(net.OptionError, match="streams to add"):
            near.add_streams()
        with pytest.raises(net.OptionError, match="outgoing, incoming, both"):
            near.reset_streams(direction="up")  # type: ignore[arg-type]
        near.shutdown(timeout=10)
        assert list(near.stream_events()) == []
        with pytest.raises(net.ClosedError):
            near.reset_association()


def test_a_request_that_the_peer_does_not_accept_is_denied() -> None:
    with pair(reconfiguration=True) as (near, far):
        near.reset_streams([1])
        event = near.stream_event(timeout=10)
        assert event == net.StreamEvent("streams-reset", "denied", "outgoing", (1,), 0, 0)
        with pytest.raises(net.TimedOut):
            far.stream_event(timeout=0.01)
        near.send(b"as before", stream=1)
        message = far.receive(timeout=10)
        assert message is not None and message.data == b"as before"
    with pair() as (near, _):
        assert not near.reconfigures
        with pytest.raises(net.OptionError, match="negotiated"):
            near.add_streams(incoming=1)
    with pytest.raises(net.OptionError, match="reconfiguration=True"):
        net.listen(LOOPBACK, accepted_requests="add-streams")
    with pytest.raises(net.OptionError, match="reset-association, add-streams"):
        net.listen(LOOPBACK, reconfiguration=True, accepted_requests="all")


def address_event(end: net.Association) -> net.PathEvent:
    """The next event about an address."""
    while (event := end.path_event(timeout=10)) is not None:
        if event.address is not None:
            return event
    raise AssertionError("the association has ended")


def exchanged(near: net.Association, far: net.Association) -> bool:
    for one, other in [(near, far), (far, near)]:
        one.send(b"still here")
        message = other.receive(timeout=10)
        if message is None or message.data != b"still here":
            return False
    return True


def test_addresses_are_added_and_removed_and_both_ends_are_told() -> None:
    def event(kind: Any, address: str = "127.0.0.2") -> net.PathEvent:
        return net.PathEvent(kind, None, None, address)

    with pair(plain=True, address_reconfiguration=True) as (near, far):
        assert near.reconfigures_addresses and far.reconfigures_addresses
        assert near.authenticates and far.authenticates
        near.add_address("127.0.0.2")
        assert address_event(far) == event("address-added")
        assert address_event(near) == event("own-address-added")
        assert exchanged(near, far)
        near.request_primary("127.0.0.2")
        assert address_event(far) == event("primary-requested")
        assert address_event(near) == event("own-primary-requested")
        near.remove_address("127.0.0.1")
        assert address_event(far) == event("address-removed", "127.0.0.1")
        assert address_event(near) == event("own-address-removed", "127.0.0.1")
        assert exchanged(near, far)
        remotes = {path.remote and path.remote.rpartition(":")[0] for path in far.stats().paths}
        assert "127.0.0.2" in remotes and "127.0.0.1" not in remotes
        with pytest.raises(net.OptionError, match="last address"):
            near.remove_address("127.0.0.2")
        for wrong in ["127.0.0.2:9899", "localhost"]:
            with pytest.raises(net.OptionError, match="without a port"):
                near.add_address(wrong)
        with pytest.raises(net.OptionError, match="cannot be used"):
            near.add_address("192.0.2.7")
        near.shutdown(timeout=10)
        with pytest.raises(net.ClosedError):
            near.add_address("127.0.0.3")


def test_addresses_stay_as_they_are_unless_both_ends_ask_for_more() -> None:
    for plain in (False, True):
        with pair(plain=plain) as (near, _):
            assert not near.reconfigures_addresses and not near.authenticates
            with pytest.raises(net.OptionError, match="address reconfiguration"):
                near.add_address("127.0.0.2")


def test_chunks_are_authenticated_with_secrets_that_both_ends_have() -> None:
    keys: dict[str, Any] = {
        "authentication": True,
        "authenticated_chunks": ["data", "sack"],
        "shared_keys": {1: b"first", 7: b"second"},
        "active_key": 1,
    }
    with pair(plain=True, **keys) as (near, far):
        assert near.authenticates and far.authenticates
        assert exchanged(near, far)
        near.activate_shared_key(7)
        assert exchanged(near, far)
        event = far.path_event(timeout=10)
        while event is not None and event.kind == "changed":
            event = far.path_event(timeout=10)
        assert event is not None and (event.kind, event.key) == ("peer-uses-key", 7)
        near.deactivate_shared_key(1)
        with pytest.raises(net.OptionError, match="deactivated"):
            near.activate_shared_key(1)
        # What comes with a secret that the peer does not have, is discarded.
        near.set_shared_key(9, b"mine alone")
        near.activate_shared_key(9)
        near.send(b"nobody can check this")
        with pytest.raises(net.TimedOut):
            far.receive(timeout=0.3)
        far.set_shared_key(9, b"mine alone")
        message = far.receive(timeout=10)
        assert message is not None and message.data == b"nobody can check this"
        with pytest.raises(net.OptionError, match="active"):
            near.delete_shared_key(9)
        near.delete_shared_key(7)
        for unknown in (near.activate_shared_key, near.delete_shared_key):
            with pytest.raises(net.OptionError, match="no shared key"):
                unknown(7)


def test_the_empty_secret_is_not_accepted_beside_an_active_one() -> None:
    options: dict[str, Any] = {"authentication": True, "authenticated_chunks": "data"}
    secret = {"shared_keys": {1: b"of both ends"}, "active_key": 1}
    with net.listen(LOOPBACK, plain=True, **secret, **options) as listener:
        near = net.connect(listener.addresses, plain=True, **options)
        far = listener.accept(timeout=5)
        near.send(b"everyone can compute this code")
        with pytest.raises(net.TimedOut):
            far.receive(timeout=0.5)
        with pytest.raises(net.OptionError, match="no shared key"):
            far.activate_shared_key(0)
        near.abort()


def test_other_secrets_than_the_listener_has_do_not_get_data_across() -> None:
    options: dict[str, Any] = {"authentication": True, "authenticated_chunks": "data"}
    with net.listen(LOOPBACK, plain=True, shared_keys={0: b"right"}, **options) as listener:
        near = net.connect(listener.addresses, plain=True, shared_keys={0: b"wrong"}, **options)
        near.send(b"forged")
        with pytest.raises(net.TimedOut):
            listener.accept(timeout=5).receive(timeout=0.5)
        near.abort()


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"authentication": True, "plain": False}, "plain=True: encryption authenticates"),
        ({"address_reconfiguration": True, "plain": False}, "plain=True: encrypted associations"),
        ({"shared_keys": {1: b"x"}}, "need authentication=True"),
        ({"authenticated_chunks": "data"}, "need authentication=True"),
        ({"authentication": True, "authenticated_chunks": "init"}, "`init` is no chunk"),
        ({"authentication": True, "shared_keys": {65_536: b"x"}}, "from 0 to 65535"),
        ({"authentication": True, "shared_keys": {1: bytes(257)}}, "at most 256 bytes"),
        ({"authentication": True, "shared_keys": {n: b"x" for n in range(17)}}, "as many"),
        ({"authentication": True, "active_key": 3}, "active_key = 3: there is no shared key"),
    ],
)
def test_wrong_options_of_authentication_are_refused(options: dict[str, Any], part: str) -> None:
    with pytest.raises(net.OptionError) as caught:
        net.listen(LOOPBACK, **({"plain": True} | options))
    assert part in str(caught.value)


@pytest.mark.parametrize("plain", [False, True])
def test_data_is_reported_as_non_renegable_if_both_ends_ask_for_it(plain: bool) -> None:
    with pair(plain=plain, paths=2, nr_sack=True) as (near, far):
        assert near.reports_non_renegable and far.reports_non_renegable
        sender = threading.Thread(target=near.send_all, args=([bytes(5000)] * 500,))
        sender.start()
        found = [far.receive(timeout=10) for _ in range(500)]
        sender.join()
        assert all(message is not None and len(message.data) == 5000 for message in found)
    with pair(plain=plain) as (near, _):
        assert not near.reports_non_renegable


def may_open_raw_sockets() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_SCTP).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not may_open_raw_sockets(), reason="raw sockets need CAP_NET_RAW")
def test_packets_go_directly_over_ip_without_encapsulation() -> None:
    options: dict[str, Any] = {"plain": True, "port": 5170, "encapsulation": "none"}
    with (
        net.listen("127.0.0.1", **options) as listener,
        net.connect("127.0.0.1", via="127.0.0.2", **options) as near,
    ):
        far = listener.accept(timeout=10)
        near.send(b"over IP", stream=3)
        message = far.receive(timeout=10)
        assert message is not None and (message.data, message.stream) == (b"over IP", 3)
        # An endpoint over UDP is another one, on the same ports.
        with pytest.raises(net.ConnectError):
            net.connect("127.0.0.1", via="127.0.0.3", plain=True, port=5170, timeout=0.5)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"encapsulation": "none"}, "plain=True"),
        ({"encapsulation": "tcp", "plain": True}, "udp, none"),
    ],
)
def test_an_encapsulation_that_cannot_be_is_refused(options: dict[str, Any], part: str) -> None:
    with pytest.raises(net.OptionError, match=part):
        net.listen(LOOPBACK, **options)

"""What a program asks of an association besides messages, and what it has after the end."""

from __future__ import annotations

import asyncio
import itertools
import socket
import sys
import time
from typing import Any

import pytest
from net_pair import LOOPBACK, pair

from ropewalk import net
from ropewalk.net import aio

#: Small, so that the first messages fill the peer's window and the rest is not sent.
SMALL: dict[str, Any] = {"receive_buffer": "64 KiB", "send_buffer": "256 KiB"}


def message(label: int) -> bytes:
    return label.to_bytes(4, "big") * 250


def check_undelivered(
    sent: list[net.Undelivered], waiting: list[net.Undelivered], count: int
) -> int:
    """Checks that they are the last ones of `count` messages. Returns the number of the first."""
    assert waiting, "the peer's window is smaller than what was queued"
    first = (sent + waiting)[0].ppid
    for at, one in enumerate(sent + waiting, start=first):
        assert (one.ppid, one.stream, one.unordered) == (at, at % 3, at % 2 == 1)
        # A message may have been sent in two packets, of which the first was acknowledged.
        assert one.data == message(at)[-len(one.data) :]
        assert one.whole == (len(one.data) == 1000) and (one.whole or at == first)
        assert 0 <= one.reported_bytes <= len(one.data)
    assert all(one.reported_bytes == 0 for one in waiting)
    assert first + len(sent) + len(waiting) == count, "to the last one"
    return first


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_what_was_not_delivered_is_there_after_an_abort_and_after_a_failure(
    plain: bool, fails: bool
) -> None:
    with pair(plain=plain, **SMALL) as (near, far):
        assert near.unsent() == near.unacknowledged() == []
        count = 0
        with pytest.raises(net.TimedOut):
            for count in itertools.count():
                how: net.Delivery = {"unordered": count % 2 == 1}
                near.send(message(count), stream=count % 3, ppid=count, timeout=0.5, **how)
        assert near.close_reason is None
        (far if fails else near).abort("enough")
        if fails:
            with pytest.raises(net.ClosedError):
                near.receive(timeout=10)
        with pytest.raises(net.ClosedError, match="may not have arrived"):
            near.flush(timeout=10)
        assert near.close_reason is not None
        for _ in range(2):
            first = check_undelivered(near.unacknowledged(), near.unsent(), count)
        # The peer has all that is missing there.
        got = []
        with pytest.raises(net.ClosedError):
            while True:
                found = far.receive(timeout=10)
                assert found is not None
                got.append(found.ppid)
        assert set(range(first)) <= set(got)


def test_what_an_association_did_not_deliver_is_sent_over_another_one() -> None:
    with net.listen(LOOPBACK, **SMALL) as listener:
        peer = listener.public_key
        near = net.connect(listener.addresses, peer=peer, **SMALL)
        near.send_all([message(label) for label in range(200)])
        far = listener.accept(timeout=10)
        got = []
        for _ in range(20):
            found = far.receive(timeout=10)
            assert found is not None
            got.append(found.data)
        far.abort()
        with pytest.raises(net.ClosedError):
            near.receive(timeout=10)
        with net.connect(listener.addresses, peer=peer, **SMALL) as again:
            far = listener.accept(timeout=10)
            for one in near.unacknowledged() + near.unsent():
                again.send(one.data, stream=one.stream, ppid=one.ppid, unordered=one.unordered)
                found = far.receive(timeout=10)
                assert found is not None
                got.append(found.data)
        # Nothing is lost between what was read, what the peer had in its buffer, and the rest.
        assert {message(label) for label in range(20)} <= set(got)
        assert got[-1] == message(199)


def test_a_coroutine_gets_what_was_not_delivered() -> None:
    async def main() -> None:
        async with aio.listen(LOOPBACK, **SMALL) as listener:
            peer = listener.public_key
            near = await aio.connect(listener.addresses, peer=peer, **SMALL)
            far = await listener.accept()
            sent = 0
            try:
                async with asyncio.timeout(1):
                    for sent in itertools.count():
                        await near.send(message(sent), ppid=sent)
            except TimeoutError:
                pass
            far.abort()
            with pytest.raises(net.ClosedError):
                await near.receive()
            left = near.unacknowledged() + near.unsent()
            numbers = [one.ppid for one in left]
            assert numbers == list(range(numbers[0], numbers[0] + len(left)))
            # The send that was cancelled may have been queued.
            assert numbers[-1] in (sent - 1, sent)

    asyncio.run(main())


def test_status_and_streams_of_both_directions() -> None:
    with pair(streams=5, incoming_streams=3) as (near, far):
        status = near.status()
        assert (status.state, status.outgoing_streams, status.incoming_streams) == (
            "established",
            3,
            3,
        )
        assert status.peer_window_bytes > 1_000_000 and status.primary == 0
        near.send(b"unordered", unordered=True)
        near.send(b"ordered")
        both = [far.receive(timeout=10), far.receive(timeout=10)]
        assert {(one.data, one.unordered) for one in both if one is not None} == {
            (b"unordered", True),
            (b"ordered", False),
        }
        near.shutdown(timeout=10)
        assert near.status().state == "ended" and near.close_reason is not None


def test_parameters_are_changed_and_wrong_ones_are_refused() -> None:
    with pair(paths=2) as (near, _):
        usual = near.parameters()
        near.set_parameters(rto_min_s=0.3, association_max_retrans=4, sack_every_packets=3)
        changed = near.parameters()
        assert changed.rto_min_s == pytest.approx(0.3)
        assert (changed.association_max_retrans, changed.sack_every_packets) == (4, 3)
        assert changed.cookie_life_s == usual.cookie_life_s
        for wrong, part in [
            ({"sack_delay_s": 1.0}, "500 ms"),
            ({"rto_max_s": -1.0}, "rto_max_s = -1"),
            ({"max_burst": -1}, "max_burst = -1"),
            ({"speed": 1}, "no parameter"),
        ]:
            with pytest.raises(net.OptionError, match=part):
                near.set_parameters(**wrong)  # type: ignore[arg-type]
        assert near.parameters() == changed


def test_paths_are_probed_when_the_program_says_so_and_unknown_ones_are_refused() -> None:
    with pair(paths=2, plain=True) as (near, _):
        near.set_heartbeats(1, interval=0.05)
        assert near.path_timers(1).heartbeat_interval_s == pytest.approx(0.05)
        near.set_heartbeats(0, enabled=False)
        timers = near.path_timers(0)
        assert timers.heartbeat_interval_s is None and timers.rto_s > 0
        until = time.monotonic() + 10
        while near.stats().paths[1].status != "active" and time.monotonic() < until:
            time.sleep(0.02)
        assert near.request_heartbeat(1)
        near.set_primary(1)
        assert near.status().primary == 1
        near.set_path_max_retrans(1, 2)
        near.set_path_max_retrans(1, None)
        for path in (2, -1):
            for call in (
                near.set_primary,
                near.path_timers,
                near.set_heartbeats,
                lambda path: near.set_path_max_retrans(path, 1),
            ):
                with pytest.raises(net.OptionError, match=f"path = {path}"):
                    call(path)


def test_given_up_messages_are_counted_by_stream_and_rule() -> None:
    with pair(receive_buffer="128 KiB") as (near, _):
        with pytest.raises(net.TimedOut):
            while True:
                near.send(bytes(1000), stream=1, priority=9, timeout=0.5)
        # Another stream has little unsent data, and would take none of the room of this one.
        near.send(bytes(1000), stream=1, priority=1, timeout=0.5)
        given_up = near.abandoned_messages()
        assert given_up >= 1
        assert near.abandoned_messages(stream=1, policy="priority") == given_up
        assert near.abandoned_messages(stream=0) == near.abandoned_messages(policy="lifetime") == 0
        with pytest.raises(net.OptionError, match="lifetime, retransmissions, priority"):
            near.abandoned_messages(policy="age")  # type: ignore[arg-type]


def test_what_the_ends_tell_each_other_in_the_handshake() -> None:
    options: dict[str, Any] = {
        "plain": True,
        "authentication": True,
        "authenticated_chunks": ["data", "sack"],
        "adaptation": 7,
        "hmacs": ["sha-1"],
    }
    with pair(**options) as (near, far):
        for end in (near, far):
            assert end.peer_adaptation == 7
            assert set(end.peer_authenticated_chunks) == {"data", "sack"}
    with pair(plain=True) as (near, _):
        assert near.peer_adaptation is None and near.peer_authenticated_chunks == []


def test_requests_of_the_peer_are_accepted_from_now_on() -> None:
    with pair(reconfiguration=True) as (near, far):
        assert far.accepted_requests == []
        far.set_accepted_requests("add-streams,reset-streams")
        assert far.accepted_requests == ["reset-streams", "add-streams"]
        near.reset_streams([1])
        event = near.stream_event(timeout=10)
        assert event is not None and event.outcome == "performed"
        far.set_accepted_requests([])
        assert far.accepted_requests == []


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"send_buffer": -1}, "send_buffer = -1"),
        ({"send_buffer": "1 kB"}, "send_buffer = 1000"),
        ({"incoming_streams": 0}, "incoming_streams = 0"),
        ({"adaptation": 2**32, "plain": True}, "adaptation"),
        ({"adaptation": 1}, "adaptation needs plain=True"),
        ({"hmacs": "sha-256", "plain": True, "authentication": True}, "SHA-1"),
        ({"hmacs": "md5", "plain": True, "authentication": True}, "sha-256, sha-1 are known"),
        ({"limits": {"associations": 0}}, "associations = 0: give a whole number"),
        ({"limits": {"accept_queue": 1.5}}, "accept_queue = 1.5"),
        ({"limits": {"setup_timeout_s": -1}}, "setup_timeout_s = -1"),
        ({"limits": {"people": 1}}, "no limit"),
        ({"unsent_limit": -1}, "unsent_limit = -1"),
        ({"follow_interfaces": True}, "needs address_reconfiguration=True"),
        ({"translated": True}, "needs address_reconfiguration=True"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], part: str) -> None:
    with pytest.raises(net.OptionError, match=part):
        net.listen(LOOPBACK, **options)


@pytest.mark.parametrize("plain", [False, True])
def test_a_listener_opens_associations_from_its_own_addresses(plain: bool) -> None:
    with net.listen(LOOPBACK, plain=plain) as one, net.listen(LOOPBACK, plain=plain) as other:
        near = one.connect(other.addresses, peer=other.public_key, timeout=10)
        far = other.accept(timeout=10)
        near.send(b"from a listener")
        found = far.receive(timeout=10)
        assert found is not None and found.data == b"from a listener"
        assert far.stats().paths[0].remote == one.addresses[0]
        assert far.peer == one.public_key
        # It still accepts others.
        third = net.connect(one.addresses, peer=one.public_key, plain=plain)
        assert one.accept(timeout=10).peer == third.peer or not plain
        if not plain:
            with pytest.raises(net.OptionError, match="peer is missing"):
                one.connect(other.addresses)
            with pytest.raises(net.ConnectError, match="does not answer"):
                one.connect(other.addresses, peer=net.generate_key().public, timeout=0.5)
        for end in (near, far, third):
            end.abort()
    with pytest.raises(net.ClosedError):
        one.connect(other.addresses, peer=other.public_key)


def test_a_listener_keeps_its_limits_and_counts_what_it_refuses() -> None:
    with net.listen(LOOPBACK, limits={"associations": 1, "setup_timeout_s": 5}) as listener:
        near = net.connect(listener.addresses, peer=listener.public_key)
        far = listener.accept(timeout=10)
        near.send(b"busy")
        assert far.receive(timeout=10) is not None
        before = listener.counters()
        assert before.received > 0 and before.sent > 0 and before.unauthenticated == 0
        assert set(before.limits.values()) == {0}
        # On a busy machine a handshake may take longer than one attempt.
        until = time.monotonic() + 30
        while listener.counters().limits["associations"] == 0 and time.monotonic() < until:
            with pytest.raises(net.ConnectError):
                net.connect(listener.addresses, peer=listener.public_key, timeout=1)
        assert listener.counters().limits["associations"] > 0
        near.abort()
    with pytest.raises(net.ClosedError):
        listener.counters()


def test_urgent_messages_overtake_others_and_copies_arrive_once() -> None:
    with pair(paths=2) as (near, far):
        for number in range(50):
            near.send(b"bulk", ppid=number, unordered=True, copies=2)
        near.send(b"urgent", ppid=50, unordered=True, urgency="interactive")
        near.send(b"later", ppid=51, unordered=True, urgency="background")
        got: list[int] = []
        while len(got) < 52:
            found = far.receive(timeout=10)
            assert found is not None
            got.append(found.ppid)
        assert sorted(got) == list(range(52))
        with pytest.raises(net.TimedOut):
            far.receive(timeout=0.3)
        for wrong in ({"urgency": "soon"}, {"copies": 3}):
            with pytest.raises(net.OptionError, match=next(iter(wrong))):
                near.send(b"x", **wrong)


def test_a_listener_of_a_coroutine_opens_associations() -> None:
    async def main() -> None:
        async with aio.listen(LOOPBACK) as one, aio.listen(LOOPBACK) as other:
            near = await one.connect(other.addresses, peer=other.public_key)
            far = await other.accept()
            async with near:
                await near.send(b"hello")
                found = await far.receive()
                assert found is not None and found.data == b"hello"

    asyncio.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux sends marked packets")
def test_packets_have_the_code_point_of_the_option() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as observer:
        observer.bind(("127.0.0.1", 0))
        # IP_RECVTOS
        observer.setsockopt(socket.IPPROTO_IP, 13, 1)
        to = f"127.0.0.1:{observer.getsockname()[1]}"
        with pytest.raises(net.ConnectError):
            net.connect(to, plain=True, dscp=46, timeout=0.2)
        _, control, _, _ = observer.recvmsg(2000, 64)
        assert [(kind, data[0]) for _, kind, data in control] == [(socket.IP_TOS, 46 << 2)]


def test_the_code_point_of_an_association_changes_and_others_are_refused() -> None:
    with pair(dscp=26) as (near, far):
        near.set_dscp(46)
        near.set_dscp(0, path=0)
        near.send(b"marked")
        received = far.receive(timeout=10)
        assert received is not None and received.data == b"marked"
        for dscp, path in [(64, None), (-1, None), (26, 1), (26, -1)]:
            with pytest.raises(net.OptionError):
                near.set_dscp(dscp, path)
    with pytest.raises(net.OptionError, match="dscp"):
        net.listen(LOOPBACK, dscp=64)

"""Options of the blocking and the asyncio sockets, checked and converted for the native half."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from ropewalk import _ropewalk as native
from ropewalk._ropewalk import Key
from ropewalk.errors import OptionError
from ropewalk.net._keys import generate_key, key_of

if TYPE_CHECKING:
    from ropewalk._ropewalk import _ExtensionOptions, _SocketOptions

#: UDP port of SCTP in UDP (RFC 6951, 5.1), and SCTP port of Ropewalk's own services.
PORT = 9899

#: Receive buffer, bytes: enough for 1 Gbit/s over 100 ms.
RECEIVE_BUFFER = 16 * 2**20

NOBODY = "without encryption no end proves its identity"

Texts = str | Iterable[str]
KeyLike = Key | str | PathLike[str]
Place = tuple[str, str | None]


#: Longest lifetime of a message: that of a 32-bit number of milliseconds (RFC 6458, 5.3.7).
LONGEST_LIFETIME_S = 4_294_967


class Delivery(TypedDict, total=False):
    """How messages are delivered: options of :meth:`Association.send` and :meth:`Association.send_all`.

    A message with ``lifetime``, ``retransmissions`` or ``priority`` may be given up (partial reliability, RFC 3758 and
    RFC 7496); :meth:`Association.abandoned_messages` counts those that were.

    Attributes
    ----------
    unordered : bool
        Deliver it on arrival, independent of earlier messages. If it fits into one packet, it never waits in the peer's
        receive buffer, which may then be small even for very different paths. Off by default.
    immediate : bool
        Ask the peer to acknowledge it without delay (RFC 7053), which it otherwise may put off by 200 ms. Off by default.
    lifetime : float
        Seconds after which it is not sent any more; by default it is sent until it is acknowledged. What was sent before
        may arrive one forward delay later.
    retransmissions : int
        Most retransmissions, 0 to 254; by default as many as it takes.
    priority : int
        0 to 4294967295. In a full send buffer, it is given up for a message with a lower number if it has not been sent,
        instead of letting that one wait. By default it is not given up.
    urgency : str
        ``"bulk"``, the default: in the order of submission, on the path that the scheduler chooses. ``"interactive"``: before
        all queued messages, on the path on which it arrives first. ``"first-open"``: in the order of submission, on the open
        path on which it arrives first. ``"background"``: when no other message is queued. An interactive or first-open message
        must be unordered and fit into one packet; otherwise it is sent as bulk.
    copies : int
        2: it is sent on two paths, and the first copy that arrives is delivered. 1 by default.
    """

    unordered: bool
    immediate: bool
    lifetime: float | None
    retransmissions: int | None
    priority: int | None
    urgency: Literal["interactive", "bulk", "first-open", "background"]
    copies: Literal[1, 2]


class Limits(TypedDict, total=False):
    """What peers may make a listener hold: the option ``limits`` of :func:`listen`.

    Attributes
    ----------
    associations, associations_per_key, associations_per_prefix : int
        Most associations that peers have opened: 10000; of one public key: 256; of one IPv4 /24 or IPv6 /56: 1024.
    half_open, half_open_per_key, half_open_per_prefix : int
        Most handshakes that were answered and not finished: 1024; of one key: 4; of one prefix: 64.
    memory : int
        Most bytes that all associations hold together: 268435456.
    accept_queue : int
        Most associations that wait for :meth:`Listener.accept`: 256.
    half_open_timeout_s, setup_timeout_s, accept_timeout_s : float
        Longest handshake: 10; longest setup of an association: 20; longest wait for :meth:`Listener.accept`: 30.
    silent_timeout_s : float
        Age from which an association without a message may be dropped for another one: 60.
    vanished_timeout_s : float
        Longest silence of an idle peer before it counts as gone: 120.
    """

    associations: int
    associations_per_key: int
    associations_per_prefix: int
    half_open: int
    half_open_per_key: int
    half_open_per_prefix: int
    memory: int
    accept_queue: int
    half_open_timeout_s: float
    setup_timeout_s: float
    accept_timeout_s: float
    silent_timeout_s: float
    vanished_timeout_s: float


class Extensions(TypedDict, total=False):
    """Further options of :func:`listen` and :func:`connect`: extensions of SCTP, and buffers.

    An extension is in use if both ends ask for it.

    Attributes
    ----------
    interleaving : bool
        Messages of different streams alternate (RFC 8260), so that a short message does not wait for a long one. Off by
        default; 4 bytes per packet.
    stream_scheduler : str
        The order in which streams send, whatever the peer asks for: ``"first-come"``, or another name of
        :meth:`Association.set_stream_scheduler`.
    nr_sack : bool
        Each end reports data that it will not drop (NR-SACK). Such data leaves the sender's buffer at once, which helps
        if that buffer is small. Off by default; 4 bytes per acknowledgement.
    reconfiguration : bool
        Streams can be reset and added while the association is used (RFC 6525). Off by default.
    accepted_requests : str or list of str
        With ``reconfiguration``, which requests of the peer are performed: ``"reset-streams"``,
        ``"reset-association"``, ``"add-streams"``, each for both directions. None by default: they are denied.
    authentication : bool
        With ``plain=True``, chunks are authenticated (AUTH, RFC 4895). Off by default; 45 bytes in the handshake.
    authenticated_chunks : str or list of str
        With ``authentication`` or ``address_reconfiguration``, what the peer has to authenticate: names of chunks as
        ``"data"`` and ``"sack"``. None by default. Each packet with such a chunk has 40 bytes more.
    hmacs : str or list of str
        With either of both, the algorithms that this end offers for these codes, the preferred one first. By default
        ``["sha-256", "sha-1"]``; ``"sha-1"`` must be among them.
    shared_keys : dict of int to bytes
        With either of both, secrets that the peer has as well, by numbers from 0 to 65535; at most 16 of 256 bytes. Without
        a secret, everyone who has seen the handshake can forge chunks.
    active_key : int
        The number of the secret with which this end authenticates; 0 by default, which is empty unless it is set. If another
        one is active, the empty one is not accepted from the peer.
    address_reconfiguration : bool
        With ``plain=True``, addresses can be added and removed while the association is used (ASCONF, RFC 5061), with
        authenticated chunks. Encrypted associations follow addresses without it. Off by default; 55 bytes in the handshake.
    follow_interfaces : bool
        With ``address_reconfiguration``, addresses of interfaces that appear are announced to the peer, and those that
        disappear are given up. For sockets that are bound to no address (``0.0.0.0``, or no ``via``). Off by default.
    translated : bool
        With ``address_reconfiguration``, a translator (NAT) hides all addresses of this end: those that are added and removed
        are told as the source of the packet. For private IPv4 addresses and a peer that has none, this is so in any case.
        Off by default.
    adaptation : int
        With ``plain=True``, a number that tells the peer about the layer above SCTP (RFC 5061, 4.2.6); it reads
        :attr:`Association.peer_adaptation`. Nothing is told by default.
    ecn : bool
        Congestion marks of the network are used, if the peer supports them. On by default, and off with the profile
        ``"rfc9260"``.
    dscp : int
        The class of service that packets ask the network for (RFC 2474), 0 to 63: 46 is expedited forwarding. 0, best effort,
        by default. Marked packets cost more CPU time, and are sent on Linux only. :meth:`Association.set_dscp` changes it.
    send_buffer : int or str
        Most data that waits unsent or unacknowledged, bytes or a text with a unit; four receive buffers by default.
    unsent_limit : int or str
        Most of that data that may wait unsent; by default there is no separate limit. For programs that send several things,
        some of them urgent.
    incoming_streams : int
        Most streams on which the peer may send; by default as many as ``streams``.
    limits : Limits
        Of :func:`listen`: what peers may make the listener hold.
    encapsulation : str
        ``"udp"``, the default: SCTP in UDP (RFC 6951). ``"none"``: SCTP directly over IP, with ``plain=True``, on Linux, by
        a program that may open raw sockets (``CAP_NET_RAW``). Addresses then have no UDP ports; those that are given are
        ignored.
    """

    interleaving: bool
    stream_scheduler: str
    nr_sack: bool
    reconfiguration: bool
    accepted_requests: Texts
    authentication: bool
    authenticated_chunks: Texts
    hmacs: Texts
    shared_keys: Mapping[int, bytes]
    active_key: int
    address_reconfiguration: bool
    follow_interfaces: bool
    translated: bool
    adaptation: int | None
    ecn: bool
    dscp: int
    send_buffer: int | str | None
    unsent_limit: int | str | None
    incoming_streams: int | None
    limits: Limits
    encapsulation: Literal["udp", "none"]


def extension_options(
    *,
    interleaving: bool = False,
    stream_scheduler: str = "first-come",
    nr_sack: bool = False,
    reconfiguration: bool = False,
    accepted_requests: Texts = (),
    authentication: bool = False,
    authenticated_chunks: Texts = (),
    hmacs: Texts = ("sha-256", "sha-1"),
    shared_keys: Mapping[int, bytes] | None = None,
    active_key: int = 0,
    address_reconfiguration: bool = False,
    follow_interfaces: bool = False,
    translated: bool = False,
    adaptation: int | None = None,
    ecn: bool = True,
    dscp: int = 0,
    send_buffer: int | str | None = None,
    unsent_limit: int | str | None = None,
    incoming_streams: int | None = None,
    limits: Limits | None = None,
    encapsulation: str = "udp",
) -> _ExtensionOptions:
    """All options of :class:`Extensions`."""
    chunks = listed("authenticated_chunks", authenticated_chunks) if authenticated_chunks else []
    keys = dict(shared_keys or {})
    for number in (*keys, active_key):
        within("key", number, 0, 65_535)
    if (chunks or keys or active_key) and not (authentication or address_reconfiguration):
        raise OptionError("keys and authenticated_chunks need authentication=True at both ends")
    accepted = listed("accepted_requests", accepted_requests) if accepted_requests else []
    if accepted and not reconfiguration:
        raise OptionError(f"accepted_requests = {accepted}: requests need reconfiguration=True")
    if follow_interfaces and not address_reconfiguration:
        raise OptionError("follow_interfaces=True needs address_reconfiguration=True at both ends")
    if translated and not address_reconfiguration:
        raise OptionError("translated=True needs address_reconfiguration=True at both ends")
    if adaptation is not None:
        within("adaptation", adaptation, 0, 2**32 - 1)
    if incoming_streams is not None:
        within("incoming_streams", incoming_streams, 1, 65_535)
    for option, size in [("send_buffer", send_buffer), ("unsent_limit", unsent_limit)]:
        if isinstance(size, int) and size < 0:
            raise OptionError(f"{option} = {size}: give bytes, or a text as '16 MiB'")
    return {
        "interleaving": interleaving,
        "stream_scheduler": stream_scheduler,
        "nr_sack": nr_sack,
        "reconfiguration": reconfiguration,
        "accepted_requests": accepted,
        "authentication": authentication,
        "authenticated_chunks": chunks,
        "hmacs": listed("hmacs", hmacs),
        "shared_keys": list(keys.items()),
        "active_key": active_key,
        "address_reconfiguration": address_reconfiguration,
        "follow_interfaces": follow_interfaces,
        "translated": translated,
        "adaptation": adaptation,
        "ecn": ecn,
        "dscp": dscp_number(dscp),
        "send_buffer": send_buffer,
        "unsent_limit": unsent_limit,
        "incoming_streams": incoming_streams,
        "limits": list(dict[str, Any](limits or {}).items()),
        "encapsulation": encapsulation,
    }


def dscp_number(dscp: int) -> int:
    """The code point, if it is one."""
    within("dscp", dscp, 0, 63)
    return dscp


def check_clear(plain: bool, extensions: Extensions) -> None:
    """Refuses the extensions that only associations in the clear can have."""
    if plain:
        return
    for option, why in [
        ("authentication", "encryption authenticates whole packets"),
        ("address_reconfiguration", "encrypted associations follow addresses without it"),
    ]:
        if extensions.get(option):
            raise OptionError(f"{option}=True needs plain=True: {why}")
    if extensions.get("adaptation") is not None:
        raise OptionError("adaptation needs plain=True: encrypted handshakes do not carry it")
    if extensions.get("encapsulation") == "none":
        raise OptionError("encapsulation='none' needs plain=True: encryption needs UDP")


def socket_options(
    scheduler: str,
    congestion: str | None,
    receive_buffer: int | str,
    streams: int,
    mtu: int,
    profile: str,
    plain: bool,
    **extensions: Unpack[Extensions],
) -> _SocketOptions:
    """Properties of associations; the two ends may differ in all of them but ``plain``."""
    check_clear(plain, extensions)
    if isinstance(receive_buffer, int) and receive_buffer < 0:
        raise OptionError(f"receive_buffer = {receive_buffer}: give bytes, or a text as '16 MiB'")
    return (
        scheduler,
        congestion,
        receive_buffer,
        within("streams", streams, 1, 65_535),
        within("mtu", mtu, 576, 65_535),
        profile,
        extension_options(**extensions),
    )


def sctp_port(option: str, port: int | None, plain: bool) -> int | None:
    """An SCTP port, which only unencrypted associations have."""
    if port is None:
        return None
    if not plain:
        raise OptionError(
            f"{option} = {port}: SCTP ports need plain=True; "
            "give a UDP port with the address, as 192.0.2.7:9000"
        )
    return within(option, port, 1, 65_535)


def listen_ports(port: int | Iterable[int] | None, plain: bool) -> list[int]:
    """The SCTP ports on which associations are accepted."""
    if port is None:
        return [PORT]
    ports = [port] if isinstance(port, int) else list(port)
    if not ports:
        raise OptionError("port is empty: give at least one")
    return [found for one in ports if (found := sctp_port("port", one, plain)) is not None]


def connect_ports(
    port: int | None, local_port: int | None, plain: bool
) -> tuple[int | None, int]:
    """The own SCTP port, if given, and the peer's."""
    return sctp_port("local_port", local_port, plain), sctp_port("port", port, plain) or PORT


def delivery(
    *,
    unordered: bool = False,
    immediate: bool = False,
    lifetime: float | None = None,
    retransmissions: int | None = None,
    priority: int | None = None,
    urgency: str = "bulk",
    copies: int = 1,
) -> tuple[bool, bool, float | None, int | None, int | None, str, bool]:
    """The same for the native half: unordered, immediate, lifetime in seconds, most retransmissions, priority, urgency, twice."""
    if lifetime is not None and not 0 < lifetime <= LONGEST_LIFETIME_S:
        raise OptionError(f"lifetime = {lifetime}: give more than 0 and at most {LONGEST_LIFETIME_S} seconds")
    if retransmissions is not None:
        within("retransmissions", retransmissions, 0, 254)
    if priority is not None:
        within("priority", priority, 0, 2**32 - 1)
    twice = within("copies", copies, 1, 2) == 2
    return unordered, immediate, lifetime, retransmissions, priority, urgency, twice


def within(option: str, value: int, least: int, most: int) -> int:
    """The value, if it is one of these."""
    if not least <= value <= most:
        raise OptionError(f"{option} = {value}: give a number from {least} to {most}")
    return value


def listed(option: str, texts: Texts) -> list[str]:
    """One text, or several; commas separate as on the command line."""
    found = texts.split(",") if isinstance(texts, str) else list(texts)
    found = [text.strip() for text in found]
    if not found:
        raise OptionError(f"{option} is empty: give at least one")
    return found


def listen_key(
    key: KeyLike | None, allow: Texts | None, peers: PathLike[str] | str | None, plain: bool
) -> tuple[Key | None, list[str] | None]:
    """The own key, and the names and keys that are admitted."""
    if plain:
        if key is not None or allow is not None:
            raise OptionError(f"plain=True excludes key and allow: {NOBODY}")
        return None, None
    if allow is None:
        return own_key(key, False), None
    allowed = listed("allow", allow)
    named = [native.net_find_peer("allow", text, peers)[2] for text in allowed]
    return own_key(key, any(named)), allowed


def connect_peer(
    to: Texts | None,
    key: KeyLike | None,
    peer: str | None,
    peers: PathLike[str] | str | None,
    plain: bool,
) -> tuple[Texts, tuple[Key, str] | None]:
    """The peer's addresses; the own key and the peer's."""
    if plain:
        if key is not None or peer is not None:
            raise OptionError(f"plain=True excludes key and peer: {NOBODY}")
        if to is None:
            raise OptionError("to is missing: give the peer's addresses")
        return to, None
    if peer is None:
        raise OptionError(
            "peer is missing: give the name of a paired peer, the listener's public key, "
            "or plain=True on both sides"
        )
    public, addresses, is_name = native.net_find_peer("peer", peer, peers)
    if to is None and not addresses:
        raise OptionError(f"to is missing: no address of {peer} is known")
    return (addresses if to is None else to), (own_key(key, is_name), public)


def further_peer(
    to: Texts | None, peer: str | None, peers: PathLike[str] | str | None, plain: bool
) -> tuple[Texts, str | None]:
    """The addresses and the public key of a peer to which a listener connects."""
    if plain:
        return connect_peer(to, None, peer, peers, plain)[0], None
    if peer is None:
        raise OptionError("peer is missing: give the name of a paired peer, or its public key")
    public, addresses, _ = native.net_find_peer("peer", peer, peers)
    if to is None and not addresses:
        raise OptionError(f"to is missing: no address of {peer} is known")
    return (addresses if to is None else to), public


def own_key(key: KeyLike | None, named: bool) -> Key:
    """The key that is given; for a peer that is given by name, the default key that it was paired with."""
    if key is not None:
        return key_of(key)
    file = native.net_default_key() if named else None
    return generate_key() if file is None else key_of(file)


def split(option: str, text: str, port: int) -> tuple[str, int]:
    """Host and port: ``192.0.2.7``, ``192.0.2.7:9000``, ``[2001:db8::1]:9000`` or a name."""
    try:
        return str(ipaddress.ip_address(text.removeprefix("[").removesuffix("]"))), port
    except ValueError:
        host, colon, number = text.rpartition(":")
    if not colon:
        host, number = text, str(port)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not number.isascii() or not number.isdigit() or int(number) > 65_535:
        raise OptionError(
            f"{option} = {text!r} is not an address: "
            "192.0.2.7, 192.0.2.7:9000 and [2001:db8::1]:9000 are"
        )
    return host, int(number)


def numeric(host: str, port: int) -> str | None:
    """The address as text; None for a name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def places(option: str, texts: Texts) -> list[Place]:
    """Own addresses to listen on."""
    found = [(text, numeric(*split(option, text, PORT))) for text in listed(option, texts)]
    for text, address in found:
        if address is None:
            raise OptionError(
                f"{option} = {text!r}: give an address of this machine, as 192.0.2.7:9000"
            )
    return [(address, None) for _, address in found if address is not None]


def sources(via: Texts | None, remotes: list[str]) -> list[Place]:
    """Addresses or interfaces to send from; by default the system's choice."""
    anywhere = [
        where
        for where, is_there in [
            ("0.0.0.0:0", any(not remote.startswith("[") for remote in remotes)),
            ("[::]:0", any(remote.startswith("[") for remote in remotes)),
        ]
        if is_there
    ]
    if via is None:
        return [(where, None) for where in anywhere]
    found: list[Place] = []
    for text in listed("via", via):
        host, port = split("via", text, 0)
        address = numeric(host, port)
        found += [(address, None)] if address else [(where, text) for where in anywhere]
    return found


def targets(to: Texts) -> list[tuple[str, int]]:
    """Hosts and ports of the peer, names not yet looked up."""
    found = [split("to", text, PORT) for text in listed("to", to)]
    for host, port in found:
        if port == 0:
            raise OptionError(f"to = '{host}:0': give the peer's port; the default is {PORT}")
    return found


def first_address(host: str, port: int, answers: list[Any] | OSError) -> str:
    """The first of a name's addresses."""
    if isinstance(answers, OSError):
        raise OptionError(f"to = '{host}:{port}': {answers.strerror or answers}") from answers
    address = numeric(answers[0][4][0], port)
    if address is None:
        raise OptionError(f"to = '{host}:{port}': the name has no usable address")
    return address


def look_up(host: str, port: int) -> str:
    """The address of a host, asking the system for names."""
    known = numeric(host, port)
    if known is not None:
        return known
    answers: list[Any] | OSError
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except OSError as error:
        answers = error
    return first_address(host, port, answers)

"""What blocking and asyncio associations have in common besides messages, streams and addresses."""

from __future__ import annotations

from typing import Literal, TypedDict, Unpack

from ropewalk import _ropewalk as native
from ropewalk.errors import ClosedError, OptionError
from ropewalk.net import _options as options
from ropewalk.net._figures import Parameters, PathTimers, Status, Undelivered
from ropewalk.net._options import Texts

GONE = "the association has ended, and its figures are gone"


class ParameterChanges(TypedDict, total=False):
    """Arguments of :meth:`Association.set_parameters`; :class:`Parameters` describes them."""

    rto_initial_s: float
    rto_min_s: float
    rto_max_s: float
    association_max_retrans: int
    path_max_retrans: int
    potentially_failed_max_retrans: int
    max_init_retransmits: int
    heartbeat_interval_s: float
    heartbeat_burst: int
    max_burst: int
    sack_delay_s: float
    sack_every_packets: int
    cookie_life_s: float


class Control:
    """Status, timers and parameters of an association, and what it did not deliver."""

    _control: native.AssociationControl

    def unsent(self) -> list[Undelivered]:
        """Messages of which nothing was ever sent, oldest first (RFC 9260, 11.1.14).

        Meant for use after the association has failed or was aborted; does not wait. The peer has nothing of them.
        """
        return [Undelivered(*fields) for fields in self._control.undelivered(False)]

    def unacknowledged(self) -> list[Undelivered]:
        """Messages that were sent and not acknowledged to their end, oldest first (RFC 9260, 11.1.15).

        Meant for use after the association has failed or was aborted; does not wait. The peer may have received them:
        a message that is sent again over another association may arrive twice.
        """
        return [Undelivered(*fields) for fields in self._control.undelivered(True)]

    @property
    def close_reason(self) -> str | None:
        """Why the association has ended. None: it has not."""
        return self._control.close_reason()

    def status(self) -> Status:
        """State, windows, queues and streams.

        Raises
        ------
        ClosedError
            The association is gone.
        """
        found = self._control.status()
        if found is None:
            raise ClosedError(GONE)
        return Status(**found)

    def path_timers(self, path: int) -> PathTimers:
        """Timers of a path.

        Raises
        ------
        OptionError
            There is no such path.
        """
        found = self._control.path_timers(path_number(path))
        if found is None:
            raise no_path(path)
        return PathTimers(*found)

    def set_primary(self, path: int) -> None:
        """Make a path the primary one: it carries all data while only one path is used (RFC 9260, 6.4).

        Parameters
        ----------
        path
            Its number, the index in :attr:`Stats.paths`.

        Raises
        ------
        OptionError
            There is no such path.
        """
        if not self._control.set_primary(path_number(path)):
            raise no_path(path)

    def set_heartbeats(
        self, path: int, *, enabled: bool = True, interval: float | None = None
    ) -> None:
        """Set whether an idle path is probed, and how often.

        Without probes, the failure of an idle path is not noticed, and neither is the recovery of a failed one.

        Parameters
        ----------
        path
            Its number, the index in :attr:`Stats.paths`.
        enabled
            Whether it is probed.
        interval
            Seconds between probes; by default ``heartbeat_interval_s`` of :class:`Parameters`.

        Raises
        ------
        OptionError
            There is no such path, or the interval is negative.
        """
        if not self._control.set_heartbeats(path_number(path), enabled, interval):
            raise no_path(path)

    def request_heartbeat(self, path: int) -> bool:
        """Probe a path now. Returns whether that was possible.

        The path must be confirmed, and the association established. :class:`PathStats` shows the round trip afterwards.
        """
        return self._control.request_heartbeat(path_number(path))

    def set_dscp(self, dscp: int, path: int | None = None) -> None:
        """Set the class of service that packets ask the network for (RFC 2474). Only Linux sends marked packets.

        Where it changes, the congestion window of the path starts over (RFC 9260, 7.2.5.1).

        Parameters
        ----------
        dscp
            The code point, 0 to 63; 0 is best effort.
        path
            The number of a path; by default all paths, also those that are added later.

        Raises
        ------
        OptionError
            There is no such path or code point.
        """
        number = None if path is None else path_number(path)
        known = self._control.set_dscp(number, options.dscp_number(dscp))
        if not known and path is not None:
            raise no_path(path)

    def set_path_max_retrans(self, path: int, most: int | None) -> None:
        """Set after how many consecutive errors a path is inactive; None: as :class:`Parameters` says.

        Raises
        ------
        OptionError
            There is no such path.
        """
        if most is not None:
            options.within("most", most, 0, 2**32 - 1)
        if not self._control.set_path_max_retrans(path_number(path), most):
            raise no_path(path)

    def parameters(self) -> Parameters:
        """The protocol parameters. Raises :class:`ClosedError` if the association is gone."""
        found = self._control.parameters()
        if found is None:
            raise ClosedError(GONE)
        return Parameters(**found)

    def set_parameters(self, **changes: Unpack[ParameterChanges]) -> None:
        """Change protocol parameters from now on; the others stay.

        Parameters
        ----------
        **changes
            Fields of :class:`Parameters`.

        Raises
        ------
        OptionError
            A value is out of its range; nothing changes.
        ClosedError
            The association is gone.
        """
        if not self._control.set_parameters(dict(changes)):
            raise ClosedError(GONE)

    def abandoned_messages(
        self,
        *,
        stream: int | None = None,
        policy: Literal["lifetime", "retransmissions", "priority"] | None = None,
    ) -> int:
        """Number of messages so far that were given up because of ``lifetime``, ``retransmissions`` or ``priority``.

        Parameters
        ----------
        stream
            Only those of this stream.
        policy
            Only those that were given up for this reason.
        """
        if stream is not None:
            options.within("stream", stream, 0, 65_535)
        return sum(self._control.abandoned_messages(stream, policy))

    @property
    def accepted_requests(self) -> list[str]:
        """Which requests of the peer about streams are performed, as in :class:`Extensions`."""
        return self._control.accepted_requests

    def set_accepted_requests(self, accepted: Texts) -> None:
        """Change which requests of the peer about streams are performed; empty: none.

        Raises
        ------
        OptionError
            There is no such request.
        """
        names = options.listed("accepted", accepted) if accepted else []
        self._control.set_accepted_requests(names)

    @property
    def peer_adaptation(self) -> int | None:
        """What the peer says about the layer above SCTP (``adaptation`` of its options). None: nothing."""
        return self._control.peer_adaptation

    @property
    def peer_authenticated_chunks(self) -> list[str]:
        """Names of the chunks that the peer accepts only if this end authenticates them."""
        return self._control.peer_authenticated_chunks

    def set_follow_interfaces(self, on: bool) -> None:
        """Set whether own addresses that appear and disappear are announced, as ``follow_interfaces`` does."""
        self._control.set_follow_interfaces(on)


def path_number(path: int) -> int:
    """A number that the native half takes."""
    if path < 0:
        raise no_path(path)
    return path


def no_path(path: int) -> OptionError:
    """The error for a path that does not exist."""
    return OptionError(f"path = {path}: there is no such path; stats().paths lists them from 0")

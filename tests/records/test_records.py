"""A record of a real sender gives the link that it was made on, and the written scenario carries what the record carried."""

import os
from pathlib import Path

import pytest
from records import Link, judge, missing

REASON = missing()


@pytest.mark.skipif(REASON is not None, reason=str(REASON))
@pytest.mark.parametrize("at_receiver", [False, True])
def test_a_capture_of_a_full_link_gives_its_queue_and_no_random_losses(at_receiver: bool) -> None:
    link = Link(
        rate_mbps=20, down_mbps=2, rtt_ms=30, queue_bytes=150_000, loss=0, congestion="cubic", at_receiver=at_receiver
    )
    verdict = judge(Path(os.environ["ROPEWALK"]).resolve(), link, seconds=6)
    assert verdict.losses is not False, verdict.said
    assert verdict.rate, verdict.said
    assert verdict.rtt, verdict.said
    assert verdict.queue is not False, verdict.said
    assert verdict.run, verdict.said

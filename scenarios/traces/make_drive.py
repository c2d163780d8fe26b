"""Makes drive.mahi: 30 s of a cellular link on the road, as delivery opportunities of 1504 B.

The rate is a formula, so anybody gets the same file: a slow wave (cells come and go), a quicker
one (fading), and a tunnel from 18 s to 20 s. Run: python3 make_drive.py > drive.mahi
"""

import math

LENGTH_MS = 30_000
OPPORTUNITY_BITS = 1504 * 8


def rate_bps(t: float) -> float:
    """Rate at t seconds, from 0 to 12 Mbit/s."""
    if 18.0 <= t < 20.0:
        return 0.0
    cells = 6.0 + 4.0 * math.sin(2.0 * math.pi * t / 10.0)
    fading = 2.0 * math.sin(2.0 * math.pi * t / 1.7 + 1.0)
    return max(0.2, cells + fading) * 1e6


def main() -> None:
    bits = 0.0
    last = 0
    for ms in range(1, LENGTH_MS + 1):
        bits += rate_bps(ms / 1000.0) / 1000.0
        while bits >= OPPORTUNITY_BITS:
            bits -= OPPORTUNITY_BITS
            last = ms
            print(ms)
    if last != LENGTH_MS:
        print(LENGTH_MS)  # the last line is the length of the trace


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT
"""How large and how long the measures are: in full, and with QUICK=1."""

import dataclasses

BIG_WAITING = 10000000  # with BIG=1
THREADS = 16


@dataclasses.dataclass
class Sizes:
    waiting: list  # jobs that wait while others are measured, one measure each
    idle_at: int  # waiting while nothing happens
    idle_s: int
    calm_ms: int  # after the start of a listener, before it counts as idle
    run_s: int  # of most runs
    long_s: int
    lead_ms: int
    jitter_ms: int
    hopeless_s: int  # how long a system may take that loses events
    burst: int
    bulk: int
    singly: int
    others: int  # waiting where their number is not the subject
    stopped_s: int
    queues: int
    queues_s: int
    rtts_us: list  # round trips that the network adds
    slow_s: int  # of runs at a few hundred jobs a second, and of those beside trouble

    @property
    def most(self):
        return self.waiting[-1]


FULL = Sizes(
    waiting=[10000, 100000, 1000000],
    idle_at=100000,
    idle_s=20,
    calm_ms=3000,
    run_s=10,
    long_s=100,
    lead_ms=1000,
    jitter_ms=1000,
    hopeless_s=20,
    burst=100000,
    bulk=100000,
    singly=5000,
    others=100000,
    stopped_s=8,
    queues=10000,
    queues_s=20,
    rtts_us=[0, 200, 1000, 5000],
    slow_s=10,
)

QUICK = Sizes(
    waiting=[1000, 30000],
    idle_at=1000,
    idle_s=2,
    calm_ms=500,
    run_s=1,
    long_s=2,
    lead_ms=300,
    jitter_ms=200,
    hopeless_s=2,
    burst=10000,
    bulk=20000,
    singly=1000,
    others=10000,
    stopped_s=2,
    queues=10000,
    queues_s=5,
    rtts_us=[1000],
    slow_s=1,
)

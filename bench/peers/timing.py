"""Alternating measurement: contestants take turns, and none starts before the threads of the last one sleep."""

import gc
import math
import os
import statistics
import time
from dataclasses import dataclass, field

TURN_SECONDS = 0.08
WARM_SECONDS = 0.02
SAMPLE_SECONDS = 100e-6  # shorter calls are timed many at a time
LONG_SECONDS = 0.1  # such a call needs no warm-up, and one is a turn
AWAKE_SHARE = 0.05
PATIENCE_SECONDS = 2.0


class NotSettling(Exception):
    """Somebody's threads go on spinning, so nobody can be timed beside them."""


def settle():
    """Waits until this process uses no processor time: thread pools spin for a while after a call."""
    deadline = time.perf_counter() + PATIENCE_SECONDS
    while time.perf_counter() < deadline:
        used, passed = time.process_time(), time.perf_counter()
        time.sleep(0.01)
        if time.process_time() - used < AWAKE_SHARE * (time.perf_counter() - passed):
            return
    raise NotSettling("threads of this process still run two seconds after the last call")


def others_busy_seconds():
    """Core seconds that other processes have used since the machine started; 0 where the system does not tell."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, idle, waiting, *interrupts_and_stolen = map(int, file.readline().split()[1:9])
    except OSError:
        return 0.0
    return (user + nice + system + sum(interrupts_and_stolen)) / os.sysconf("SC_CLK_TCK") - time.process_time()


@dataclass
class Contestant:
    """Somebody's way to do the case: run() does it once, result() gives what it wrote."""

    peer: str
    variant: str
    run: callable
    result: callable
    error: float = 0.0
    seconds: list = field(default_factory=list)

    @property
    def best(self):
        return min(self.seconds)

    @property
    def median(self):
        return statistics.median(self.seconds)


def turn(contestant, seconds=TURN_SECONDS, hopeless=math.inf):
    """One turn: warm-up calls, then samples; at least one of each, but one call alone where it is long or took `hopeless` seconds."""
    settle()
    run, clock = contestant.run, time.perf_counter
    begin = clock()
    calls = 0
    while calls == 0 or clock() - begin < WARM_SECONDS:
        run()
        calls += 1
    per_call = (clock() - begin) / calls
    if per_call > min(hopeless, LONG_SECONDS):
        contestant.seconds.append(per_call)
        return
    repeat = range(max(1, round(SAMPLE_SECONDS / per_call)))
    end = clock() + seconds
    while True:
        start = clock()
        for _ in repeat:
            run()
        stop = clock()
        contestant.seconds.append((stop - start) / len(repeat))
        if stop >= end:
            return


def best_of(variants, tell):
    """The fastest after one short turn each; one alone needs none."""
    if len(variants) == 1:
        return variants[0]
    best = math.inf
    for variant in variants:
        turn(variant, TURN_SECONDS / 2, 2 * best)
        best = min(best, variant.best)
        tell(f"  {variant.peer}, {variant.variant}: {variant.best * 1e6:.1f} µs, error {variant.error:.1e}")
    winner = min(variants, key=lambda variant: variant.best)
    winner.seconds.clear()
    return winner


def alternate(contestants, rounds):
    """Gives each `rounds` turns. Returns how many cores other processes used meanwhile: more than a few hundredths spoil the times."""
    gc.collect()
    gc.disable()
    began, busy = time.perf_counter(), others_busy_seconds()
    try:
        for _ in range(rounds):
            for contestant in contestants:
                turn(contestant)
    finally:
        gc.enable()
    return (others_busy_seconds() - busy) / (time.perf_counter() - began)

"""Run keys stay where they were born, and no two draws share bits."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from dpfit.privacy.charged_releases import ChargedReleases
from dpfit.privacy.mechanisms.gaussian import GaussianNoise
from dpfit.privacy.mechanisms.noise import ExactNoise
from dpfit.privacy.random_bits import BitSource, RunKey

KEY = RunKey.from_seed(11)


@pytest.mark.parametrize("action", [pickle.dumps, copy.copy, copy.deepcopy])
def test_key_is_neither_pickled_nor_copied(action: object) -> None:
    """Not alone and not inside a source or a sampler."""
    with pytest.raises(TypeError, match="pickled nor copied"):
        action(RunKey.from_system())  # type: ignore[operator]


@pytest.mark.parametrize("action", [pickle.dumps, copy.copy, copy.deepcopy])
def test_no_holder_of_a_key_is_pickled_or_copied(action: Any) -> None:
    """A source shares its key with no second one, and charged releases their steps."""
    source = BitSource(KEY)
    for owner in (source, ChargedReleases([], ExactNoise(source))):
        with pytest.raises(TypeError, match="neither pickled nor copied"):
            action(owner)
    if (
        action is not copy.copy
    ):  # a second sampler on one source is harmless: steps are the caller's
        with pytest.raises(TypeError, match="neither pickled nor copied"):
            action(GaussianNoise(source))


def test_threads_with_sources_of_their_own_share_no_state() -> None:
    """At one moment, on one key: each gets the words of its own steps, as it would alone."""
    alone = [BitSource(KEY).main(step, 0).take(5000).copy() for step in range(8)]
    together = threading.Barrier(8)

    def draw(step: int) -> Any:
        source = BitSource(KEY)
        together.wait()
        return [source.main(step, 0).take(5000).copy() for _ in range(20)]

    with ThreadPoolExecutor(8) as pool:
        for step, drawn in enumerate(pool.map(draw, range(8))):
            assert all(np.array_equal(words, alone[step]) for words in drawn)
    assert len({words.tobytes() for words in alone}) == 8


def test_key_is_not_shown() -> None:
    """repr and str carry no key byte."""
    assert "<RunKey reproducible=True>" == repr(KEY) == str(KEY)


def test_reproducible_is_marked() -> None:
    """Seeded keys say so; system keys are fresh."""
    assert RunKey.from_seed(1).reproducible
    assert not RunKey.from_system().reproducible
    words = [BitSource(k).deep(0, 0, 0, 0, 0) for k in (RunKey.from_system(), RunKey.from_system())]
    assert words[0] != words[1]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_is_refused() -> None:
    """A child can neither continue its parent's stream nor start one, a subkey or a word."""
    source = BitSource(KEY)
    stream = source.main(0, 0)
    index = np.arange(3)
    attempts = [
        lambda: stream.take(4),
        lambda: source.main(1, 0),
        lambda: source.aux(0, index, 0, 1),
        lambda: source.deep(0, 0, 0, 0, 0),
        lambda: BitSource(KEY),
        lambda: GaussianNoise(source).integers(40, 10, 0),
    ]
    child = os.fork()
    if not child:
        refused = 0
        for attempt in attempts:
            try:
                attempt()
            except RuntimeError:
                refused += 1
        os._exit(0 if refused == len(attempts) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("first", [0, 1, 2, 31, 1000])
def test_stream_is_positioned(first: int) -> None:
    """Word i of a step is the same whatever index the stream starts at, and however taken."""
    whole = BitSource(KEY).main(9, 0).take(3000).copy()
    stream = BitSource(KEY).main(9, first)
    parts = [stream.take(count).copy() for count in (1, 2, 1000, 3)]
    np.testing.assert_array_equal(whole[first : first + 1006], np.concatenate(parts))


def test_older_stream_is_refused() -> None:
    """Starting a stream ends the one before: it cannot go on with the newer one's words."""
    source = BitSource(KEY)
    older = source.main(0, 0)
    source.main(1, 0)
    with pytest.raises(RuntimeError, match="another stream"):
        older.take(1)


def test_aux_rounds_are_positioned() -> None:
    """Words of a round do not depend on which rounds or indices are asked for together."""
    source = BitSource(KEY)
    index = np.array([5, 0, 2**40 - 1, 77])
    together = source.aux(3, index, 2, 5).copy().reshape(4, 5, 4)
    for row, i in enumerate(index):
        for k in range(5):
            alone = source.aux(3, np.array([i]), 2 + k, 1)[0]
            np.testing.assert_array_equal(alone, together[row, k])


def test_no_two_draws_share_bits() -> None:
    """Extreme field values of every kind give pairwise distinct words."""
    source = BitSource(KEY)
    steps, indices, rounds = (0, 1, 2**31), (0, 1, 2, 2**40 - 2), (0, 1, 2**16 - 1)
    words: list[int] = []
    for step in steps:
        for index in indices:
            words += source.main(step, index).take(1).tolist()
            for round_ in rounds:
                words += source.aux(step, np.array([index]), round_, 1)[0].tolist()
                small = [(v, w) for v in (0, 1, 255) for w in (0, 1, 255)]
                words += [source.deep(step, index, round_, v, w) for v, w in small]
    assert len(words) == len(set(words))


def test_values_that_do_not_fit_are_refused() -> None:
    """A field that would spill into its neighbour is an error, not a collision."""
    source = BitSource(KEY)
    one = np.array([0])
    spills = [
        lambda: source.main(2**32, 0),
        lambda: source.main(-1, 0),
        lambda: source.main(0, 2**40),
        lambda: source.main(0, 2**40 - 1).take(2),
        lambda: source.aux(0, np.array([2**40]), 0, 1),
        lambda: source.aux(0, np.array([-1]), 0, 1),
        lambda: source.aux(0, one, 2**16 - 1, 2),
        lambda: source.deep(0, 0, 2**16, 0, 0),
        lambda: source.deep(0, 0, 0, 256, 0),
        lambda: source.deep(0, 0, 0, 0, 256),
    ]
    for spill in spills:
        with pytest.raises(ValueError, match="outside"):
            spill()


def test_key_length() -> None:
    """Only 256-bit keys."""
    with pytest.raises(ValueError, match="32 bytes"):
        RunKey(bytes(16), reproducible=True)

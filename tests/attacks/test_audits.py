"""Attacks on every algorithm: none shows more than is claimed, and the audit itself can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attacks.configurations import TABLE, Configuration
from dpfit.audit import trial_keys
from dpfit.audit.audit import ATTACKS, Audit, Finding
from dpfit.audit.matrix_worlds import matrix_worlds
from dpfit.audit.one_run import ABLE, Guesses, OneRun
from dpfit.audit.score_attack import ScoreAttack
from dpfit.audit.worlds import linear_worlds
from dpfit.fitting.algorithm_traits import ALGORITHMS
from dpfit.fitting.matrix_request import PRIVATE, MatrixRequest
from dpfit.fitting.request import FitRequest
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.mechanisms.noise import ExactNoise, Noise, noise_of
from dpfit.privacy.user_release import NoiseLaw

DELTA = 1e-5
BUDGET = Budget.from_request(8.0, DELTA, None, None)
SEED = 1  # keys from a seed: these tests give the same answer every time


def request(algorithm: str, **settings: object) -> FitRequest:
    return FitRequest(
        sparsity=2 if ALGORITHMS[algorithm].sparsity else None,
        budget=BUDGET,
        dataset="synthetic",
        algorithm=algorithm,
        loss="absolute" if algorithm.startswith("median") else "logistic",
        **settings,  # type: ignore[arg-type]
    )


def ignore(done: int) -> None:
    pass


def weaken(monkeypatch: pytest.MonkeyPatch, divisor: int) -> None:
    """From here on, noise that is so many times smaller than was charged."""

    class Weakened(ExactNoise):
        def integers(self, scale_bits: int, size: int, step: int):  # type: ignore[no-untyped-def]
            return super().integers(scale_bits, size, step) // divisor

    def noise(**asked: object) -> Noise:
        real = noise_of(**asked)  # type: ignore[arg-type]
        assert isinstance(real, ExactNoise)
        return Weakened(real._bits)

    monkeypatch.setattr(trial_keys, "noise_of", noise)


def finding(asked: FitRequest, trials: int, attack: str | None = None, rows: int = 20) -> Finding:
    worlds = linear_worlds(asked, rows, 3, black_box=attack == "black-box")
    return Audit(worlds, attack=attack, trials=trials, delta=DELTA, seed=SEED).run(ignore)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_attack_shows_more_than_is_claimed(
    algorithm: str, adjacency: Adjacency, attack: str
) -> None:
    """Of every algorithm, under both neighbouring relations, by what it releases on the way and by
    its model alone."""
    steps = {"iterations": 3} if "iterations" in ALGORITHMS[algorithm].settings else {}
    assert not finding(request(algorithm, adjacency=adjacency, **steps), 40, attack).refuted


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("law", ["gaussian", "laplace", "huber"])
def test_no_attack_on_ratings_shows_more(law: str, adjacency: Adjacency, attack: str) -> None:
    """Nor of a completion of ratings, with noise of any law."""
    asked = MatrixRequest(
        BUDGET if law == "gaussian" else Budget.from_request(8.0, None, None, None, pure=True),
        "synthetic",
        (0.0, 1.0),
        noise=law,
        adjacency=adjacency,
        passes=2,
    )
    worlds = matrix_worlds(asked, 20, 3)
    audit = Audit(worlds, attack=attack, trials=24, delta=DELTA, seed=SEED)
    assert not audit.run(ignore).refuted


@pytest.mark.parametrize("adjacency", Adjacency)
def test_one_release_is_tight(adjacency: Adjacency) -> None:
    """Of one Gaussian release the bound comes within 15 % of the claim in mu."""
    found = finding(request("dp-gd", iterations=1, adjacency=adjacency), 1000)
    assert 0.85 * found.claimed.mu() <= found.mu.value <= found.claimed.mu()
    assert found.estimate.low <= found.claimed.mu() <= found.estimate.high


@pytest.mark.parametrize("algorithm", ["dp-gd", "dp-ight"])
def test_a_run_of_many_steps_is_tight(algorithm: str) -> None:
    """So does that of a run of many: the charge of their sum has no slack either."""
    found = finding(request(algorithm, iterations=6), 600, rows=500)
    assert 0.85 * found.claimed.mu() <= found.mu.value <= found.claimed.mu()
    assert found.estimate.value == pytest.approx(found.claimed.mu(), rel=0.15)


def test_a_completion_is_tight() -> None:
    """And that of biases of items, under privacy of whole users."""
    asked = MatrixRequest(BUDGET, "synthetic", (0.0, 1.0), rank=0, passes=2)
    audit = Audit(matrix_worlds(asked, 20, 24), trials=400, delta=DELTA, seed=SEED)
    found = audit.run(ignore)
    assert 0.85 * found.claimed.mu() <= found.mu.value <= found.claimed.mu()


def test_every_algorithm_and_law_of_noise_is_in_the_table() -> None:
    """A new one without an audit is noticed."""
    assert {one.algorithm for one in TABLE} == {*ALGORITHMS, PRIVATE}
    laws = {law for law in NoiseLaw for one in TABLE if f"{PRIVATE} --noise {law}" in one.asked}
    assert laws == set(NoiseLaw) - {NoiseLaw.GAUSSIAN}  # which needs no name


@pytest.mark.parametrize("configuration", TABLE, ids=lambda one: one.asked)
def test_the_claims_of_the_table_hold(configuration: Configuration) -> None:
    """A short version of it."""
    few = {} if "one-run" in configuration.asked else {"trials": 20}
    assert not configuration.audit(seed=SEED, **few).run(ignore).refuted


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_record_is_found_by_its_score(algorithm: str) -> None:
    """The score attack of the literature, on typical records, shows no more either."""
    steps = {"iterations": 3} if "iterations" in ALGORITHMS[algorithm].settings else {}
    attack = ScoreAttack(request(algorithm, **steps), 20, 3, seed=SEED)
    audit = Audit(
        attack.worlds, attack="score", scores=attack.scores, trials=40, delta=DELTA, seed=SEED
    )
    assert not audit.run(ignore).refuted


@pytest.mark.parametrize("attack", ATTACKS)
def test_screened_columns_are_attacked(attack: str) -> None:
    """Gradients on fewer columns than the screen was of are evidence like any other."""
    asked = replace(request("dp-screen"), sparsity=2)
    assert finding(asked, 20, attack).estimate.value > 0.5


def one_run(algorithm: str, adjacency: Adjacency = Adjacency.REPLACE_ONE) -> Guesses:
    asked = request(algorithm, adjacency=adjacency, iterations=3, step_size=0.2)
    audit = OneRun(asked, 500, delta=DELTA, confidence=0.95, seed=SEED)
    return audit.run(ignore)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("algorithm", ABLE)
def test_one_run_shows_a_part_of_the_claim(algorithm: str, adjacency: Adjacency) -> None:
    """A single run with many canaries shows something, and no more than is claimed."""
    found = one_run(algorithm, adjacency)
    assert not found.refuted
    assert found.epsilon > 1.0


def test_one_run_without_noise_breaks_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hundredth of the noise nearly all guesses are right, which is seen from one run."""
    small = Budget.from_request(0.5, DELTA, None, None)
    weaken(monkeypatch, 100)
    asked = replace(request("dp-gd", iterations=3, step_size=0.2), budget=small)
    assert OneRun(asked, 500, delta=DELTA, confidence=0.95, seed=SEED).run(ignore).refuted


def test_a_finished_score_attack_has_power(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hardly any noise the score tells the worlds apart, beyond a small claim."""
    small = Budget.from_request(0.5, DELTA, None, None)
    weaken(monkeypatch, 100)
    asked = replace(request("dp-gd", iterations=3, step_size=0.2), budget=small)
    attack = ScoreAttack(asked, 20, 3, seed=SEED)
    audit = Audit(
        attack.worlds, attack="score", scores=attack.scores, trials=100, delta=DELTA, seed=SEED
    )
    assert audit.run(ignore).refuted


@pytest.mark.parametrize("iterations", [1, 4])
def test_too_little_noise_is_found(monkeypatch: pytest.MonkeyPatch, iterations: int) -> None:
    """With half of the noise the bound exceeds the claim, so the attack has power."""
    weaken(monkeypatch, 2)
    found = finding(request("dp-gd", iterations=iterations, step_size=0.2), 400)
    assert found.mu.value > 1.3 * found.claimed.mu()
    assert found.refuted


def test_too_little_noise_is_found_in_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a single step the model alone tells it, too."""
    weaken(monkeypatch, 2)
    found = finding(request("dp-gd", iterations=1, step_size=0.2), 400, "black-box")
    assert found.refuted

"""Plant known faults one by one and show which test turns red.

usage: python tests/mutations.py [--keep] [NAME ...]

Each fault is a change of one line in a copy of the package; the named tests run against the copy.
Exit status 1 if a fault survives, or if the tests fail without one. ``--keep`` writes what caught
each fault to ``tests/mutations.txt``, beside what that table says of faults that were not run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = Path(__file__).with_suffix(".txt")
SURVIVED = "SURVIVED"


@dataclass(frozen=True)
class Fault:
    """A planted fault: ``old`` becomes ``new`` in ``file``, and ``tests`` must notice."""

    name: str
    file: str
    old: str
    new: str
    tests: str


FAULTS = [
    Fault(
        "noise of numpy's floats",
        "privacy/charged_releases.py",
        "return self._noise.integers(release.scale_bits, size, self._next_step())",
        "return np.ldexp(np.random.standard_normal(size), release.scale_bits)",
        "tests/attacks/test_low_order_bits.py",
    ),
    Fault(
        "sensitivity K R instead of 2 K R",
        "privacy/gaussian_release.py",
        "replace_one=4 * squared_norm, add_remove",
        "replace_one=squared_norm, add_remove",
        "tests/laws/test_sensitivity.py",
    ),
    Fault(
        "intercept column left out of the sensitivity",
        "design/grid.py",
        "return self.integer_norm**2 + self.intercept_integer**2",
        "return self.integer_norm**2",
        "tests/laws/test_sensitivity.py",
    ),
    Fault(
        "budget of each step not divided by the steps",
        "privacy/gaussian_release.py",
        "share_of_one = squared_mu / (planned.charges * factor.under(adjacency))",
        "share_of_one = squared_mu / factor.under(adjacency)",
        "tests/laws/test_sensitivity.py",
    ),
    Fault(
        "noise scale off by 0.5 %",
        "privacy/mechanisms/strips.py",
        "        if n_waiting:\n            self._finish(step, first, waiting, out)",
        "        if n_waiting:\n            self._finish(step, first, waiting, out)\n"
        "        out[:] = (out * 0.995).astype(np.int64)",
        "tests/laws/test_strips_statistics.py",
    ),
    Fault(
        "sign stuck in the slow path",
        "privacy/mechanisms/strips.py",
        "(self._sign[trials] & 1)",
        "(self._sign[trials] & 0)",
        "tests/laws/test_strips_statistics.py",
    ),
    Fault(
        "tie rule removed",
        "privacy/mechanisms/strips.py",
        "for i in _where(tied):",
        "for i in _where(tied & False):",
        "tests/laws/test_strips_exact.py",
    ),
    Fault(
        "band decisions left to floats",
        "privacy/mechanisms/strips.py",
        "for i in _where(np.abs(statistic) <= self._band):",
        "for i in _where(np.abs(statistic) < 0):",
        "tests/laws/test_strips_exact.py",
    ),
    Fault(
        "noise only on columns with a non-zero sum",
        "privacy/charged_releases.py",
        "noisy += sums  #",
        "noisy *= sums != 0\n        noisy += sums  #",
        "tests/privacy/test_curator.py",
    ),
    Fault(
        "noise left off the intercept",
        "privacy/curator.py",
        "gradient = self._charged.noisy(release, sums).astype(np.float64)",
        "gradient = np.append(self._charged.noisy(release, sums[:-1]), sums[-1]) * 1.0",
        "tests/privacy/test_curator.py",
    ),
    Fault(
        "same noise at every step",
        "privacy/charged_releases.py",
        "step, self._step = self._step, self._step + 1",
        "step, self._step = 0, self._step + 1",
        "tests/privacy/test_curator.py",
    ),
    Fault(
        "one release more than charged",
        "privacy/charged_releases.py",
        "if release.quantity is not quantity or self._left[label] < 1:",
        "if release.quantity is not quantity or self._left[label] < 0:",
        "tests/privacy/test_curator.py",
    ),
    Fault(
        "NaN path removed",
        "privacy/residuals.py",
        "np.fmin(np.fmax(residual, -clip), clip)",
        "np.clip(residual, -clip, clip)",
        "tests/privacy/test_curator.py",
    ),
    Fault(
        "last integer clip of the residual and float clip removed",
        "privacy/residuals.py",
        "return np.asarray(np.clip(integers, -limits, limits))",
        "return np.rint(residual / clip * limits).astype(np.int64)",
        "tests/laws/test_sensitivity.py",
    ),
    Fault(
        "intercept left out of a point's longest margin",
        "privacy/logistic_sensitivity.py",
        "astype(np.float64) ** 2)) + intercept**2",
        "astype(np.float64) ** 2))",
        "tests/laws/test_logistic_sensitivity.py",
    ),
    Fault(
        "row norm left out of a point's longest margin",
        "privacy/logistic_sensitivity.py",
        "math.ldexp(grid.unit, -bits)",
        "math.ldexp(1.0 / grid.integer_norm, -bits)",
        "tests/laws/test_logistic_sensitivity.py",
    ),
    Fault(
        "logistic sensitivity taken as that of the zero point",
        "privacy/logistic_sensitivity.py",
        "return float(np.max(2.0 * sigmoids * roots)) * (1.0 + _OUTWARD)",
        "return 1.0 + _OUTWARD",
        "tests/laws/test_logistic_sensitivity.py",
    ),
    Fault(
        "sigmoid at the lower end of each cell",
        "privacy/logistic_sensitivity.py",
        "np.append(_LOGISTIC.mean(ends[1:]), 1.0)",
        "_LOGISTIC.mean(ends)",
        "tests/laws/test_logistic_sensitivity.py",
    ),
    Fault(
        "refined step of twice the charge",
        "privacy/logistic_sensitivity.py",
        "finest = (replaced - _ROUNDING)",
        "finest = (2 * replaced - _ROUNDING)",
        "tests/laws/test_logistic_sensitivity.py",
    ),
    Fault(
        "refined unit beyond the add-remove charge",
        "privacy/logistic_sensitivity.py",
        "max(unit, min(int(finest), zeroed))",
        "max(unit, int(finest))",
        "tests/laws/test_logistic_sensitivity.py",
    ),
    Fault(
        "offset of the point ignored in a refined step",
        "privacy/curator.py",
        "shifted = self._records.has_offset or np.any(point.offset)",
        "shifted = self._records.has_offset",
        "tests/laws/test_logistic_sensitivity.py",
    ),
    Fault(
        "offset of a record ignored in a refined step",
        "privacy/curator.py",
        "shifted = self._records.has_offset or np.any(point.offset)",
        "shifted = np.any(point.offset)",
        "tests/laws/test_logistic_sensitivity.py tests/privacy/test_curator.py",
    ),
    Fault(
        "squared loss given the logistic sensitivity",
        "privacy/logistic_sensitivity.py",
        "return loss.name == _LOGISTIC.name and planned.residual_clip > 0.5",
        "return planned.residual_clip > 0.5",
        "tests/laws/test_logistic_sensitivity.py",
    ),
    Fault(
        "nearest instead of truncation",
        "design/fixed_point.py",
        "clipped = np.trunc(",
        "clipped = np.rint(",
        "tests/design/test_fixed_point.py",
    ),
    Fault(
        "a release spent on another question",
        "privacy/charged_releases.py",
        "if release.quantity is not quantity or self._left[label] < 1:",
        "if self._left[label] < 1:",
        "tests/privacy/test_curator.py",
    ),
    Fault(
        "a minimiser of another objective than charged",
        "privacy/charged_releases.py",
        "if {release.objective, *(one.objective for one in vectors)} != {objective}:",
        "if False:",
        "tests/privacy/test_minimiser_door.py",
    ),
    Fault(
        "a minimiser without its random vector",
        "privacy/charged_releases.py",
        "if not (release.alone or vectors):",
        "if False:",
        "tests/privacy/test_minimiser_door.py",
    ),
    Fault(
        "a point under the certificate of the one before it",
        "privacy/minimise.py",
        "        step += 1\n",
        "        step += 1\n        if step == _MOST_STEPS:\n"
        "            return Minimum(point, distance)\n",
        "tests/privacy/test_minimise.py",
    ),
    Fault(
        "column means charged below sqrt(2)",
        "privacy/gaussian_release.py",
        "case Quantity.COLUMN_SUMS:\n            return PerAdjacency(replace_one=2,",
        "case Quantity.COLUMN_SUMS:\n            return PerAdjacency(replace_one=1,",
        "tests/laws/test_sensitivity_of_sums.py",
    ),
    Fault(
        "selection charged for one direction only",
        "privacy/selection_release.py",
        "sensitivity.times(Fraction(2 * self.unit, 1 << self.scale_bits))",
        "sensitivity.times(Fraction(self.unit, 1 << self.scale_bits))",
        "tests/laws/test_sensitivity_of_sums.py",
    ),
    Fault(
        "peeling charged half its sensitivity",
        "privacy/peeling_release.py",
        "sensitivity.times(Fraction(2 * self.unit, 1 << self.scale_bits))",
        "sensitivity.times(Fraction(self.unit, 1 << self.scale_bits))",
        "tests/laws/test_sensitivity_of_sums.py",
    ),
    Fault(
        "an intercept that overflows after the charge",
        "algorithms/noisy_descent.py",
        "_saturated(intercept)",
        "intercept",
        "tests/algorithms/test_dp_iht.py",
    ),
    Fault(
        "a vote that a tiny residual ends",
        "privacy/block_votes.py",
        "if bend > 0.0 else _LONGEST_STEP",
        "if True else _LONGEST_STEP",
        "tests/privacy/test_block_votes.py",
    ),
    Fault(
        "memory asked for after the charge",
        "fitting/linear_fit.py",
        "        self._records.check(self.plan.releases, loss.n_scores, self.plan.grid, source)\n",
        "",
        "tests/cli/test_losses.py",
    ),
    Fault(
        "a selection refused for what it does not cost",
        "fitting/plan.py",
        "if request.traits.selects:",
        "if False:",
        "tests/laws/test_algorithm_accounting.py",
    ),
    Fault(
        "the same noise in every round of peeling",
        "privacy/mechanisms/peeling.py",
        "        noisy = scores + fresh()\n",
        "        noise = fresh() if is_in.all() else noise\n        noisy = scores + noise\n",
        "tests/laws/test_peeling_law.py",
    ),
    Fault(
        "the same step number for all Laplace noise",
        "privacy/charged_releases.py",
        "return self._noise.laplace(release.scale_bits, size, self._next_step())",
        "return self._noise.laplace(release.scale_bits, size, 0)",
        "tests/algorithms/test_dp_iht.py",
    ),
    Fault(
        "ties of peeling to the higher index",
        "privacy/mechanisms/peeling.py",
        "is_in[np.argmax(noisy)] = False",
        "is_in[len(noisy) - 1 - np.argmax(noisy[::-1])] = False",
        "tests/laws/test_peeling_law.py",
    ),
    Fault(
        "peeling not checked for wrap-around",
        "privacy/private_records.py",
        "if isinstance(release, SelectionRelease | PeelingRelease):",
        "if isinstance(release, SelectionRelease):",
        "tests/fitting",
    ),
    Fault(
        "the same noise on a column and its negative",
        "privacy/charged_releases.py",
        "peel(signed, 1, lambda: self._fresh_laplace(release, len(signed)))",
        "peel(signed, 1, lambda: np.tile(self._fresh_laplace(release, len(scores)), 2))",
        "tests/laws/test_printed_calibration.py",
    ),
    Fault(
        "printed noise of a zeroed record halved",
        "privacy/printed_noise.py",
        "shares = 2 if adjacency is Adjacency.REPLACE_ONE else 1",
        "shares = 2",
        "tests/laws/test_printed_calibration.py",
    ),
    Fault(
        "printed noise undercut by refined steps",
        "fitting/plan.py",
        "refining = None if request.printed else loss",
        "refining = loss",
        "tests/laws/test_printed_calibration.py",
    ),
    Fault(
        "printed noise checked ahead as what was asked",
        "fitting/plan.py",
        "    if not request.printed:\n",
        "    if True:\n",
        "tests/laws/test_printed_calibration.py",
    ),
    Fault(
        "l1 sensitivity without the intercept's column",
        "privacy/laplace_release.py",
        "norm = min((chosen + 1) * grid.largest_entry, ",
        "norm = min(chosen * grid.largest_entry, ",
        "tests/laws/test_sensitivity_of_sums.py",
    ),
    Fault(
        "a vote that weighs more than it is charged",
        "privacy/curator.py",
        "self._charged.choose(release, votes * release.unit)",
        "self._charged.choose(release, votes * release.unit * 2**20)",
        "tests/privacy/test_block_votes.py",
    ),
    Fault(
        "blocks of rows overlap",
        "design/row_blocks.py",
        "positions = slice(block, None, n_blocks)",
        "positions = slice(block, None, max(1, n_blocks // 2))",
        "tests/privacy/test_block_votes.py",
    ),
    Fault(
        "entry clip not applied",
        "design/builder.py",
        "if grid.entry_integer < grid.integer_norm:",
        "if False:",
        "tests/laws/test_sensitivity_of_sums.py",
    ),
    Fault(
        "centred record's bound rounded up",
        "design/unit_view.py",
        "return np.floor(",
        "return 1 + np.floor(",
        "tests/design/test_unit_view.py",
    ),
    Fault(
        "centre of the records unbounded",
        "privacy/centring.py",
        "if not (length <= _LONGEST_CENTRE and 0.0 < self.constant <= 1.0):",
        "if False:",
        "tests/privacy/test_curator.py",
    ),
    Fault(
        "columns not checked against the design",
        "design/builder.py",
        "if highest >= 0 and not index_base <= lowest <= highest < index_base + n_features:",
        "if False:",
        "tests/design/test_local.py",
    ),
    Fault(
        "integer norm check removed",
        "design/fixed_point.py",
        "return enforce_norm(clipped, rows, block.n_rows, bound).astype(np.int64)",
        "return clipped.astype(np.int64)",
        "tests/design/test_fixed_point.py",
    ),
    Fault(
        "duplicates not merged",
        "data/indices.py",
        "return kept_before[indptr], raw[fresh], merged",
        "return indptr, raw, values",
        "tests/data",
    ),
    Fault(
        "assumed items in the order of the ratings",
        "data/ratings_by_user.py",
        "items, new_code = items.canonical()",
        "items, new_code = items, np.arange(len(items))",
        "tests/data/test_ratings.py",
    ),
    Fault(
        "repeated ratings of an item let in",
        "data/ratings_by_user.py",
        'if len(later) and duplicates == "error":',
        "if False:",
        "tests/data/test_ratings.py",
    ),
    Fault(
        "the earlier of two ratings kept",
        "data/ratings_by_user.py",
        "kept = np.append(~repeated, True)",
        "kept = np.append(True, ~repeated)",
        "tests/data/test_ratings.py",
    ),
    Fault(
        "a user who comes back not noticed",
        "data/ratings_by_user.py",
        "if back.any():",
        "if False:",
        "tests/data/test_ratings.py",
    ),
    Fault(
        "items outside the declared ones let in",
        "data/rating_records.py",
        "return bool(text) and self._plan.rule.allows(text)",
        "return bool(text)",
        "tests/data/test_ratings.py",
    ),
    Fault(
        "unused dictionary entries become users",
        "data/encode.py",
        "array = _in_use(array) if pa.types.is_dictionary(array.type)",
        "array = array if pa.types.is_dictionary(array.type)",
        "tests/data/test_ratings.py",
    ),
    Fault(
        "entries beyond the declared matrix let in",
        "data/matrix_market.py",
        "if not (within and np.isfinite(entries.value).all()):",
        "if not np.isfinite(entries.value).all():",
        "tests/data/test_ratings_law.py",
    ),
    Fault(
        "a factor model larger than its file read",
        "files/factor_model.py",
        "if n_items * 8 * (2 + rank) > len(data):",
        "if False:",
        "tests/files/test_factor_model.py",
    ),
    Fault(
        "rated items suggested again",
        "fitting/factor_prediction.py",
        "scores[ratings.rows, ratings.items] = -np.inf",
        "pass",
        "tests/fitting/test_factor_prediction.py",
    ),
    Fault(
        "predictions of one user given to another",
        "fitting/factor_prediction.py",
        "at = order[_ranges(start, length)]",
        "at = _ranges(start, length)",
        "tests/fitting/test_factor_prediction.py",
    ),
    Fault(
        "negative weights let in",
        "data/attributes.py",
        "return values < 0",
        "return values < -np.inf",
        "tests/data/test_attributes.py",
    ),
    Fault(
        "exposure added without its logarithm",
        "data/attributes.py",
        'logarithm = np.log(columns["exposure"])',
        'logarithm = columns["exposure"]',
        "tests/data/test_attributes.py",
    ),
    Fault(
        "attributes taken for features",
        "data/features.py",
        'if role.role in ("ignore", *SINGLE_ROLES):',
        'if role.role in ("ignore", "label"):',
        "tests/data/test_attributes.py",
    ),
    Fault(
        "weights read in prediction",
        "data/options.py",
        'unread = "weight" if self.predicting else None',
        "unread = None",
        "tests/data/test_attributes.py",
    ),
    Fault(
        "repeated columns let into the design",
        "design/builder.py",
        "        _require_canonical(block)\n",
        "",
        "tests/design/test_local.py",
    ),
    Fault(
        "count not multiplied in the accountant",
        "privacy/accountant.py",
        "cost_of_one(event, adjacency) * event.count",
        "cost_of_one(event, adjacency)",
        "tests/laws/test_accounting.py",
    ),
    Fault(
        "Laplace charged by its l2 sensitivity as pure",
        "privacy/accountant.py",
        "epsilon = Fraction(event.l1_sensitivity.under(adjacency), event.scale)",
        "epsilon = Fraction(math.isqrt(event.squared_sensitivity.under(adjacency)), event.scale)",
        "tests/laws/test_accounting.py",
    ),
    Fault(
        "pure releases beside Gaussian noise left out of the sum",
        "privacy/accountant.py",
        "bounds.append(conversion.round_up(Fraction(gaussian) + self.pure))",
        "bounds.append(conversion.round_up(max(Fraction(gaussian), self.pure)))",
        "tests/laws/test_accounting.py tests/laws/test_accounting_oracles.py",
    ),
    Fault(
        "Gaussian noise forgotten beside a pure epsilon",
        "privacy/accountant.py",
        "rho=squared_mu / 2, noise=squared_mu, pure=_ZERO)",
        "rho=squared_mu / 2, noise=_ZERO, pure=_ZERO)",
        "tests/laws/test_accounting.py tests/laws/test_accounting_oracles.py",
    ),
    Fault(
        "epsilon rounded toward the optimistic side",
        "privacy/conversion.py",
        "mu, target = max(mu, _FLOOR), math.log(delta) - MARGIN",
        "mu, target = max(mu, _FLOOR), math.log(delta) + MARGIN",
        "tests/laws/test_conversion.py",
    ),
    Fault(
        "norm of class residuals not checked in integers",
        "privacy/residuals.py",
        "        over = _squared_length(integers) > squared_limits\n"
        "        if not over.any():\n"
        "            return integers\n",
        "        return integers\n",
        "tests/privacy/test_residuals.py",
    ),
    Fault(
        "limits of class residuals so large that their squares wrap",
        "privacy/residuals.py",
        "np.minimum(np.broadcast_to(limits, n), most)",
        "np.broadcast_to(limits, n)",
        "tests/privacy/test_residuals.py",
    ),
    Fault(
        "weighted residuals not bounded in integers",
        "privacy/residuals.py",
        "np.asarray(np.clip(integers, -limits, limits))",
        "np.asarray(integers)",
        "tests/privacy/test_residuals.py",
    ),
    Fault(
        "each class clipped by itself",
        "privacy/residuals.py",
        "np.fmax(np.sqrt(_squared_length(residual)), clip)",
        "np.fmax(np.abs(residual).max(axis=1), clip)",
        "tests/privacy/test_residuals.py",
    ),
    Fault(
        "class counts charged as one",
        "privacy/gaussian_release.py",
        "case Quantity.CLASS_SUMS:\n            return PerAdjacency(replace_one=2,",
        "case Quantity.CLASS_SUMS:\n            return PerAdjacency(replace_one=1,",
        "tests/laws/test_sensitivity_of_classes.py",
    ),
    Fault(
        "target and exposure charged as one number",
        "privacy/gaussian_release.py",
        "return PerAdjacency(replace_one=2, add_remove=2)",
        "return PerAdjacency(replace_one=1, add_remove=1)",
        "tests/laws/test_sensitivity_of_classes.py",
    ),
    Fault(
        "exposure not clipped",
        "privacy/questions.py",
        "    parts = np.rint(np.fmin(np.fmax(shares, 0.0), 1.0) * unit).astype(np.int64)\n"
        "    return np.asarray(np.clip(parts, 0, unit))",
        "    return np.rint(shares * unit).astype(np.int64)",
        "tests/laws/test_sensitivity_of_classes.py",
    ),
    Fault(
        "exposures beyond their public bound",
        "privacy/collected_records.py",
        "np.asarray(np.fmin(offset - record_map.log_exposure, 0.0))",
        "np.asarray(offset - record_map.log_exposure)",
        "tests/algorithms/test_attributes.py",
    ),
    Fault(
        "weights beyond their public bound",
        "privacy/collected_records.py",
        "np.asarray(np.fmin(weights, record_map.max_weight) / record_map.max_weight)",
        "np.asarray(weights)",
        "tests/algorithms/test_attributes.py",
    ),
    Fault(
        "margins of classes sized by one of them",
        "privacy/point.py",
        "norm = float(np.max(np.sqrt(",
        "norm = float(np.min(np.sqrt(",
        "tests/design/test_products_of_classes.py",
    ),
    Fault(
        "key made before the reservation",
        "fitting/linear_fit.py",
        "        reserve(self.description())\n",
        "        early = noise_of(private=True, seed=None)\n        reserve(self.description())\n",
        "tests/fitting",
    ),
    Fault(
        "release never charged",
        "fitting/linear_fit.py",
        "        reserve(self.description())\n",
        "",
        "tests/fitting",
    ),
    Fault(
        "seeded key by accident",
        "privacy/mechanisms/noise.py",
        "RunKey.from_system() if seed is None",
        "RunKey.from_seed(0) if seed is None",
        "tests/fitting",
    ),
    Fault(
        "cap not checked under the lock",
        "privacy/ledger.py",
        "            document = self._grown()\n"
        "            _refuse_beyond_cap(document, events, self.path)",
        "            document = self._grown()",
        "tests/cli/test_ledger.py",
    ),
    Fault(
        "compressed data may expand for ever",
        "data/compression.py",
        "if self._given > most:",
        "if False:",
        "tests/data/test_open.py",
    ),
    Fault(
        "charge lost when the ledger is replaced during a run",
        "privacy/ledger.py",
        "entries = [self._reserved[run], end] if lost else [end]",
        "entries = [end]",
        "tests/cli/test_faults.py::test_ledger_replaced_during_a_run",
    ),
    Fault(
        "a ledger that lost runs between check and charge is charged",
        "privacy/ledger.py",
        "if before is not None and not self._has(document, before):",
        "if False:",
        "tests/privacy/test_ledger_checkpoint.py",
    ),
    Fault(
        "a link to a ledger followed again at every step",
        "privacy/ledger.py",
        "self._file = path if os.path.abspath(path) == real else real",
        "self._file = path",
        "tests/privacy/test_ledger_checkpoint.py",
    ),
    Fault(
        "a ledger replaced meanwhile taken for the one seen before",
        "privacy/ledger_file.py",
        "return known if _holds(stream, known) else stream.read()",
        "return known or stream.read()",
        "tests/cli/test_faults.py::test_ledger_replaced_during_a_run",
    ),
    Fault(
        "hash of an entry not verified",
        "privacy/ledger_document.py",
        'if entry["previous"] != tip or hashlib.sha256(unhashed).hexdigest() != claimed:',
        'if entry["previous"] != tip:',
        "tests/privacy/test_ledger_document.py",
    ),
    Fault(
        "chain of entries not verified",
        "privacy/ledger_document.py",
        'if entry["previous"] != tip or hashlib',
        "if hashlib",
        "tests/privacy/test_ledger_document.py",
    ),
    Fault(
        "a name that occurs twice in an entry not noticed",
        "privacy/ledger_document.py",
        "if document.data[len(document._head) : document._end] != data[start:end]:",
        "if False:",
        "tests/privacy/test_ledger_document.py",
    ),
    Fault(
        "a ledger resumed whatever its hash",
        "privacy/ledger_document.py",
        "if data[end:] != seal(checkpoint.to_json(), hashed):",
        "if False:",
        "tests/privacy/test_ledger_checkpoint.py",
    ),
    Fault(
        "a ledger resumed under a cap that is written otherwise",
        "privacy/ledger_frame.py",
        "if data[:start] != head_of(header.cap, header.earlier):",
        "if False:",
        "tests/privacy/test_ledger_checkpoint.py",
    ),
    Fault(
        "hash of a ledger that is added up not verified",
        "privacy/ledger_document.py",
        "if header.sha256 != sha256_of(stated, _hashed_as_read(header, document)):",
        "if False:",
        "tests/privacy/test_ledger_document.py",
    ),
    Fault(
        "checkpoint not held against the entries",
        "privacy/ledger_document.py",
        'if stated.get("dpfit") == __version__ and stated != checkpoint.to_json():',
        "if False:",
        "tests/privacy/test_ledger_checkpoint.py",
    ),
    Fault(
        "a ledger's new part begins with nothing spent",
        "privacy/ledger_document.py",
        "earlier, checkpoint = self.as_earlier(), self.checkpoint.copy()",
        "earlier, checkpoint = self.as_earlier(), _first_checkpoint(self.cap)",
        "tests/privacy/test_ledger_parts.py",
    ),
    Fault(
        "any ledger taken for the part before",
        "privacy/ledger_document.py",
        "    if (before.part, before.checkpoint.tip, before.cap) != (",
        "    if False and () != (",
        "tests/privacy/test_ledger_parts.py",
    ),
    Fault(
        "what a part says was spent before it taken on trust",
        "privacy/ledger_document.py",
        "    _check_stated(earlier.checkpoint, before.checkpoint, what)\n",
        "",
        "tests/privacy/test_ledger_parts.py",
    ),
    Fault(
        "an earlier part charged as if it were the ledger",
        "privacy/ledger.py",
        'if self._file.endswith(document.as_earlier().path("")):',
        "if False:",
        "tests/privacy/test_ledger_parts.py",
    ),
    Fault(
        "a ledger's earlier runs written through a link",
        "privacy/ledger.py",
        "if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):",
        "if False:",
        "tests/privacy/test_ledger_parts.py",
    ),
    Fault(
        "a part of a ledger open to all",
        "privacy/ledger.py",
        "            mode_of=self._file,\n",
        "",
        "tests/privacy/test_ledger_parts.py",
    ),
    Fault(
        "a ledger parted before its old part is on disk",
        "privacy/ledger.py",
        "document = self._part_ended(document, last_look)",
        "document = document.next_part()",
        "tests/privacy/test_ledger_parts.py",
    ),
    Fault(
        "checkpoint of another version taken on trust",
        "privacy/ledger_checkpoint.py",
        '            "dpfit": __version__,',
        '            "dpfit": "0.0.9",',
        "tests/privacy/test_ledger_checkpoint.py",
    ),
    Fault(
        "checkpoint forgets a charge",
        "privacy/ledger_checkpoint.py",
        "self.cost += cost",
        "self.cost = cost",
        "tests/privacy/test_ledger_checkpoint.py",
    ),
    Fault(
        "checkpoint shared by a document and the longer one",
        "privacy/ledger_checkpoint.py",
        "return replace(self, open_runs=set(self.open_runs))",
        "return replace(self)",
        "tests/privacy/test_ledger_checkpoint.py",
    ),
    Fault(
        "charge of another relation remembered",
        "privacy/ledger_checkpoint.py",
        'return _charge(canonical(entry["events"]), adjacency)',
        'return _charge(canonical(entry["events"]), Adjacency.REPLACE_ONE)',
        "tests/privacy/test_ledger_document.py",
    ),
    Fault(
        "long sums of costs rounded down",
        "privacy/accountant.py",
        "math.ceil(total * _FINEST)",
        "math.floor(total * _FINEST)",
        "tests/laws/test_accounting.py",
    ),
    Fault(
        "a user's long vector is not shrunk",
        "design/user_integers.py",
        "scale = bound / np.fmax(norms, limit)",
        "scale = bound / limit + 0.0 * norms",
        "tests/design/test_user_integers.py",
    ),
    Fault(
        "last integer check of a user's vector removed",
        "design/user_integers.py",
        "return enforce_norm(clipped, users, n_users, float(bound)).astype(np.int64)",
        "return np.nan_to_num(clipped).astype(np.int64)",
        "tests/design/test_user_integers.py tests/laws/test_user_sensitivity.py",
    ),
    Fault(
        "numbers of users not clipped",
        "design/user_integers.py",
        "return np.asarray(np.clip(scaled, least, bound))",
        "return np.trunc(np.nan_to_num(values) * bound).astype(np.int64)",
        "tests/design/test_user_integers.py tests/laws/test_user_sensitivity.py",
    ),
    Fault(
        "neighbouring users share a sum",
        "design/user_ratings.py",
        "np.bincount(self.users, weights=entries, minlength=self.n_users)",
        "np.bincount(self.users // 2, weights=entries, minlength=self.n_users)",
        "tests/laws/test_user_sensitivity.py",
    ),
    Fault(
        "ratings of users not cut to their bounds",
        "privacy/rating_records.py",
        "np.fmin(np.fmax(part.values, low), high)",
        "part.values",
        "tests/privacy/test_rating_records.py",
    ),
    Fault(
        "cap of a completion not checked before reading",
        "cli/matrix_inputs.py",
        "        self.files.ledger.check(charge_ahead(self.request))\n",
        "",
        "tests/cli/test_complete_matrix.py",
    ),
    Fault(
        "model of factors of a seeded run called private",
        "cli/matrix_inputs.py",
        "private=self.request.private,",
        "private=True,",
        "tests/cli/test_complete_matrix.py",
    ),
    Fault(
        "more users than declared let in",
        "fitting/matrix_fit.py",
        "elif ratings.n_users > request.n_users:",
        "elif False:",
        "tests/cli/test_complete_matrix.py",
    ),
    Fault(
        "force replaces any Parquet file",
        "cli/targets.py",
        "return _FACTORS in stream.read(min(length, _LARGEST_FOOTER))",
        "return True",
        "tests/cli/test_complete_matrix.py",
    ),
    Fault(
        "a user's bits depend on the neighbours in the block",
        "design/local_ridge.py",
        "return np.asarray(terms.sum(axis=1))",
        "return np.asarray(terms.sum(axis=1)) + 1e-9 * coefficients[-1, 0]",
        "tests/design/test_local_ridge.py",
    ),
    Fault(
        "sum over users has half the sensitivity under replace-one",
        "privacy/user_sensitivity.py",
        "PerAdjacency(4 * squared_l2, squared_l2)",
        "PerAdjacency(2 * squared_l2, squared_l2)",
        "tests/laws/test_user_sensitivity.py",
    ),
    Fault(
        "factor left out of the sensitivity of its sums",
        "privacy/user_sensitivity.py",
        "return _signed(items * directions * factor, factor**2)",
        "return _signed(items * directions * factor, 1)",
        "tests/laws/test_user_sensitivity.py",
    ),
    Fault(
        "l1 sensitivity of one item instead of all",
        "privacy/user_sensitivity.py",
        "return _signed(items, 1)",
        "return _signed(1, 1)",
        "tests/laws/test_user_sensitivity.py",
    ),
    Fault(
        "moments not in units of their charge",
        "privacy/rating_curator.py",
        "integers = bounded_rows(vectors, bound=norm)\n",
        "integers = bounded_rows(vectors, bound=2 * norm)\n",
        "tests/laws/test_user_sensitivity.py",
    ),
    Fault(
        "item sums bounded by residual instead of by user",
        "privacy/rating_curator.py",
        "_add_by_item(sums, block, _bounded(block, weighted, bounds.longest, release.unit))",
        "_add_by_item(sums, block, (weighted / bounds.clip * release.unit).astype(np.int64))",
        "tests/laws/test_user_sensitivity.py",
    ),
    Fault(
        "weights without their cap, and no bound on a user",
        "privacy/rating_curator.py",
        "_add_by_item(sums, block, _bounded(block, weights, longest, release.unit))",
        "_add_by_item(sums, block, np.full(len(weights), release.unit // 4))",
        "tests/laws/test_user_sensitivity.py",
    ),
    Fault(
        "factor sums released without noise",
        "privacy/rating_curator.py",
        "return self._released(release, sums, length)",
        "return sums * length",
        "tests/laws/test_matrix_accounting.py",
    ),
    Fault(
        "a sum over users released without its noise",
        "privacy/rating_curator.py",
        "return float(total[0]) / release.unit",
        "return float(integers.sum()) / release.unit",
        "tests/laws/test_matrix_replay.py",
    ),
    Fault(
        "one sweep not charged",
        "algorithms/complete_matrix.py",
        "for t, power in enumerate(powers)",
        "for t, power in enumerate(powers[:-1])",
        "tests/laws/test_matrix_accounting.py",
    ),
    Fault(
        "moments of all sweeps charged once",
        "algorithms/complete_matrix.py",
        'PlannedRelease("factor moments", moments, self.sweeps, 4 * eighth)',
        'PlannedRelease("factor moments", moments, 1, 4 * eighth)',
        "tests/laws/test_matrix_accounting.py",
    ),
    Fault(
        "budget of a repeated release not divided by its count",
        "privacy/user_release.py",
        "_unit_per_scale(share / planned.count,",
        "_unit_per_scale(share,",
        "tests/laws/test_matrix_accounting.py",
    ),
    Fault(
        "knee left out of the pure epsilon",
        "privacy/user_release.py",
        "return (share / (steepness * l1)) ** 2",
        "return (share / l1) ** 2",
        "tests/laws/test_matrix_accounting.py",
    ),
    Fault(
        "knee left out of the pure cost of Huber noise",
        "privacy/accountant.py",
        "epsilon = event.knee * Fraction(",
        "epsilon = Fraction(",
        "tests/laws/test_huber_cost.py",
    ),
    Fault(
        "Huber noise of a small knee charged as less than it costs",
        "privacy/accountant.py",
        "min(Fraction(1), event.knee**2) * squared / 2",
        "min(Fraction(1), event.knee**3) * squared / 2",
        "tests/laws/test_huber_cost.py",
    ),
    Fault(
        "Huber noise of another knee than charged",
        "privacy/charged_releases.py",
        "self._noise.huber(release.knee, ",
        "self._noise.huber(release.knee + 1, ",
        "tests/laws/test_matrix_accounting.py",
    ),
    Fault(
        "Huber noise normal beyond its knee",
        "privacy/mechanisms/huber.py",
        "linear = place * (self.knee_strips * _LINEAR_UNIT)",
        "linear = quadratic",
        "tests/laws/test_strips_exact.py",
    ),
    Fault(
        "key of a completion before its charge",
        "fitting/matrix_fit.py",
        "        reserve(self.description())\n",
        "        noise_of(private=True, seed=None)\n        reserve(self.description())\n",
        "tests/fitting/test_matrix_fit.py",
    ),
    Fault(
        "determinants left out of an objective's charge",
        "privacy/minimiser_release.py",
        "_largest_gradient(objective, grid), determinant_ratio(objective, grid)",
        "_largest_gradient(objective, grid), Fraction(0)",
        "tests/laws/test_median_guarantees.py",
    ),
    Fault(
        "determinants of half the curvature",
        "privacy/minimiser_release.py",
        "return squared * objective.loss.largest_curvature / Fraction(objective.ridge)",
        "return squared * objective.loss.largest_curvature / Fraction(2 * objective.ridge)",
        "tests/laws/test_median_guarantees.py",
    ),
    Fault(
        "replaced record moves an objective as a zeroed one",
        "privacy/minimiser_release.py",
        "sensitivity = PerAdjacency(replace_one=2 * zeroed, add_remove=zeroed)",
        "sensitivity = PerAdjacency(replace_one=zeroed, add_remove=zeroed)",
        "tests/laws/test_median_guarantees.py",
    ),
    Fault(
        "l1 norm of a record taken for its l2 norm",
        "privacy/minimiser_release.py",
        "    if law is MinimiserLaw.L1:\n",
        "    if law is None:\n",
        "tests/laws/test_median_guarantees.py",
    ),
    Fault(
        "tilt left out of the largest score",
        "losses/smoothed.py",
        "return 1 + abs(Fraction(self.tilt))",
        "return Fraction(1)",
        "tests/laws/test_median_guarantees.py",
    ),
    Fault(
        "curvature of the smoothing a tenth",
        "losses/smoothed.py",
        "return 1 / Fraction(self.width)",
        "return 1 / Fraction(10 * self.width)",
        "tests/laws/test_median_guarantees.py",
    ),
    Fault(
        "folded Gaussian loss charged as a plain one",
        "privacy/accountant.py",
        "    doublings = minimiser_doublings(adjacency)\n",
        "    doublings = 0\n",
        "tests/laws/test_accounting.py",
    ),
    Fault(
        "replacement folded once",
        "privacy/accountant.py",
        "return 1 if adjacency is Adjacency.ADD_REMOVE else 2",
        "return 1",
        "tests/laws/test_accounting.py",
    ),
    Fault(
        "folding left out of rho",
        "privacy/accountant.py",
        "rho = jacobian + v / 2 + shift * _ROOT_TWO_OVER_PI",
        "rho = jacobian + v / 2",
        "tests/laws/test_accounting.py",
    ),
    Fault(
        "delta of a folded loss not divided",
        "fitting/division.py",
        "beside = conversion.gaussian_mu(rest, math.ldexp(delta, -doublings))",
        "beside = conversion.gaussian_mu(rest, delta)",
        "tests/fitting/test_division.py",
    ),
    Fault(
        "pure releases counted as selections in mu",
        "fitting/division.py",
        "(1 if planned.selects else 2)",
        "1",
        "tests/fitting/test_division.py",
    ),
    Fault(
        "random term left out of the objective",
        "privacy/minimise.py",
        "+ self._term - np.ldexp(sums * unit",
        "- np.ldexp(sums * unit",
        "tests/privacy/test_minimiser_release.py tests/privacy/test_minimise.py",
    ),
    Fault(
        "random vector not added to the minimiser",
        "privacy/curator.py",
        "(minimum.point + shift.values) / release.step",
        "minimum.point / release.step",
        "tests/privacy/test_minimiser_release.py",
    ),
    Fault(
        "scores of a minimiser may wrap around",
        "privacy/private_records.py",
        "sound = reaches(release.objective, grid, n_rows, release.bits, release.radius)",
        "sound = True",
        "tests/privacy/test_minimiser_release.py",
    ),
    Fault(
        "certificate ignored",
        "privacy/curator.py",
        "if not distance <= release.radius:",
        "if False:",
        "tests/privacy/test_minimiser_release.py",
    ),
    Fault(
        "errors of the random vector ignored",
        "privacy/curator.py",
        "distance = minimum.distance + term.error / objective.ridge + shift.error",
        "distance = minimum.distance",
        "tests/privacy/test_minimiser_release.py",
    ),
    Fault(
        "certificate without the errors of scores",
        "privacy/minimise.py",
        "distance = (float(np.linalg.norm(gradient)) + problem.gradient_error) / objective.ridge",
        "distance = float(np.linalg.norm(gradient)) / objective.ridge",
        "tests/privacy/test_minimise.py",
    ),
    Fault(
        "certificate without what was cut",
        "privacy/minimise.py",
        "distance += 2.0 * cut + _FLOATS",
        "distance += _FLOATS",
        "tests/privacy/test_minimise.py",
    ),
    Fault(
        "certificate without the ridge",
        "privacy/minimise.py",
        "+ problem.gradient_error) / objective.ridge",
        "+ problem.gradient_error)",
        "tests/privacy/test_minimise.py",
    ),
    Fault(
        "noise left off the minimiser's integers",
        "privacy/curator.py",
        "noisy = self._charged.noisy(release.noise, integers.astype(np.int64))",
        "noisy = integers",
        "tests/privacy/test_minimiser_release.py",
    ),
    Fault(
        "rounding left out of the minimiser's sensitivity",
        "privacy/minimiser_release.py",
        "_ROUNDING: Final = Fraction(3, 2)",
        "_ROUNDING: Final = Fraction(0)",
        "tests/privacy/test_minimiser_release.py",
    ),
    Fault(
        "errors of one neighbour alone",
        "privacy/minimiser_release.py",
        "moved = PerAdjacency(replace_one=2 * zeroed + 2 * radius, add_remove=zeroed + 2 * radius)",
        "moved = PerAdjacency(replace_one=2 * zeroed + radius, add_remove=zeroed + radius)",
        "tests/privacy/test_minimiser_release.py",
    ),
    Fault(
        "records of all batches in each",
        "privacy/questions.py",
        "            integers[positions % count != number] = 0\n",
        "            pass\n",
        "tests/laws/test_batches.py",
    ),
    Fault(
        "the sum of one worker left out",
        "privacy/workers.py",
        "level = added + level[len(level) // 2 * 2 :]",
        "level = added",
        "tests/cli/test_cluster.py",
    ),
    Fault(
        "records of every worker numbered from the first",
        "privacy/cluster_records.py",
        "firsts = [sum(counts[:number]) for number in range(len(counts))]",
        "firsts = [0] * len(counts)",
        "tests/cli/test_cluster.py",
    ),
    Fault(
        "a chunk of rows out of its place",
        "design/builder.py",
        "first, entries, group = self.n_rows, 0, []",
        "first, entries, group = self.n_rows - 1, 0, []",
        "tests/design/test_local.py",
    ),
    Fault(
        "two threads with a column in common",
        "design/local.py",
        "return [0, *inner, n_features]",
        "return [0, *(i for i in inner), *(i - 1 for i in inner), n_features]",
        "tests/design/test_local.py",
    ),
    Fault(
        "kept rows used whatever their digest says",
        "design/kept_file.py",
        "return _read(stream) if _is_whole(stream) else None",
        "return _read(stream)",
        "tests/cli/test_kept_rows.py",
    ),
    Fault(
        "ratings of a user in two parts",
        "data/rating_runs.py",
        "slices = [np.searchsorted(run[0], (first, stop)) for run in runs]",
        "slices = [np.searchsorted(run[0], (first, stop), 'right') for run in runs]",
        "tests/data/test_ratings_law.py",
    ),
    Fault(
        "kept rows of anybody",
        "design/kept_file.py",
        "if not right_kind or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:",
        "if not right_kind:",
        "tests/cli/test_kept_rows.py",
    ),
    Fault(
        "kept rows known by the time of their change alone",
        "privacy/kept_records.py",
        "times = found.st_mtime_ns, found.st_ctime_ns",
        "times = (found.st_mtime_ns,)",
        "tests/cli/test_kept_rows.py",
    ),
    Fault(
        "kept rows without the options that they were read by",
        "privacy/kept_records.py",
        '"options": asdict(replace(reader.options, threads=1)),',
        '"options": None,',
        "tests/cli/test_kept_rows.py",
    ),
    Fault(
        "kept rows without their record map",
        "privacy/kept_records.py",
        '"grid": asdict(grid),',
        '"grid": None,',
        "tests/cli/test_kept_rows.py",
    ),
    Fault(
        "kept rows of a file that changed while it was read",
        "privacy/kept_records.py",
        "if key_of(reader, grid, storage) != key:",
        "if False:",
        "tests/cli/test_kept_rows.py",
    ),
    Fault(
        "the folder of kept rows open to all",
        "design/kept_file.py",
        "os.mkdir(folder, 0o700)",
        "os.mkdir(folder)",
        "tests/cli/test_kept_rows.py",
    ),
    Fault(
        "batches overlap",
        "privacy/questions.py",
        "integers[positions % count != number] = 0",
        "integers[positions % count < number] = 0",
        "tests/laws/test_batches.py",
    ),
    Fault(
        "the first batch again and again",
        "privacy/charged_releases.py",
        "return release.count - self._left[label]",
        "return 0",
        "tests/laws/test_batches.py",
    ),
    Fault(
        "batches charged at every release",
        "privacy/quantity.py",
        "return 1 if self is Quantity.BATCH_GRADIENT else count",
        "return count",
        "tests/laws/test_batches.py",
    ),
    Fault(
        "wanted rank of the records there are",
        "privacy/target_ranks.py",
        "wanted = round(quantile * n_rows * unit)",
        "wanted = round(quantile * len(target) * unit)",
        "tests/privacy/test_target_ranks.py",
    ),
    Fault(
        "both sides of a rank added",
        "privacy/target_ranks.py",
        "np.maximum(np.maximum(below - wanted, wanted - up_to), 0)",
        "np.maximum(below - wanted, 0) + np.maximum(wanted - up_to, 0) + np.abs(below - wanted)",
        "tests/privacy/test_target_ranks.py",
    ),
    Fault(
        "length of the l2 law from one coordinate less",
        "privacy/mechanisms/real_vectors.py",
        "length = math.fsum(np.abs(laplace_vector(noise, size, next_step).values))",
        "length = math.fsum(np.abs(laplace_vector(noise, size, next_step).values)[1:])",
        "tests/laws/test_real_vectors.py",
    ),
    Fault(
        "the same step for length and direction",
        "privacy/charged_releases.py",
        "return draw(self._noise, size, self._next_step).times(float(release.scale))",
        "return draw(self._noise, size, lambda: 0).times(float(release.scale))",
        "tests/privacy/test_minimiser_release.py",
    ),
    Fault(
        "many doublings of delta cut to a few",
        "privacy/accountant.py",
        "bounds.append(1.0 if often else math.ldexp(share, self.doublings))",
        "bounds.append(math.ldexp(share, min(self.doublings, _MOST_DOUBLINGS)))",
        "tests/laws/test_minimiser_bounds.py",
    ),
    Fault(
        "a share of delta rounded up",
        "privacy/accountant.py",
        "                share = 0.0",
        "                share = math.nextafter(0.0, 1.0)",
        "tests/laws/test_minimiser_bounds.py",
    ),
    Fault(
        "a radius without the floats of the noise",
        "privacy/minimiser_error.py",
        "reachable / Fraction(objective.ridge), of_noise)",
        "reachable / Fraction(objective.ridge))",
        "tests/laws/test_minimiser_bounds.py",
    ),
    Fault(
        "records past the declared number let through",
        "privacy/minimiser_error.py",
        "return exact and _ROOM * error <= radius * (1.0 + _SUMS)",
        "return exact",
        "tests/laws/test_minimiser_bounds.py",
    ),
    Fault(
        "short directions as exact as long ones",
        "privacy/mechanisms/real_vectors.py",
        "2.0 * length * direction.error / norm",
        "2.0 * length * _ERROR",
        "tests/laws/test_real_vectors.py",
    ),
    Fault(
        "half the noise that was charged",
        "privacy/charged_releases.py",
        "return self._noise.integers(release.scale_bits, size, self._next_step())",
        "return self._noise.integers(release.scale_bits - 1, size, self._next_step())",
        "tests/attacks/test_audits.py",
    ),
    Fault(
        "an audit counts the trials it learned from",
        "audit/bounds.py",
        "first, rest = slice(known), slice(known, None)",
        "first, rest = slice(known), slice(0, None)",
        "tests/attacks/test_bounds.py",
    ),
    Fault(
        "an audit takes rates for their upper bounds",
        "audit/bounds.py",
        "bound = betaincinv(inside + 1.0, trials - inside, 1.0 - error)",
        "bound = inside / trials",
        "tests/attacks/test_bounds.py",
    ),
    Fault(
        "an audit counts false alarms alone",
        "audit/bounds.py",
        "upper_rate(wrong + missed, 2 * n, 1.0 - confidence)",
        "upper_rate(wrong, n, 1.0 - confidence)",
        "tests/attacks/test_bounds.py",
    ),
    Fault(
        "the attacker's Hessian without its curvature",
        "privacy/minimiser_term.py",
        "hessian = curvature + objective.ridge",
        "hessian = 0.0 * curvature + objective.ridge",
        "tests/attacks/test_minimisers.py",
    ),
    Fault(
        "the attacker's linear term without the ridge",
        "privacy/minimiser_term.py",
        "objective.loss.score(errors)) - objective.ridge * point",
        "objective.loss.score(errors))",
        "tests/attacks/test_minimisers.py",
    ),
    Fault(
        "the canary of ratings in the other world, too",
        "audit/matrix_worlds.py",
        "return _fit(request, ratings[:-1]), _fit(request, present)",
        "return _fit(request, present), _fit(request, present)",
        "tests/attacks/test_audits.py",
    ),
    Fault(
        "an audit by one run forgets delta",
        "audit/bounds.py",
        "return beta + alpha * delta * 2 * canaries",
        "return beta",
        "tests/attacks/test_bounds.py",
    ),
    Fault(
        "the attacker knows one data set only",
        "audit/witness.py",
        "shift = np.where(unit > 0.0, (flat(second) - mean) / unit, 0.0)",
        "shift = np.where(unit > 0.0, (flat(first) - mean) / unit, 0.0)",
        "tests/attacks/test_audits.py",
    ),
    Fault(
        "charge before it is known that noise can be made",
        "fitting/linear_fit.py",
        "        prepare_noise()\n        reserve(self.description())",
        "        reserve(self.description())\n        prepare_noise()",
        "tests/cli/test_memory.py",
    ),
    Fault(
        "no room asked for before pyarrow's parser",
        "data/parsed_table.py",
        "    require_memory(PARSER_SHARE * len(text))\n",
        "",
        "tests/cli/test_memory.py",
    ),
    Fault(
        "libraries loaded without asking for room",
        "cli/command.py",
        "            require_memory(LIBRARIES)",
        "            pass",
        "tests/cli/test_memory.py",
    ),
    Fault(
        "a parser without memory taken for bad text",
        "files/arrow_errors.py",
        "            raise MemoryError from error",
        "            raise",
        "tests/cli/test_memory.py",
    ),
    Fault(
        "a codec without memory taken for a damaged file",
        "files/arrow_errors.py",
        "is_lack_of_memory(error) or _says_so(error)",
        "is_lack_of_memory(error)",
        "tests/cli/test_memory.py",
    ),
    Fault(
        "TOML of any cost is parsed",
        "files/toml_document.py",
        "excess := _excess(data)",
        "excess := None",
        "tests/files/test_toml_document.py",
    ),
    Fault(
        "a model for a closed output is paid for",
        "cli/run_files.py",
        "            require_standard_output()\n",
        "            pass\n",
        "tests/cli/test_faults.py",
    ),
    Fault(
        "a source of bits can be copied",
        "privacy/random_bits.py",
        'raise TypeError("a source of a run key can be neither pickled nor copied")',
        "return object.__reduce_ex__(self, 4)",
        "tests/laws/test_sampler_bits.py",
    ),
    Fault(
        "charged releases can be copied, steps and all",
        "privacy/charged_releases.py",
        'raise TypeError("charged releases can be neither pickled nor copied")',
        "return object.__reduce_ex__(self, 4)",
        "tests/laws/test_sampler_bits.py",
    ),
    Fault(
        "a forked child may use the key",
        "privacy/random_bits.py",
        "if os.getpid() != self._process:",
        "if False:",
        "tests/cli/test_faults.py",
    ),
    Fault(
        "a killed budget leaves its ledger with two names",
        "files/atomic.py",
        "        elif last_look is not None:\n            _rename_after_look(temporary, target)\n",
        "",
        "tests/cli/test_kills.py",
    ),
    Fault(
        "the model is told to the ledger before it is written",
        "cli/charged_run.py",
        "                write_atomically(path, model, overwrite=overwrite)\n",
        "                self._ledger.close(str(self._run), 'released')\n"
        "                write_atomically(path, model, overwrite=overwrite)\n"
        "                return\n",
        "tests/cli/test_kills.py",
    ),
    Fault(
        "sums of private rows in the open",
        "cli/cluster.py",
        "if not insecure:",
        "if False:",
        "tests/cli/test_cluster.py::test_refused",
    ),
    Fault(
        "a worker logs the records when it fails",
        "privacy/workers.py",
        "    except Exception as error:",
        "    except ZeroDivisionError as error:",
        "tests/cli/test_cluster.py::test_a_worker_that_fails_logs_no_record",
    ),
    Fault(
        "records can be sent",
        "privacy/private_records.py",
        "    def __reduce__(self) -> NoReturn:",
        "    def reduced(self) -> NoReturn:",
        "tests/cli/test_cluster.py::test_records_cannot_be_sent",
    ),
    Fault(
        "each worker goes by the columns of its own first file",
        "cli/fit_inputs.py",
        "replace(reader.options, feature_map=reader.feature_map),",
        "reader.options,",
        "tests/cli/test_cluster.py::test_columns_are_matched_by_name_on_every_worker",
    ),
    Fault(
        "a worker of an encrypted cluster listens in the open",
        "cli/cluster.py",
        "if address.startswith(_ENCRYPTED):",
        "if False:",
        "tests/cli/test_cluster_encrypted.py::test_tls",
    ),
    Fault(
        "a URL with a password is read",
        "data/remote.py",
        "if (_PAGE if scheme == _WEB else _BUCKET).fullmatch(rest) is None:",
        "if False:",
        "tests/data/test_remote.py",
    ),
    Fault(
        "an input that comes in the open is read",
        "data/remote.py",
        "if scheme not in (*_STORES, _WEB):",
        "if False:",
        "tests/data/test_remote.py",
    ),
    Fault(
        "a redirection into the open is followed",
        "data/remote.py",
        'scheme not in ("", _WEB):',
        'scheme == "ftp":',
        "tests/cli/test_remote.py::test_failures_of_a_web_server_are_one_line",
    ),
    Fault(
        "the network's own words in a message",
        "data/remote.py",
        "else type(error).__name__",
        "else str(error)",
        "tests/data/test_remote.py",
    ),
    Fault(
        "a line shows a password",
        "cli/streams.py",
        'return _USER.sub("://***@", text)',
        "return text",
        "tests/data/test_remote.py",
    ),
]


def run_tests(folder: Path, tests: str) -> tuple[bool, str]:
    """Whether the tests pass against the package in ``folder``, and the first that does not."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests.split()]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return done.returncode == 0, failed[1] if failed else done.stdout[-300:]


def copy_tree(folder: Path) -> None:
    for name in ("dpfit", "tests", "sample_data", "man"):
        if (ROOT / name).exists():
            shutil.copytree(
                ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, folder / name)


def kept() -> dict[str, str]:
    """The table of fault and test as it was last kept."""
    if not TABLE.exists():
        return {}
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines)


def keep(caught: dict[str, str]) -> None:
    """Bring the kept table up to date; in the order of `FAULTS`, without those that are gone."""
    known = {**kept(), **caught}
    lines = [f"{one.name}\t{known[one.name]}\n" for one in FAULTS if one.name in known]
    TABLE.write_text("".join(lines), encoding="utf-8")


def plant(fault: Fault) -> tuple[bool, str]:
    """Whether the tests pass in spite of the fault, and the first that does not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_tree(folder)
        path = folder / "dpfit" / fault.file
        text = path.read_text()
        if text.count(fault.old) != 1:
            raise SystemExit(f"{fault.name}: its line stands {text.count(fault.old)} times")
        path.write_text(text.replace(fault.old, fault.new))
        return run_tests(folder, fault.tests)


def main(arguments: list[str]) -> int:
    if {"-h", "--help"} & {*arguments}:
        print(__doc__)
        return 0
    wanted = [argument for argument in arguments if argument != "--keep"]
    faults = [fault for fault in FAULTS if not wanted or fault.name in wanted]
    if unknown := set(wanted) - {fault.name for fault in faults}:
        raise SystemExit(f"no such fault: {min(unknown)}")
    with tempfile.TemporaryDirectory() as name:
        copy_tree(Path(name))
        passed, first = run_tests(Path(name), " ".join(sorted({fault.tests for fault in faults})))
        if not passed:
            raise SystemExit(f"the tests fail without a fault: {first}")
    caught = {}
    for fault in faults:
        passed, first = plant(fault)
        print(f"{SURVIVED if passed else 'caught':<9} {fault.name:<55} {first}", flush=True)
        test = first.split("[")[0] if "::" in first else fault.tests
        caught[fault.name] = SURVIVED if passed else test
        if "--keep" in arguments:  # at once: the whole run is long
            keep(caught)
    survivors = list(caught.values()).count(SURVIVED)
    print(f"{len(faults) - survivors} of {len(faults)} faults caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

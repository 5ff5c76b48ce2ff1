"""Which fold of which configuration to evaluate next, for a known number of model fits.

Every configuration has an order of folds of its own, drawn when it is first tried, independently of all scores. So the
folds that were evaluated are a sample without replacement, whatever decides how many they are.

The first part of the budget tries new configurations on one fold each: some spread over the space, then those that a
Gaussian process proposes. The second part evaluates more folds of those that may be the best. The last part completes
the folds of a few finalists, so that their means over all folds are known. Folds differ in difficulty; what they differ
by is estimated from configurations with several folds, and subtracted. Nothing here bears on what is guaranteed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit.integrations.sklearn.spaces import Configuration, SearchSpace
from mixbandit.tuning.foresight import last_fit
from mixbandit.tuning.proposing import Experience, Proposer
from mixbandit.tuning.space import centre, row_key

# The share of the budget that tries new configurations, and how many of these are spread over the space.
_SEARCHED, _SPREAD = 0.5, 10
# Complete cross-validations in the budget per finalist.
_PER_FINALIST = 3
# Optimism, in standard deviations, when choosing which configuration gets another fold.
_DOUBT = 1.0
# Fold effects are shrunk as if each fold had this many more scores, at its expected level.
_SHRINKAGE = 1.0


class Pull(NamedTuple):
    """One model fit: a fold of a configuration."""

    candidate: int
    fold: int


@dataclass(eq=False)
class Candidate:
    """A configuration that was tried, or is about to be."""

    configuration: Configuration
    row: Array
    order: tuple[int, ...]  # in which its folds are evaluated
    asked: int = 0  # how many of them
    scores: dict[int, float] = field(default_factory=dict)  # by fold, in the order of evaluation
    failed: bool = False  # a fit or its score failed, so that the mean over all folds does not exist

    @property
    def missing(self) -> int:
        """How many folds are neither evaluated nor being evaluated."""
        return 0 if self.failed else len(self.order) - self.asked

    @property
    def in_order(self) -> list[float]:
        """The scores, in the order of the folds."""
        return [score for _, score in sorted(self.scores.items())]

    @property
    def is_complete(self) -> bool:
        return not self.failed and len(self.scores) == len(self.order)


class FoldRace:
    """Chooses pulls until the budget is spent: `ask` for some, `tell` their scores."""

    def __init__(
        self, space: SearchSpace, folds: int, budget: int, *, finalists: int, rng: np.random.Generator
    ) -> None:
        self.folds, self.budget, self._rng = folds, budget, rng
        if space.size is not None:
            self.budget = min(budget, space.size * folds)
        self.candidates: list[Candidate] = []
        self._space, self._places = space, dict[bytes, int]()
        self._told: list[tuple[Pull, float]] = []
        self._asked = self._spread = 0
        most = max(1, round(self.budget / (_PER_FINALIST * folds)))
        self._finalists = min(finalists, most)
        self._seed = int(rng.integers(2**32))
        # With a budget for everything there is nothing to choose.
        everything = space.space is None or self.budget == (space.size or 0) * folds
        self._plan = self._exhaustive() if everything else None
        if space.space is not None and not everything:
            self._proposer, self._box = Proposer(space.space), space.space

    @property
    def left(self) -> int:
        """How many fits of the budget were not asked for yet."""
        return self.budget - self._asked

    @property
    def told(self) -> int:
        return len(self._told)

    def ask(self, n: int) -> list[Pull]:
        """Up to n pulls, to be evaluated at the same time; none once the budget is spent or nothing is left."""
        pulls: list[Pull] = []
        while len(pulls) < min(n, self.budget) and self.left:
            at = next(self._plan, None) if self._plan is not None else self._chosen()
            if at is None:
                break
            candidate = self.candidates[at]
            pulls.append(Pull(at, candidate.order[candidate.asked]))
            candidate.asked += 1
            self._asked += 1
        return pulls

    def tell(self, pull: Pull, score: float) -> None:
        """The score of a pull; one that is not finite is a failure."""
        candidate = self.candidates[pull.candidate]
        if np.isfinite(score):
            candidate.scores[pull.fold] = score
        else:
            candidate.failed = True
        self._told.append((pull, score))

    def _exhaustive(self) -> Iterator[int]:
        for configuration in self._space.configurations():
            at = self._added(configuration, np.empty(0))
            while self.candidates[at].asked < self.folds:
                yield at

    def _chosen(self) -> int | None:
        """The candidate to evaluate next."""
        seen = self._experience()
        if self._finalists and (last := self._last_chance(seen)) is not None:
            return last
        if seen is None or len(self.candidates) < min(_SPREAD, self._to_search):
            return self._new(seen)
        ranked = self._ranked(seen, 0.0)
        finalists = [at for at in ranked if not self.candidates[at].failed][: self._finalists]
        if self.left <= sum(self.candidates[at].missing for at in finalists):
            # Those that can still be completed.
            possible = [at for at in ranked if 0 < self.candidates[at].missing <= self.left]
            return possible[0] if possible else self._more_folds(seen)
        if len(self.candidates) < self._to_search:
            return self._new(seen)
        return self._more_folds(seen)

    def _last_chance(self, seen: Experience | None) -> int | None:
        """A candidate that can be completed just now, if anything else would leave none that is; else None."""
        alive = [candidate for candidate in self.candidates if not candidate.failed]
        fewest = min((candidate.missing for candidate in alive), default=0)
        if not fewest or self.left > fewest:
            return None
        ranked = [] if seen is None else self._ranked(seen, 0.0)
        possible = [
            at for at in (*ranked, *range(len(self.candidates))) if 0 < self.candidates[at].missing <= self.left
        ]
        return possible[0] if possible else None

    @property
    def _to_search(self) -> int:
        return max(1, round(_SEARCHED * self.budget))

    def _more_folds(self, seen: Experience) -> int | None:
        """The candidate that may be the best, among those with folds to evaluate."""
        open_ones = (at for at in self._ranked(seen, _DOUBT) if self.candidates[at].missing)
        found = next(open_ones, None)
        return self._new(seen) if found is None else found

    def _new(self, seen: Experience | None) -> int | None:
        """A new configuration, or one with folds left that is proposed again; None if there is none."""
        if seen is None or len(self.candidates) < _SPREAD:
            row = self._spread_row()
        else:
            taken = [candidate.row for candidate in self.candidates if not candidate.missing or self._is_out(candidate)]
            row = self._proposer.propose(seen, np.array(taken).reshape(-1, self._box.dim), self._rng)
        at = self._places.get(row_key(row))
        if at is None:
            return self._added(self._space.configuration(row), row)
        if self.candidates[at].missing:
            return at
        return self._any_left()

    def _any_left(self) -> int | None:
        """A candidate with folds left, the first of those tried, or else a random new configuration."""
        for at, candidate in enumerate(self.candidates):
            if candidate.missing:
                return at
        for row in self._box.region.sample(_SPREAD * len(self.candidates), self._rng):
            snapped = self._box.snapped(row)
            if row_key(snapped) not in self._places:
                return self._added(self._space.configuration(snapped), snapped)
        return None

    def _is_out(self, candidate: Candidate) -> bool:
        return candidate.asked > len(candidate.scores)

    def _spread_row(self) -> Array:
        """The centre first, then points that cover the space; in a small space some of them coincide."""
        row = centre(self._box)
        for _ in range(_SPREAD):
            if row_key(row) not in self._places:
                break
            self._spread += 1
            row = self._box.encode(self._box.spread(self._spread + 1, rng=self._seed)[self._spread])
        return row

    def _added(self, configuration: Configuration, row: Array) -> int:
        order = tuple(self._rng.permutation(self.folds).tolist())
        self.candidates.append(Candidate(configuration, row, order))
        self._places[row_key(row)] = len(self.candidates) - 1
        return len(self.candidates) - 1

    def _ranked(self, seen: Experience, doubt: float) -> list[int]:
        """The candidates with a score, the most promising first."""
        out = [candidate.row for candidate in self.candidates if self._is_out(candidate) and not candidate.failed]
        tried = [at for at, candidate in enumerate(self.candidates) if candidate.scores and not candidate.failed]
        if not tried:
            return []
        rows = np.array([self.candidates[at].row for at in tried])
        means, deviations = self._proposer.standings(seen, np.array(out).reshape(-1, self._box.dim), rows)
        order = np.argsort(-(means + doubt * deviations), kind="stable")
        return [tried[i] for i in order]

    def _experience(self) -> Experience | None:
        """The scores without fold effects; a failure counts as the worst of them. None before the first score."""
        scores = np.array([score for _, score in self._told])
        finite = np.isfinite(scores)
        if not finite.any():
            return None
        scores = np.where(finite, scores, scores[finite].min())
        effects = fold_effects(
            [told for told in self._told[: last_fit(len(scores))] if np.isfinite(told[1])], self.folds
        )
        scores -= np.array([effects[pull.fold] for pull, _ in self._told])
        rows = np.array([self.candidates[pull.candidate].row for pull, _ in self._told])
        return Experience(rows, scores, np.ones(len(scores)))


def fold_effects(told: list[tuple[Pull, float]], folds: int) -> Array:
    """How much better scores are on each fold, (K,), from configurations with several folds.

    The minimum of Σ (score − a_configuration − f_fold)² + shrinkage·Σ f², over levels a and effects f.
    """
    by_candidate: dict[int, list[tuple[int, float]]] = {}
    for pull, score in told:
        by_candidate.setdefault(pull.candidate, []).append((pull.fold, score))
    matrix, right = _SHRINKAGE * np.eye(folds), np.zeros(folds)
    for scores in by_candidate.values():
        where = np.array([fold for fold, _ in scores])
        values = np.array([score for _, score in scores])
        matrix[where, where] += 1.0
        matrix[np.ix_(where, where)] -= 1.0 / len(where)
        right[where] += values - values.mean()
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)

"""A certificate for any tuner's run: how good the recommended configuration is, and which others may be the best.

Bounds hold at all times at once, whichever tuner chose the trials, if expected values are linear in the features, with
the stated norm and noise: nothing is assumed about how actions are chosen. State what the data cannot show: how noisy a
value is, and how rough the function can be.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array, as_generator
from mixbandit.actions import Box, Levels, MixedBox, OneHot
from mixbandit.certificates import Certificate, certificate
from mixbandit.errors import AssumptionsRefutedWarning, InvalidInput, warn_user
from mixbandit.features import FeatureMap
from mixbandit.mixtures import Forecaster, Mixture
from mixbandit.search import THOROUGH, Advantage, search_box
from mixbandit.sequences import Audit, Model, Moment
from mixbandit.tuning.assumptions import Assumptions, Stated
from mixbandit.tuning.parameters import Categorical
from mixbandit.tuning.runs import read_run
from mixbandit.tuning.space import Space

# Each parameter is split into this many slices.
_SLICES = 16
# Trials are learnt this many at a time: the features of a million of them would need gigabytes. A multiple of the rows
# that data fold at once, so that the numbers are the same to the last bit.
_AT_ONCE = 4 * 4096
_EFFORT = THOROUGH.times(0.5)
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Possible:
    """The values of one parameter for which some configuration can still be the best."""

    name: str
    values: tuple[Any, ...]  # choices, or (low, high) intervals of numbers
    share: float  # of the parameter's range or choices

    def __str__(self) -> str:
        shown = [_interval(v) if isinstance(v, tuple) else f"{v!r}" for v in self.values]
        everything = " (everything)" if self.share >= 1.0 else f" ({self.share:.0%})"
        return f"{self.name}: {', '.join(shown) or 'nothing'}{everything}"


def _interval(ends: tuple[float, float]) -> str:
    low, high = (f"{end}" if isinstance(end, int) else f"{end:.4g}" for end in ends)
    return low if ends[0] == ends[1] else f"{low} to {high}"


@dataclass(frozen=True)
class StudyCertificate(Certificate):
    """A certificate whose `action` is a configuration, with what remains of the space and the audit.

    Rewards are the values of the study, or minus the values if it minimises; so are `lower`, `upper` and
    `optimum_upper`. `interval` and `best_possible` are in terms of values.
    """

    direction: str = "maximize"
    search_possible: Callable[[], tuple[Possible, ...]] | None = dataclasses.field(
        default=None, repr=False, compare=False
    )
    audit: Audit | None = None
    left_out: Mapping[str, int] = dataclasses.field(default_factory=dict)  # trials that do not count, by reason
    unused: Mapping[str, str] = dataclasses.field(default_factory=dict)  # columns that are not used, with the reason
    inferred_space: bool = False
    infeasible: int | None = None  # trials not known to satisfy the study's constraints; None without constraints

    @functools.cached_property
    def possible(self) -> tuple[Possible, ...]:
        """Where the best can still be, parameter by parameter, according to a search that runs on first access."""
        return () if self.search_possible is None else self.search_possible()

    @property
    def interval(self) -> tuple[float, float]:
        """An interval for the expected value of the recommended configuration."""
        return (self.lower, self.upper) if self.direction == "maximize" else (-self.upper, -self.lower)

    @property
    def best_possible(self) -> float:
        """No configuration has a better expected value."""
        return self.optimum_upper if self.direction == "maximize" else -self.optimum_upper

    def __str__(self) -> str:
        low, high = (end + 0.0 for end in self.interval)  # without −0
        upwards = self.direction == "maximize"
        worst = f"at least {low:.4g}" if upwards else f"at most {high:.4g}"
        better, most = ("larger", "most") if upwards else ("smaller", "least")
        how = "the end of the stated range" if self.proof == "range" else "proven"
        how = how if self.proven else "NOT PROVEN: the best a search found"
        lines = [
            f"Recommended, based on {self.t} trial{'' if self.t == 1 else 's'}: {self.action}",
            f"Its expected value is {worst} and lies in [{low:.4g}, {high:.4g}].",
            f"The best expected value of any configuration is at {most} {self.best_possible + 0.0:.4g} ({how}).",
            f"No configuration's expected value is {better} than the recommended one's by more than {self.gap:.4g}.",
        ]
        if not self.trusted:
            lines.insert(0, "WARNING: the data refute the stated assumptions; none of this is guaranteed:")
        else:
            what = "This holds" if self.proven else "Of this only the interval holds,"
            lines.append(f"{what} with probability at least {1 - self.delta:.6g}, whichever tuner was used, given")
            lines.append(f"{self.assumptions}, and expected values linear in the features.")
        lines += self._reservations()
        if self.possible:
            lines.append("Where the best can still be, according to a search:")
            lines += [f"  {part}" for part in self.possible]
        if self.audit is not None:
            lines += ["Audit:", *(f"  {sentence}" for sentence in self.audit.sentences)]
        return "\n".join(lines)

    def _reservations(self) -> list[str]:
        """What was left out, and what was assumed about the run."""
        lines = []
        if self.infeasible is not None:
            lines += [
                f"Constraints: {self.infeasible} of {self.t} trials are not known to be feasible. They count as",
                "data, but only a feasible configuration that was tried is recommended. The bounds on other",
                "configurations hold for feasible and infeasible ones alike; an untried one may be either.",
            ]
        if self.inferred_space:
            lines.append("The space is inferred from the trials; pass `space` if it is larger.")
        if self.left_out:
            lines.append("Not counted: " + ", ".join(f"{n} {why}" for why, n in self.left_out.items()) + ".")
            if {"PRUNED", "FAIL"} & set(self.left_out):
                lines.append(
                    "The reasons for pruning and failing must have had nothing to do with the noise of values."
                )
        if self.unused:
            reasons = dict.fromkeys(self.unused.values())
            named = {why: ", ".join(repr(name) for name in self.unused if self.unused[name] == why) for why in reasons}
            lines.append("Not used: " + "; ".join(f"{names} ({why})" for why, names in named.items()) + ".")
        return lines


def certify(
    history: Any,
    assumptions: Assumptions | None = None,
    *,
    space: Space | None = None,
    value: str | None = None,
    parameters: Sequence[str] | None = None,
    features: FeatureMap | None = None,
    mixture: Mixture | Forecaster | None = None,
    rng: int | np.random.Generator | None = 0,
    **stated: Unpack[Stated],
) -> StudyCertificate:
    """Certify a run: an Optuna study, a DataFrame, a CSV file, or a list of (configuration, value).

    State what you know about values, as `Assumptions` or as keywords: `reward_range=(0, 1)` and the number of
    independent `samples` that a value averages; or `sigma`, the noise level, and then a `norm_bound` as well. Without
    either, nothing can be guaranteed, and AssumptionsMissing says what to state. `direction` defaults to the run's.

    In a table `value` names the column of values, "value" by default, and `parameters` those of the parameters: by
    default the `params_…` columns if there are any, else all others. What is not used is listed in `unused`, and rows
    that do not count in `left_out`. In a study with constraints only feasible configurations that were tried are
    recommended.

    The function is modelled by 100 random Fourier features of length-scale 0.2√(number of parameters) on the unit box,
    plus a constant, unless `features` (of `space.dim` inputs) are given; `mixture` determines how tight the bounds are.
    """
    found = certified(history, assumptions, space=space, value=value, parameters=parameters, features=features,
                      mixture=mixture, rng=rng, stated=stated)  # fmt: skip
    if not found.trusted:
        warn_user(f"at level {found.delta:g} the data refute {found.assumptions}", AssumptionsRefutedWarning)
    return found


def certified(
    history: Any,
    assumptions: Assumptions | None,
    *,
    space: Space | None = None,
    value: str | None = None,
    parameters: Sequence[str] | None = None,
    features: FeatureMap | None = None,
    mixture: Mixture | Forecaster | None = None,
    rng: int | np.random.Generator | None = 0,
    stated: Stated,
    progress: Callable[[str], None] = lambda doing: None,
) -> StudyCertificate:
    """`certify` for callers that report refuted assumptions themselves; `progress` is told what is being done."""
    known = Assumptions.of(assumptions, stated)
    run = read_run(
        history,
        space=space,
        direction=known.direction,
        value=value,
        parameters=parameters,
        progress=lambda rows: progress(f"read {rows:,} rows"),
    )
    known = known.towards(run.direction)
    rewards, moment = known.reward(run.values), known.sequence(run.space, features, mixture).moment
    for start in range(0, len(rewards), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        moment = moment.learnt(run.encoded(part), rewards[part])
        progress(f"learnt {min(part.stop, len(rewards)):,} of {len(rewards):,} trials")
    warm, candidates = run.encoded(np.argsort(-rewards)[:5]), None
    if run.feasible is not None:
        candidates = np.flatnonzero(run.feasible)
        if not len(candidates):
            raise InvalidInput(
                f"none of the {len(rewards)} completed trials is known to satisfy the study's constraints: there is "
                "nothing to recommend"
            )
    progress("searching for the best configuration")
    found = study_certificate(
        moment,
        known,
        run.space,
        as_generator(rng),
        warm=warm,
        among=None if candidates is None else run.encoded(candidates),
    )
    return dataclasses.replace(
        found,
        left_out=run.left_out,
        unused=run.unused,
        inferred_space=run.inferred,
        infeasible=None if candidates is None else len(rewards) - len(candidates),
    )


def study_certificate(
    moment: Moment,
    assumptions: Assumptions,
    space: Space,
    rng: np.random.Generator,
    *,
    warm: Array | None = None,
    refuted: bool = False,
    among: Array | None = None,
) -> StudyCertificate:
    """The certificate of a moment with rewards, in terms of values and parameters.

    `refuted`: whether the assumptions were refuted before, whatever the data say now. `among`: the only rows that may
    be recommended; by default any configuration may.
    """
    found = certificate(moment, space.region, rng, warm=warm)
    found = at_a_configuration(found, moment, space) if among is None else _at_the_best_of(found, moment, among)
    audit = dataclasses.replace(moment.audit(), reward_range=assumptions.reward_range)
    trusted = found.trusted and not moment.noise_refuted and not refuted
    seed = int(rng.integers(2**63))
    shift = assumptions.sign * assumptions.offset
    known = {field.name: getattr(found, field.name) for field in dataclasses.fields(Certificate)}
    return StudyCertificate(
        **{
            **known,
            "action": space.decode(found.action),
            "lower": found.lower + shift,
            "upper": found.upper + shift,
            "optimum_upper": found.optimum_upper + shift,
            "optimum_found": None if found.optimum_found is None else found.optimum_found + shift,
            "assumptions": str(assumptions),
            "trusted": trusted,
        },
        direction=assumptions.direction or "maximize",
        search_possible=functools.partial(still_possible, moment, space, found.action, seed) if trusted else None,
        audit=audit,
    )


def at_a_configuration(found: Certificate, moment: Moment, space: Space) -> Certificate:
    """The certificate of the nearest configuration, for parameters with too many values to list."""
    row = space.snapped(found.action)
    return found if np.array_equal(row, found.action) else _at_the_best_of(found, moment, row[None])


def _at_the_best_of(found: Certificate, moment: Moment, rows: Array) -> Certificate:
    """The certificate of the row with the largest lower bound; the bound on the optimum stays."""
    rows = np.unique(rows, axis=0)
    parts = [moment.lower(moment.directions(rows[i : i + _AT_ONCE])).values for i in range(0, len(rows), _AT_ONCE)]
    best = rows[[int(np.argmax(np.concatenate(parts)))]]
    ends = moment.interval(moment.directions(best))
    lower, upper = float(ends.lower[0]), float(ends.upper[0])
    return dataclasses.replace(
        found,
        action=best[0],
        lower=lower,
        upper=upper,
        gap=max(found.optimum_upper - lower, 0.0),
        trusted=found.trusted and not ends.contradicts,
    )


def still_possible(
    moment: Moment, space: Space, recommended: Array, rng: int | np.random.Generator
) -> tuple[Possible, ...]:
    """Per parameter, the slices with a configuration that may be at least as good as the recommended one.

    This region is smaller than {a : UCB(a) ≥ max LCB} and holds on the same event: both configurations are compared
    under one function at a time. It is found by search: a slice left out may contain a configuration it missed.
    """
    region, generator = space.region, np.random.default_rng(rng)
    score = Advantage(moment.exact, moment.directions(recommended[None])[0])

    def is_enough(advantage: float) -> bool:
        return moment.response.difference(advantage) >= -_ROUNDING

    def reaches(part: Box, model: Model = moment.model) -> bool:
        return is_enough(search_box(score, model, part, generator, effort=_EFFORT).value)

    def reaching(name: str, choices: NDArray[np.int64]) -> Iterator[int]:
        """Those of a category's choices, all of which make the same other coordinates matter."""
        columns = np.array(space.columns(name))
        part = _slice(region, space, name, choice=int(choices[0]))
        assert isinstance(part, MixedBox)
        inner, row, free = part.reduced()
        # First with everything else as recommended, for all choices at once: where that is enough, nothing is searched.
        base = part.snapped(recommended[None])[0]
        base[columns] = 0.0
        advantages = score.maximum(moment.model.exchanged(base, columns[choices], np.ones(len(choices))))
        for choice, advantage in zip(choices, advantages, strict=True):
            row[columns], row[columns[choice]] = 0.0, 1.0
            if is_enough(float(advantage)) or (inner and reaches(inner, moment.model.restricted(row, free))):
                yield int(choice)

    found = []
    for name, parameter in space.items():
        if isinstance(parameter, Categorical):
            assert isinstance(region, MixedBox)
            category = OneHot.of(tuple(space.columns(name)))
            kept = sorted(choice for group in region.alike(category) for choice in reaching(name, group))
            values = tuple(parameter.choices[choice] for choice in kept)
            found.append(Possible(name, values, len(kept) / len(parameter.choices)))
            continue
        ends = _ends(parameter.levels)
        open_ = [reaches(_slice(region, space, name, low=low, high=high)) for low, high in ends]
        values = tuple(
            (parameter.decode(np.array([ends[first][0]])), parameter.decode(np.array([ends[last][1]])))
            for first, last in _runs(open_)
        )
        found.append(Possible(name, values, sum(open_) / len(open_)))
    return tuple(found)


def _ends(levels: Array | None) -> list[tuple[float, float]]:
    """Slices of a coordinate, as (low, high): single values if there are few."""
    if levels is not None and len(levels) <= _SLICES:
        return [(float(v), float(v)) for v in levels[:, 0]]
    edges = np.linspace(0.0, 1.0, _SLICES + 1).tolist()
    if levels is None:
        return list(itertools.pairwise(edges))
    # Slices without a value are dropped; the others reach from their first value to their last.
    groups = [levels[(levels[:, 0] >= a) & (levels[:, 0] < b), 0] for a, b in itertools.pairwise([*edges[:-1], 1.1])]
    return [(float(group[0]), float(group[-1])) for group in groups if len(group)]


def _runs(flags: list[bool]) -> list[tuple[int, int]]:
    """First and last index of every run of True."""
    runs = []
    for flag, group in itertools.groupby(enumerate(flags), key=lambda pair: pair[1]):
        if flag:
            indices = [i for i, _ in group]
            runs.append((indices[0], indices[-1]))
    return runs


def _slice(
    region: Box, space: Space, name: str, *, choice: int | None = None, low: float = 0.0, high: float = 1.0
) -> Box:
    """The part of the region where a parameter matters, and has a given choice or lies between two positions."""
    columns = tuple(space.columns(name))
    lower, upper = region.low.copy(), region.high.copy()
    allowed = {}
    if choice is None:
        lower[columns[0]], upper[columns[0]] = low, high
    else:
        allowed[columns] = [choice]
    while name in space.conditions:  # its parents must have the values for which it matters
        parent, values = space.conditions[name]
        on = space[parent]
        assert isinstance(on, Categorical)
        allowed[tuple(space.columns(parent))] = list(dict.fromkeys(on.index(value, parent) for value in values))
        name = parent
    if not isinstance(region, MixedBox):
        return Box(lower, upper)
    levels: list[Levels | OneHot] = []
    for part in region.levels:
        if isinstance(part, OneHot):
            levels.append(OneHot(part.columns, np.array(allowed.get(part.columns, part.choices))))
        elif part.columns == columns:
            inside = part.values[(part.values[:, 0] >= low) & (part.values[:, 0] <= high)]
            levels.append(Levels(part.columns, inside, part.ordered))
        else:
            levels.append(part)
    return MixedBox(lower, upper, levels, region.pins)

"""Confidence sequences as users see them: feed them rewards, ask them for bounds at any time.

A sequence changes; at any time it is at a `Moment`, which does not. It is made of a model (actions ↔ directions),
a rule (the sets) and a response (from φᵀθ to expected rewards).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import (
    Array,
    as_range,
    as_vector,
    flag,
    instance_of,
    nonnegative,
    one_of,
    positive,
    probability,
    shown,
    underflowing,
)
from mixbandit._lazy import setting
from mixbandit._locks import Lock, locked
from mixbandit._schema import Fields, Schema, Since, list_of, one_of_these, optional, real, record
from mixbandit.errors import (
    AssumptionsRefuted,
    AssumptionsRefutedWarning,
    InvalidInput,
    NotMergeable,
    NotStorable,
    reading,
    warn_user,
)
from mixbandit.features import FeatureMap, FromCallable
from mixbandit.kernels import Kernel
from mixbandit.mixtures import Mixture
from mixbandit.models import model_kind
from mixbandit.sequences.belief import Belief
from mixbandit.sequences.learning import Rewards, checked_rewards
from mixbandit.sequences.moment import MERGED, Moment, as_moment
from mixbandit.sequences.refutation import Audit
from mixbandit.sequences.response import Affine, Bounds, Response
from mixbandit.sequences.rules import BallRule, Rule
from mixbandit.sets import CASES
from mixbandit.storage import FILES, Family, Storable, Stored, is_kind, not_storable, plain

Kind = TypeVar("Kind", bound="ConfidenceSequence")

STATE_VERSION = 1
ON_EMPTY = ("raise", "inflate")


@dataclass(frozen=True)
class Support:
    """Upper bounds and their maximisers, one row per action."""

    value: Array  # (n,) the upper bounds
    theta: Array | None  # (n, d) a maximiser of φᵀθ; for a closed form, the gradient of the bound in φ; not for kernels
    grad: Array  # (n, dim_in) J_φᵀθ: the gradient in the action, a subgradient where θ is not unique
    alpha: Array  # (n,) the multiplier: inf where only the norm bound binds, 0 where it does not
    case: np.ndarray[Any, np.dtype[np.str_]]  # (n,) one of sets.CASES, or "range" where a known range caps it
    inflated: bool = False  # True: the set is empty and had to be enlarged, so no guarantee remains


_CASE_NAMES = np.array(CASES)


class Home(Protocol):
    """Where a sequence's belief is kept, and whether the data have been seen to refute the assumptions."""

    refuted: bool
    lock: Lock  # held while the belief changes

    @property
    def moment(self) -> Any: ...

    def absorb(self, rewards: Rewards) -> None:
        """Learn rewards that were checked."""
        ...


class OwnHome:
    """The home of a standalone sequence."""

    def __init__(self, moment: Any) -> None:
        self.moment, self.refuted, self.lock = moment, False, Lock()

    @locked
    def absorb(self, rewards: Rewards) -> None:
        self.moment = self.moment.after(*rewards)


# The settings that several kinds have; a name means the same in all of them.
_SHARED: dict[str, Schema | Since] = {
    "sigma": real(positive),
    "delta": real(probability),
    "norm_bound": optional(real(positive)),
    "reward_range": optional(as_range),
    "on_empty": one_of_these(*ON_EMPTY),
    "misspecification": real(nonnegative),
    "mixture": Mixture.family,
    "suspects": Since(list_of(Kernel.family), ()),
}


def shared(*names: str) -> dict[str, Schema | Since]:
    """Some of the settings that several kinds have, for a `schema`; it lists settings in the order of comparison."""
    return {name: _SHARED[name] for name in names}


class ConfidenceSequence(Storable):
    """Error bars for φ(a)ᵀθ*, from rewards r = φ(a)ᵀθ* + noise."""

    family = Family("a confidence sequence", "sequence", within=FILES)
    memory: ClassVar[record] = record({})  # the form of what its rule remembers besides the data
    advice: ClassVar[str] = "state weaker assumptions"  # what a user can do about a refutation

    features: FeatureMap | None = setting("moment.model.features", "The feature map φ; None for a kernel.")
    kernel: Kernel | None = setting("moment.model.kernel", "The kernel; None for features.")
    dim_in: int | None = setting("moment.model.dim_in", "The length of an action row; None while it is not known.")
    delta: float = setting("moment.delta", "The probability that bounds ever fail, if the assumptions hold.")
    guarantee: str = setting(
        "moment.guarantee",
        '"anytime": under the assumptions, at all times at once with probability ≥ 1−δ, whatever chose the actions. '
        '"bayesian": only on average over a prior.',
    )
    t: int = setting("moment.t", "How many rewards have been seen.")
    alpha0: float = setting("moment.alpha0", "The multiplier that works best for the closed form.")
    is_empty: bool = setting("moment.is_empty", "Whether no parameter is left, which refutes the assumptions.")
    noise_refuted: bool = setting(
        "moment.noise_refuted",
        "Whether residuals of every linear function within the norm bound are larger than σ allows, at level δ. Always "
        "False for `UnknownNoise`, which states no σ.",
    )
    suspect_refuted: bool = setting(
        "moment.suspect_refuted",
        "Whether functions of the suspects predict the rewards too well for the model to hold, at level δ, which is "
        "shared with the noise test.",
    )
    is_trusted: bool = setting("moment.is_trusted", "Whether no test refutes the assumptions.")

    is_refuted = property(
        lambda self: not self.is_trusted,
        doc="Whether the data so far refute the assumptions: the set is empty, residuals are too large for σ, or "
        "suspects predict them too well. Emptiness, and the other two together, ever give a false alarm with "
        "probability at most δ each. So a refutation seen once stands, though later data may hide it. A sequence says "
        "what its data say now; policies, tuners and certificates remember.",
    )

    def __init__(self, rule: Rule | Belief[Any], response: Response | None = None, on_empty: str = "raise") -> None:
        """From a rule and a response; or from a belief of your own, before any reward."""
        self.on_empty = on_empty
        self.merged = False  # whether shards were merged one by one, so that bounds may have been read in between
        self.silent = False  # True where the caller reports refuted assumptions
        self._home: Home = OwnHome(rule if isinstance(rule, Belief) else _started(rule, response))

    def __repr__(self) -> str:
        model = self.moment.model
        of = repr(model.kernel) if model.kernel is not None else f"dim={model.dim or model.dim_in}"
        settings = f"{of}, {self.moment.stated()}, delta={self.delta:g}, t={self.t}"
        return f"{type(self).__name__}({settings}{'; given' + MERGED if self.merged else ''})"

    @property
    def moment(self) -> Any:
        """The sequence as it is now, as a value: a `Moment`, or another `Belief`."""
        return self._home.moment

    def live_in(self, home: Home) -> Self:
        """Keep the moment in `home` from now on, so that it changes together with the rest of it.

        A sequence that already lives in another home stays there; a copy is returned instead.
        """
        new = self if isinstance(self._home, OwnHome) else self.copy()
        new._home = home
        return new

    @underflowing
    def update(self, actions: ArrayLike, rewards: ArrayLike, sigma: ArrayLike | None = None) -> Self:
        """Learn the rewards (n,) of actions (n, dim_in); a single action may be a vector.

        `sigma` states the noise level of these rewards if it is not the sequence's: one number or one
        per reward, known before the rewards are. On an error nothing changes.
        """
        self._home.absorb(checked_rewards(self.moment, actions, rewards, sigma))
        return self

    def after(self, actions: ArrayLike, rewards: ArrayLike, sigma: ArrayLike | None = None) -> Self:
        """A copy that has seen these rewards as well; this sequence is unchanged."""
        return self.copy().update(actions, rewards, sigma)

    @underflowing
    def upper(self, actions: ArrayLike, alpha: float | Sequence[float] | None = None) -> Array:
        """Upper bounds (n,) on the expected rewards; with `alpha`, the closed form, or the best of several (DMM)."""
        moment, known = self._asked(alpha)
        directions = moment.directions(moment.model.checked(actions))
        return self._reported(moment.upper(directions, moment.at(known)))

    @underflowing
    def lower(self, actions: ArrayLike, alpha: float | Sequence[float] | None = None) -> Array:
        """Lower bounds (n,) on the expected rewards: minus the upper bounds of minus the features."""
        moment, known = self._asked(alpha)
        directions = moment.directions(moment.model.checked(actions))
        return self._reported(moment.lower(directions, moment.at(known)))

    @underflowing
    def support(self, actions: ArrayLike, alpha: float | Sequence[float] | None = None) -> Support:
        """Upper bounds with maximisers and gradients."""
        asked, known = self._asked(alpha)
        moment: Moment = as_moment(asked)
        rows = moment.model.checked(actions)
        directions, pullback = moment.model.linearised(rows)
        found = moment.at(known).support(directions)
        bounds = moment.response.upper(found.value)
        grad = moment.response.slope(found.value)[:, None] * pullback(found.points)
        case = _CASE_NAMES[found.case]
        if bounds.capped is not None and bounds.capped.any():
            grad = np.where(bounds.capped[:, None], 0.0, grad)
            case = np.where(bounds.capped, "range", case)
        inflated = moment.is_empty or bounds.contradicts
        theta = moment.model.parameters(found.points)
        return Support(self._reported(bounds), theta, grad, found.alpha, case, inflated)

    @underflowing
    def contains(self, theta: ArrayLike, *, rtol: float = 1e-9) -> bool:
        """Whether the set contains θ; `rtol` allows for rounding at its border."""
        point, slack = _as_parameter(theta, self.moment.model.dim), nonnegative(rtol, "rtol")
        return bool(self.moment.rule.set(self.moment.data).contains(point, slack))

    @underflowing
    def merge(self, other: Self) -> Self:
        """A new sequence with the data of both, which must agree in everything else.

        It is exact: the same as one pass over all data, in any grouping. Bounds are valid at all times along one nested
        path of data sets, as when shards report to a centre that only adds, if *when* a shard reports does not depend
        on what it reports. Otherwise, read no bounds until all shards, fixed in advance, are in. To merge arbitrary
        pairs of stale shards and keep the best is to look at many sequences, which δ does not cover. The new sequence
        is `merged`, and says so where it is printed, as do certificates of policies that act on it.
        """
        if type(other) is not type(self):
            raise NotMergeable(f"a {type(self).__name__} cannot be merged with a {type(other).__name__}")
        apart = self.moment.model.difference(other.moment.model)
        if apart is not None:
            raise NotMergeable(f"the sequences differ in {apart}")
        merged = self.moment.rule.merge(self.moment.data, other.moment.data)
        if self.features is not other.features and isinstance(self.features, FromCallable):
            raise NotMergeable("both sequences must use the same feature function object")
        # One of them may not have seen yet how long actions are.
        new, like = _of_width(self, other.dim_in), _of_width(other, self.dim_in)
        difference = new.difference(like)
        if difference is not None:
            raise NotMergeable(f"the sequences differ in {difference}")
        new._home = OwnHome(new.moment.with_data(merged))
        new.merged = self.merged or other.merged or bool(self.t and other.t)
        return new

    def difference(self, other: ConfidenceSequence) -> str | None:
        """The first setting in which two sequences differ, with its values; None if only their data do."""
        instance_of(other, ConfidenceSequence, "other", "a confidence sequence")
        mine, theirs = self.settings(), other.settings()
        for name, value in mine.items():
            if not _same(value, theirs.get(name)):
                return f"{name}: {shown(value)} and {shown(theirs.get(name))}"
        return None

    def copy(self) -> Self:
        """An independent sequence at the same moment."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new._home = OwnHome(self.moment)
        return new

    def restated(self, **changes: Any) -> Self:
        """A sequence of this kind before any reward, with some of its settings changed: `restated(delta=0.01)`."""
        known = {name: getattr(self, name) for name in self.schema.fields}
        unknown = next((name for name in changes if name not in known), None)
        if unknown is not None:
            raise InvalidInput(f"{type(self).__name__} has no setting {unknown!r}, only {', '.join(known)}")
        return self._restated({**known, **changes})

    def _restated(self, settings: dict[str, Any]) -> Self:
        model: Any = self.moment.model
        return type(self)(model, **settings)

    def settings(self) -> dict[str, Any]:
        """All settings of this sequence, without its data: as plain values, except what is code."""
        kind = {"type": type(self).__name__, "version": STATE_VERSION, **self.moment.model.state_dict()}
        return {**kind, **{name: _plain(value) for name, value in super().settings().items()}}

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to resume later, as numbers, strings, arrays and dicts of these."""
        if not is_kind(type(self)):
            raise not_storable(self)
        kept = {**plain(self.settings()), "type": self.kind, **plain(self.learnt())}
        return {**kept, "merged": True} if self.merged else kept

    def learnt(self) -> dict[str, Any]:
        """The data, and what its rule remembers besides them."""
        data = self.moment.data
        return {self.moment.model.stores: data.state_dict(), **self.moment.rule.memory(data)}

    @classmethod
    def check_state(cls, state: Mapping[str, Any], where: str) -> Fields:
        common: dict[str, Schema | Since] = {"version": one_of_these(STATE_VERSION), "merged": Since(flag, False)}
        fields = {**model_kind(state).schema.fields, **cls.memory.fields, **cls.schema.fields}
        return record({**common, **fields})(state, where)

    @classmethod
    @underflowing
    def restored(cls, stored: Stored, features: Any = None) -> Self:
        with reading(cls.__name__):
            keywords = cls.keywords(stored)
            model = model_kind(stored).restored(stored, features)
            data = model.data_from_state_dict(stored)  # checked before anything of that size is made
            new = cls(model, **keywords)  # type: ignore[arg-type]
            data = new.moment.rule.recalled(stored, data)
        new._home = OwnHome(new.moment.with_data(data))
        new.merged = stored["merged"]
        return new

    def _asked(self, alpha: float | Sequence[float] | None) -> tuple[Any, Any]:
        """The moment, and the multiplier for bounds at it, checked; raises or warns if the set is empty."""
        moment = self.moment
        known = None if alpha is None else moment.check_multiplier(alpha)
        if moment.is_empty:
            self.refute("the confidence set is empty")
        return moment, known

    def _reported(self, bounds: Bounds) -> Array:
        if bounds.contradicts:
            self.refute("a bound on an expected reward lies outside reward_range")
        return bounds.values

    @underflowing
    def audit(self) -> Audit:
        """What the data so far say about the assumptions, at no extra δ; print the result to read it."""
        found: Audit = self.moment.audit()
        return found

    def refute(self, what: str) -> None:
        """Raise AssumptionsRefuted because of `what`, or warn if the user chose to go on."""
        with self._home.lock:
            self._home.refuted = True
        if self.silent:
            return
        moment = self.moment
        message = (
            f"after {moment.t} rewards {what}: at level delta={self.delta:g} the data refute {moment.stated()}, "
            f"or that {moment.model.claim}; {self.advice}"
        )
        if self.on_empty == "raise":
            raise AssumptionsRefuted(message)
        warn_user(message, AssumptionsRefutedWarning)


def _started(rule: Rule, response: Response | None) -> Moment:
    """The moment before any reward."""
    return Moment(rule.model, rule, Affine() if response is None else response, rule.start())


class ResidualBallSequence(ConfidenceSequence):
    """Base of sequences whose set is a residual ball cut by the norm ball."""

    advice = "see audit() for details; on_empty='inflate' continues without a guarantee"

    norm_bound: float = setting("moment.rule.norm_bound", "The stated bound B on ‖θ*‖.")
    reward_range: tuple[float, float] | None = setting("moment.response.range", "The stated range of expected rewards.")

    def __init__(self, rule: BallRule, response: Response, on_empty: str) -> None:
        super().__init__(rule, response, one_of(on_empty, ON_EMPTY, "on_empty"))

    @property
    def _ball_rule(self) -> Any:
        """The rule, of whatever kind the sequence has."""
        return self.moment.rule

    def analytic_radius(self, alpha: float | None = None) -> float:
        """√ρ(α), the radius of the closed-form bound (R_AMM in the paper); at `alpha0` unless given."""
        moment, known = self._asked(None if alpha is None else self._ball_rule.check_alpha(alpha))
        return float(self._ball_rule.analytic_radius(moment.data, moment.alpha0 if known is None else known))

    @underflowing
    def log_evalue(self, theta: ArrayLike) -> float:
        """Logarithm of the mixture martingale E_t(θ): an e-value against θ* = θ that may be read at any time.

        If θ* = θ, it exceeds ln(1/a) at some time with probability at most a, for every a.
        """
        return float(self._ball_rule.log_evalue(self.moment.data, _as_parameter(theta, self.moment.model.dim)))

    def pvalue(self, theta: ArrayLike) -> float:
        """An anytime-valid p-value of θ* = θ: if that is true, it is ever ≤ a with probability at most a."""
        return math.exp(min(-self.log_evalue(theta), 0.0))


def _of_width(sequence: Kind, width: int | None) -> Kind:
    """A copy for action rows of this length, where any would do."""
    new = sequence.copy()
    if width is not None:
        new._home = OwnHome(sequence.moment.of_width(width))
    return new


def _as_parameter(theta: ArrayLike, dim: int | None) -> Array:
    """A parameter vector from user input."""
    if dim is None:
        raise InvalidInput("kernel models have no parameter vector: ask for bounds at actions instead")
    return as_vector(theta, dim, "theta")


def _plain(value: Any) -> Any:
    """A setting as it is stored, or as it is if that is code."""
    try:
        return plain(value)
    except NotStorable:
        return value


def _same(a: Any, b: Any) -> bool:
    """Equality of settings, which may be nested and hold arrays."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(np.array_equal(a, b))

import numpy as np

import mixbandit as mb
from mixbandit.models import Model
from mixbandit.sequences import Affine, Belief, BeliefSequence, shared
from mixbandit.sets import FromMaximum, Maximum
from mixbandit.storage import integer, list_of, record


class Pairs:
    """Directions: terms (arm, features) whose values are summed, arms (n, m) and features (n, m, d)."""

    def __init__(self, arms, phi):
        self.arms, self.phi = arms, phi

    def by_arm(self):
        """Each arm that occurs, with the terms that are its own."""
        return [(arm, self.arms == arm) for arm in np.unique(self.arms)]

    def __len__(self):
        return len(self.arms)

    def __getitem__(self, which):
        return Pairs(self.arms[which], self.phi[which])

    def __neg__(self):
        return Pairs(self.arms, -self.phi)

    def __sub__(self, other):  # of directions with one term each
        arms, phi = np.broadcast_to(other.arms, self.arms.shape), np.broadcast_to(other.phi, self.phi.shape)
        same = (arms == self.arms)[..., None]  # the same arm has the same θ: its terms are one
        parts = self.phi - np.where(same, phi, 0.0), np.where(same, 0.0, -phi)
        return Pairs(np.concatenate((self.arms, arms), axis=-1), np.concatenate(parts, axis=-2))


class Product(FromMaximum):
    """θ = (θ_1, …, θ_K), each in the set of its own arm."""

    def __init__(self, members):
        self.members = members

    def maximum(self, directions):
        values = np.zeros(directions.arms.shape)
        for arm, own in directions.by_arm():
            values[own] = self.members[arm].maximum(directions.phi[own])
        return values.sum(axis=1)

    def support(self, directions):
        points, (alpha, case) = np.zeros(directions.phi.shape), np.zeros((2, *directions.arms.shape))
        for arm, own in directions.by_arm():
            _, points[own], alpha[own], case[own] = self.members[arm].support(directions.phi[own])
        return Maximum(self.maximum(directions), points, alpha[:, 0], case[:, 0].astype(int))

    def contains(self, theta, rtol):
        return all(member.contains(own, rtol) for member, own in zip(self.members, theta, strict=True))


class ByArm(Model):
    """Rows (features, number of the arm)."""

    claim = "the expected reward of every arm is linear in the features, with parameters of its own"
    dim_in = None

    def __init__(self, arms, dim):
        self.arms, self.dim_in = arms, dim + 1

    def directions(self, actions, largest=np.inf):
        arms = actions[:, -1:].astype(int)
        if not ((arms == actions[:, -1:]) & (arms >= 0) & (arms < self.arms)).all():
            raise mb.InvalidInput(f"rows must end with the number of an arm below {self.arms}, got {actions[:, -1]}")
        return Pairs(arms, actions[:, None, :-1])


class Blocks(Belief):
    """A sequence for each arm. All of them begin as `one`, and `after` gives each the rewards of its own arm."""

    kind, response = "blocks", Affine()

    def __init__(self, model, delta, one, blocks):
        self.model, self.delta, self.one, self.blocks = model, delta, one, blocks

    def having(self, blocks):
        return Blocks(self.model, self.delta, self.one, blocks)

    def blank(self):
        return self.having([self.one] * len(self.blocks))

    def after(self, rows, rewards, weights=None):
        blocks = list(self.blocks)
        for arm, own in self.model.directions(rows).by_arm():
            blocks[arm] = blocks[arm].after(rows[own[:, 0], :-1], rewards[own[:, 0]])
        return self.having(blocks)

    def at(self, alpha):
        if alpha is not None:
            self.check_multiplier(alpha)  # raises: the closed form is left out here
        return Product([block.moment.exact for block in self.blocks])

    @property
    def estimate(self):
        return Product([block.moment.estimate for block in self.blocks])

    @property
    def t(self):
        return sum(block.t for block in self.blocks)

    @property
    def is_empty(self):
        return any(block.is_empty for block in self.blocks)

    @property
    def refutation(self):
        return next((block.moment.refutation for block in self.blocks if block.moment.is_refuted), None)

    def stated(self):
        return f"{self.one.moment.stated()} for each of {len(self.blocks)} arms"


class PerArm(BeliefSequence):
    """Error bars for arms with a parameter each; the arms share δ."""

    kind = "PerArm"
    schema = record({"arms": integer(1), "dim": integer(1), **shared("sigma", "norm_bound", "delta")})
    memory = record({"blocks": list_of(mb.MartingaleMixture.family)})

    def __init__(self, arms, dim, *, sigma, norm_bound, delta=0.05):
        self.arms, self.dim, self.sigma, self.norm_bound = arms, dim, sigma, norm_bound
        part = mb.Spending(delta).each(arms).delta
        one = mb.MartingaleMixture(dim, sigma=sigma, norm_bound=norm_bound, delta=part)
        super().__init__(Blocks(ByArm(arms, dim), delta, one, [one] * arms))

    def learnt(self):
        return {"blocks": self.moment.blocks}

    def believing(self, memory):
        if len(memory["blocks"]) != self.arms:
            raise mb.InvalidInput(f"there must be {self.arms} blocks, got {len(memory['blocks'])}")
        return self.moment.having(memory["blocks"])

"""The paper's confidence sequence in the function space of a kernel (Flynn & Reeb 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mixbandit.errors import InvalidInput
from mixbandit.kernels import Kernel, as_kernel
from mixbandit.mixtures import Forecaster, Mixture
from mixbandit.models import DataModel, KernelListModel, KernelModel, as_model
from mixbandit.sequences.alternatives import AlternativesRule
from mixbandit.sequences.martingale import MartingaleMixture


class KernelMixture(MartingaleMixture):
    """Functions f with ‖f(a) − r‖ ≤ R_t and ‖f‖ ≤ B hold f* at all times t at once with probability ≥ 1−δ.

    Assumed: the expected reward of an action a is f*(a), f* in the function space of the `kernel`, a mixbandit or
    scikit-learn one, with norm at most `norm_bound`; and noise that is conditionally `sigma`-sub-Gaussian. Nothing is
    assumed about how the actions were chosen.

    `upper` and `lower` are exact, O(t³) after each update; with `alpha` they are the closed form, O(t²); with a list of
    multipliers, the best closed form in every direction (DMM). This is practical for a few thousand rewards. `dim_in`
    is the length of actions, by default that of the first ones. The other settings are those of `MartingaleMixture`.

    With a list of kernels, f* is assumed to lie in the space of at least one of them. Kernels whose set is empty drop
    out, bounds are the loosest of the others', and one δ covers all of them. To state different norm bounds, give the
    kernels different variances.
    """

    def __init__(
        self,
        kernel: Kernel | Sequence[Kernel],
        *,
        sigma: float,
        norm_bound: float,
        delta: float = 0.01,
        mixture: Mixture | Forecaster | None = None,
        reward_range: tuple[float, float] | None = None,
        misspecification: float = 0.0,
        on_empty: str = "raise",
        suspects: Sequence[Kernel] = (),
        dim_in: int | None = None,
    ) -> None:
        super().__init__(
            _kernel_model(kernel, dim_in),  # type: ignore[arg-type]
            sigma=sigma,
            norm_bound=norm_bound,
            delta=delta,
            mixture=mixture,
            reward_range=reward_range,
            misspecification=misspecification,
            on_empty=on_empty,
            suspects=suspects,
        )

    def _rule_of(self, model: DataModel, *settings: Any) -> Any:
        if isinstance(model, KernelListModel):
            return AlternativesRule(model, *settings)
        return super()._rule_of(model, *settings)

    def __repr__(self) -> str:
        of = self.kernel if self.kernel is not None else list(self.kernels)
        return f"{type(self).__name__}({of}, {self.moment.rule.stated()}, delta={self.delta:g}, t={self.t})"

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels, one or several."""
        model = self.moment.model
        members = model.members if isinstance(model, KernelListModel) else (model,)
        return tuple(member.kernel for member in members)

    @property
    def possible_kernels(self) -> tuple[Kernel, ...]:
        """The kernels that the data have not refuted."""
        return tuple(self.kernels[i] for i in self._ball_rule.left(self.moment.data))


def _kernel_model(given: Any, dim_in: int | None) -> KernelModel | KernelListModel:
    if isinstance(given, KernelModel | KernelListModel):
        return given
    several = isinstance(given, list | tuple)
    if several and not given:
        raise InvalidInput("kernel must be a kernel or a list of kernels, got an empty list")
    model = as_model([as_kernel(each) for each in given] if several else as_kernel(given), dim_in)
    assert isinstance(model, KernelModel | KernelListModel)
    return model

"""What has been seen, as values: rows and rewards, decomposed so that sets can be made from them.

Features: the QR factor of [Φ r] (`factor`). Kernels: the actions themselves (`observations`). Both give
a `spectrum`, for exact sets, and a `ridge`, for closed forms; these know how directions look in their own coordinates,
so that sets do not need to.
"""

from mixbandit.data.alternatives import AlternativeFunctions, Alternatives, AlternativeSections, as_alternatives
from mixbandit.data.arm_directions import ArmDirections, ArmNumbers, flat
from mixbandit.data.base import Data, RidgeRegression
from mixbandit.data.cholesky import BlockCholesky, GrowingCholesky, check_factor, is_well_conditioned
from mixbandit.data.directions import SAFE_SIZE, are_safe, length, squares
from mixbandit.data.factor import STATISTICS, Factor, Folded, as_factor, factor_of, numerical_rank, spread_of
from mixbandit.data.observations import OBSERVATIONS, KernelRidge, KernelSpectrum, Observations, observations_of
from mixbandit.data.recovered import Recovered
from mixbandit.data.ridge import Ridge
from mixbandit.data.ridges import RIDGES, About, Residual, Ridges
from mixbandit.data.sections import Functions, Sections
from mixbandit.data.spectrum import Decomposed, Ridged, Spectrum, widened

__all__ = [
    "OBSERVATIONS",
    "RIDGES",
    "SAFE_SIZE",
    "STATISTICS",
    "About",
    "AlternativeFunctions",
    "AlternativeSections",
    "Alternatives",
    "ArmDirections",
    "ArmNumbers",
    "BlockCholesky",
    "Data",
    "Decomposed",
    "Factor",
    "Folded",
    "Functions",
    "GrowingCholesky",
    "KernelRidge",
    "KernelSpectrum",
    "Observations",
    "Recovered",
    "Residual",
    "Ridge",
    "RidgeRegression",
    "Ridged",
    "Ridges",
    "Sections",
    "Spectrum",
    "are_safe",
    "as_alternatives",
    "as_factor",
    "check_factor",
    "factor_of",
    "flat",
    "is_well_conditioned",
    "length",
    "numerical_rank",
    "observations_of",
    "spread_of",
    "squares",
    "widened",
]

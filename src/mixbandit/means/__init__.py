"""One mean, or two, without a model: intervals, e-values and p-values that hold at all times at once."""

from mixbandit.means.compare import MeanComparison, compare_means
from mixbandit.means.sequence import MeanSequence, are_comparable, precisions

__all__ = ["MeanComparison", "MeanSequence", "are_comparable", "compare_means", "precisions"]

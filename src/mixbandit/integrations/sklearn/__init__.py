"""scikit-learn: a search that evaluates one fold of a configuration at a time, and certifies the best."""

from mixbandit._extras import import_extra

import_extra("sklearn", extra="sklearn")  # import first, with a message that says what to install

from mixbandit.integrations.sklearn.certificate import FoldCertificate  # noqa: E402
from mixbandit.integrations.sklearn.search import MixBanditSearchCV  # noqa: E402
from mixbandit.tuning.guaranteed import best_guaranteed  # noqa: E402

__all__ = ["FoldCertificate", "MixBanditSearchCV", "best_guaranteed"]

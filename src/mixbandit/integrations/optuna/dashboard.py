"""A study's certificate in Optuna's dashboard: a note and plots."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Unpack

from optuna.trial import FrozenTrial, TrialState

from mixbandit._extras import import_extra
from mixbandit.errors import AssumptionsRefutedWarning, warn_user
from mixbandit.integrations.optuna.drawn import Drawn
from mixbandit.integrations.optuna.note import certificate_note, with_section
from mixbandit.integrations.optuna.pictures import certificate_for, draw_history, draw_worths
from mixbandit.integrations.optuna.saying import Said
from mixbandit.integrations.optuna.stopping import Pace, as_space
from mixbandit.tuning import Assumptions, Parameter, Space, StudyCertificate
from mixbandit.tuning.assumptions import Stated
from mixbandit.tuning.ledgers import refuted_in_words
from mixbandit.tuning.marks import may_be_recommended

if TYPE_CHECKING:
    from optuna.study import Study

_logger = logging.getLogger(__name__)

# Under these names pictures are stored, and replaced.
HISTORY, WORTHS = "mixbandit-certificate", "mixbandit-worths"
# The dashboard stores a picture in pieces of two kilobytes, one write each: beyond this many dots some are left out.
_MOST_DOTS = 500
_CONFIGURATIONS, _TARGET = 10, "Objective Value"


def publish(
    study: Study,
    *,
    assumptions: Assumptions | None = None,
    space: Space | dict[str, Parameter] | None = None,
    certificate: StudyCertificate | None = None,
    **stated: Unpack[Stated],
) -> StudyCertificate:
    """Put the study's certificate into Optuna's dashboard, as a part of its note and as two plots, and return it.

    State what you know about values as for `plot_certificate`; the default is what was stated to the study's
    `MixBanditSampler`. Publishing again replaces what was published; the rest of the note stays. If the study cannot be
    certified, that is an error, and nothing changes.
    """
    import_extra("optuna_dashboard", extra="dashboard")
    found = certificate_for(study, assumptions, space, certificate, stated)
    _put(study, found)
    return found


def _put(study: Study, certificate: StudyCertificate) -> None:
    """Draw first, write afterwards: an error on the way changes nothing."""
    dashboard = import_extra("optuna_dashboard", extra="dashboard")
    last = Drawn.of(study, certificate).counted[-1].number
    pictures = {
        HISTORY: draw_history(study, certificate, _TARGET, most=_MOST_DOTS),
        WORTHS: draw_worths(study, certificate, _CONFIGURATIONS, _TARGET),
    }
    section = certificate_note(certificate, last)
    for name, picture in pictures.items():
        dashboard.save_plotly_graph_object(study, picture, graph_object_id=name)
    # Read as late as possible: somebody may be writing.
    dashboard.save_note(study, with_section(dashboard.get_note(study), section))


class Publish:
    """A callback for `study.optimize`: publish the certificate after every `every` completed trials.

    `certificate` is the latest one. State assumptions as for `publish`. It never ends a study with an error: if the
    study cannot be certified or its storage does not answer, it warns once and lets the study run on. If several
    processes run the study, let only one of them publish: the dashboard stores notes and plots in pieces, which would
    get mixed up.
    """

    def __init__(
        self,
        *,
        every: int = 10,
        assumptions: Assumptions | None = None,
        space: Space | dict[str, Parameter] | None = None,
        **stated: Unpack[Stated],
    ) -> None:
        import_extra("optuna_dashboard", extra="dashboard")  # report what is missing here
        self._pace = Pace(every)
        known = Assumptions.of(assumptions, stated)
        if assumptions is not None or stated:
            known.check_complete()
        self._stated = known if assumptions is not None or stated else None
        self._space = as_space(space)
        self._said, self._lock = Said(), threading.Lock()
        self.certificate: StudyCertificate | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    @property
    def every(self) -> int:
        return self._pace.every

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Publish, every `every` completed trials."""
        # One thread at a time: the pieces of two notes must not mix.
        with self._lock:
            trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            if self._pace.is_due(study, len(trials)) and may_be_recommended(trials):
                self._publish(study)

    def _publish(self, study: Study) -> None:
        try:
            found = certificate_for(study, self._stated, self._space, None, {}, warn=False)
            _put(study, found)
        except Exception as error:  # whatever a storage raises must not end the study
            if self._said.is_new(study, type(error).__name__):
                _logger.warning(f"The certificate was not published; the study continues: {error}")
            return
        self.certificate = found
        if not found.trusted and self._said.is_new(study, "refuted"):
            warn_user(refuted_in_words(found, found.assumptions), AssumptionsRefutedWarning)

"""What the sampler keeps in a study's storage. Only this module uses names that Optuna keeps private."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState, create_trial

from mixbandit._checks import shown
from mixbandit.errors import DamagedState, InvalidInput
from mixbandit.tuning.selection import WITHDRAWN

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import BaseStorage

# The attribute that tells other processes a trial's parameters, before the objective has asked for all of them: the
# parameters themselves, or the digest of their text if that is too long for one attribute.
_CHOSEN = "mixbandit:parameters"
_PART = "mixbandit:part"
# The attribute that names the process that runs a trial.
_WORKER = "mixbandit:worker"
# MySQL's TEXT, the smallest column an attribute can be in, holds 65,535 bytes. Quoting can double the length of a part.
_LONGEST = 30_000


def publish(study: Study, trial: FrozenTrial, parameters: dict[str, float]) -> None:
    """Tell other processes what was chosen: numbers as Optuna stores them, even for choices.

    The last write publishes, so that readers see all parameters or none. Parts are named after the whole text: those of
    another choice, or of a process that was killed here, are never mistaken for its own.
    """
    storage, text = study._storage, json.dumps(parameters)
    if len(text) <= _LONGEST:
        storage.set_trial_system_attr(trial._trial_id, _CHOSEN, parameters)
        return
    digest = _digest(text)
    for i, start in enumerate(range(0, len(text), _LONGEST)):
        storage.set_trial_system_attr(trial._trial_id, f"{_PART}:{digest}:{i}", text[start : start + _LONGEST])
    storage.set_trial_system_attr(trial._trial_id, _CHOSEN, digest)


def published(trial: FrozenTrial, distributions: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """The parameters that were published for a trial, those with a distribution; none if nothing was published.

    DamagedState if what is there was not written by `publish`.
    """
    attributes = trial.system_attrs
    found = attributes.get(_CHOSEN)
    if found is None:
        return _external(_of_version_0_1(attributes), distributions)
    if isinstance(found, str):
        text = _joined(attributes, f"{_PART}:{found}")
        if _digest(text) != found:
            raise DamagedState(f"a part of {_CHOSEN} is missing or changed")
        found = json.loads(text)
    return _external(found, distributions)


def _joined(attributes: Mapping[str, Any], name: str) -> str:
    """The text in attributes name:0, name:1, …, as far as they go."""
    text = ""
    for i in itertools.count():
        part = attributes.get(f"{name}:{i}")
        if not isinstance(part, str):
            break
        text += part
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _of_version_0_1(attributes: Mapping[str, Any]) -> Any:
    """The text that version 0.1 wrote in numbered parts, without saying how many: none while it is incomplete."""
    try:
        return json.loads(_joined(attributes, _CHOSEN))
    except ValueError:
        return {}


def _external(found: Any, distributions: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Parameters as users see them, from numbers as Optuna stores them."""
    if not isinstance(found, Mapping):
        raise DamagedState(f"{_CHOSEN} must be a mapping, got {type(found).__name__}")
    return {name: _value(name, number, distributions[name]) for name, number in found.items() if name in distributions}


def _value(name: str, number: Any, distribution: BaseDistribution) -> Any:
    usable = isinstance(number, int | float) and not isinstance(number, bool)
    usable = usable and abs(number) <= sys.float_info.max  # neither NaN nor an integer too large for a float
    if usable and isinstance(distribution, CategoricalDistribution):
        usable = number in range(len(distribution.choices))
    if not usable:
        raise DamagedState(f"{_CHOSEN} has {shown(number)} for {shown(name)}")
    return distribution.to_external_repr(number)


def attach(study: Study, trial: FrozenTrial, attributes: Mapping[str, float | str]) -> None:
    """Set user attributes of a trial."""
    # Samplers have no other way: Optuna gives them a frozen copy of the trial.
    for name, value in attributes.items():
        study._storage.set_trial_user_attr(trial._trial_id, name, value)


def enqueue(study: Study, parameters: Mapping[str, Any], attributes: Mapping[str, Any]) -> FrozenTrial:
    """A trial that waits to be run: what `study.enqueue_trial` makes, which does not say which one that is."""
    fixed = {"fixed_params": dict(parameters)}
    waiting = create_trial(state=TrialState.WAITING, system_attrs=fixed, user_attrs=dict(attributes))
    return study._storage.get_trial(study._storage.create_new_trial(study._study_id, template_trial=waiting))


def begin_new(study: Study, parameters: Mapping[str, Any], attributes: Mapping[str, Any]) -> optuna.Trial:
    """A trial of these parameters that runs from the beginning: it never waits, so that no other process can take it.

    Two processes can take one waiting trial from SQLite, which locks no rows: both run it, and one value is lost.
    """
    fixed = {"fixed_params": dict(parameters)}
    running = create_trial(state=TrialState.RUNNING, system_attrs=fixed, user_attrs=dict(attributes))
    return optuna.Trial(study, study._storage.create_new_trial(study._study_id, template_trial=running))


def begin(study: Study, number: int) -> optuna.Trial | None:
    """Run a certain trial of those that wait, which `study.ask` cannot promise; None if somebody else runs it."""
    # Optuna's cache of a database stores parameters only of trials that it has read: this one may be another process's.
    study._storage.get_all_trials(study._study_id, deepcopy=False)
    trial_id = study._storage.get_trial_id_from_study_id_trial_number(study._study_id, number)
    try:
        ours = take(study._storage, trial_id)
    except UpdateFinishedTrialError:
        return None
    return optuna.Trial(study, trial_id) if ours else None


def take(storage: BaseStorage, trial_id: int) -> bool:
    """Set a waiting trial to running; False if somebody else did.

    On SQLite Optuna looks and then writes, and two processes can do so at once. Here the write itself looks.
    """
    if not _is_sqlite(storage):
        return storage.set_trial_state_values(trial_id, TrialState.RUNNING)
    from optuna.storages._rdb.models import TrialModel

    waits = (TrialModel.trial_id == trial_id) & (TrialModel.state == TrialState.WAITING)
    values = {"state": TrialState.RUNNING, "datetime_start": datetime.now()}
    with _engine(storage).begin() as connection:
        found = connection.execute(TrialModel.__table__.update().where(waits).values(values))
    return bool(found.rowcount == 1)


def queue_safely(study: Study) -> None:
    """From now on, `study.ask` takes a queued trial only if nobody else has, on SQLite too."""
    storage: Any = study._storage
    if _is_sqlite(storage) and "set_trial_state_values" not in vars(storage):
        storage.set_trial_state_values = functools.partial(_set_state, storage)


def _set_state(storage: BaseStorage, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
    if state == TrialState.RUNNING and values is None:
        return take(storage, trial_id)
    return type(storage).set_trial_state_values(storage, trial_id, state, values)


def _engine(storage: BaseStorage) -> Any:
    """The connections to a database; None for other storages."""
    return getattr(getattr(storage, "_backend", storage), "engine", None)


def _is_sqlite(storage: BaseStorage) -> bool:
    engine = _engine(storage)
    return engine is not None and engine.dialect.name == "sqlite"


def withdraw(study: Study, trial: FrozenTrial) -> bool:
    """Fail a trial that waits to be run; False if somebody runs it already."""
    # Only one process can set a waiting trial to running.
    if not take(study._storage, trial._trial_id):
        return False
    study._storage.set_trial_system_attr(trial._trial_id, WITHDRAWN, True)
    study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
    return True


def is_withdrawn(trial: FrozenTrial) -> bool:
    """Whether a trial was failed before anybody ran it."""
    return WITHDRAWN in trial.system_attrs


def sign(study: Study, trial: optuna.Trial, worker: Mapping[str, Any]) -> None:
    """Say which process runs a trial, so that it can be failed if that process dies."""
    study._storage.set_trial_system_attr(trial._trial_id, _WORKER, dict(worker))


def signature(trial: FrozenTrial) -> Mapping[str, Any]:
    """Which process runs a trial, as `sign` stored it; empty if nobody said so."""
    found = trial.system_attrs.get(_WORKER)
    return found if isinstance(found, Mapping) else {}


def identity(study: Study) -> tuple[Any, int]:
    """What identifies a study: its storage and its id there."""
    if not isinstance(study, optuna.Study):
        raise InvalidInput(f"study must be an Optuna study, got {shown(study)}")
    return study._storage, study._study_id

"""What was guaranteed at earlier moments is what certificates of the first trials say."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import mixbandit as mb
from mixbandit.tuning.certification import certified
from mixbandit.tuning.moments import floors_over_time

STATED = {"reward_range": (0.0, 1.0), "samples": 100, "rows": "fresh"}


def played(n, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 2))
    values = rng.binomial(100, 0.9 - 0.3 * ((points - 0.4) ** 2).sum(axis=1)) / 100
    return [({"x": float(x), "y": float(y)}, float(v)) for (x, y), v in zip(points, values, strict=True)]


SPACE = mb.Space({"x": mb.Float(0.0, 1.0), "y": mb.Float(0.0, 1.0)})


@pytest.mark.parametrize(
    "stated", [STATED, {"sigma": 0.05, "reward_range": (0.0, 1.0)}, {"noise": "gaussian", "norm_bound": 2.0}]
)
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_floors_are_those_of_certificates_of_the_first_trials(stated, direction):
    run = played(30)
    known = {**stated, "direction": direction, "space": SPACE}
    floors = floors_over_time(mb.certify(run, **known), looks=4)
    assert [floor.trials for floor in floors] == [2, 8, 17, 30]
    for floor in floors:
        found = mb.certify(run[: floor.trials], **known)
        end = found.interval[0 if direction == "maximize" else 1]
        assert floor.interval == pytest.approx(found.interval, abs=1e-6)
        assert floor.guaranteed == pytest.approx(end, abs=1e-6)
        assert (floor.parameters, floor.tried) == (found.parameters, found.tried)
        assert floor.trusted


def test_confirmations_and_noise_levels_are_those_of_the_first_trials():
    tuner = mb.Tuner(SPACE, sigma=0.1, reward_range=(0, 1), rng=0)
    rng = np.random.default_rng(0)
    for i in range(12):
        trial = tuner.ask()
        tuner.tell(trial, 0.6 + 0.05 * rng.standard_normal(), sigma=0.05 if i % 2 else 0.2)
    for i, trial in enumerate(tuner.confirm(8, finalists=1)):
        tuner.tell(trial, 0.6 + 0.05 * rng.standard_normal(), sigma=0.02 * (i + 1))
    frame = tuner.to_frame()
    whole = mb.certify(frame, sigma=0.1, reward_range=(0, 1), space=SPACE)
    floors = [floor for floor in floors_over_time(whole, looks=60) if floor.trials in (8, 14, 15, 17)]
    assert len(floors) == 4
    for floor in floors:
        found = mb.certify(frame[: floor.trials], sigma=0.1, reward_range=(0, 1), space=SPACE)
        assert floor.interval == pytest.approx(found.interval, abs=1e-6)


def test_the_model_is_the_certificates_for_all_prefixes(monkeypatch):
    """Two kinds of model would need two parts of δ: the first trials of a long run are learnt as the long run is."""
    monkeypatch.setattr("mixbandit.tuning.modelling._MOST_BOUNDED", 20)
    kinds = []
    monkeypatch.setattr(
        "mixbandit.tuning.moments._floor", lambda certificate, before, *_: kinds.append(before.moment.rule.kind)
    )
    certificate = mb.certify(played(25), **STATED, space=SPACE)
    floors_over_time(certificate, looks=5)
    assert set(kinds) == {certificate.judgement.moment.rule.kind}


def test_from_a_refutation_on_nothing_is_trusted():
    """Also where later values hide it."""
    rng = np.random.default_rng(0)
    run = [({"x": float(x)}, 1.2 if i == 3 else 0.0) for i, x in enumerate(rng.random(60))]
    space, known = mb.Space({"x": mb.Float(0.0, 1.0)}), mb.Assumptions(sigma=0.1, norm_bound=0.3)
    found = certified(run, known, space=space)
    assert 3 < found.refuted_after < 10
    assert not found.judgement.moment.is_refuted
    floors = floors_over_time(found, looks=400)
    assert [floor.trials for floor in floors] == list(range(1, 61))
    assert [floor.trials for floor in floors if floor.trusted] == list(range(1, found.refuted_after))
    # What the certificate says of it stands, whatever a moment finds by itself; without a word on when, from the start.
    good = mb.certify(played(12), **STATED, space=SPACE)
    for after, trusted in ((None, []), (5, [1, 2, 3, 4])):
        told = dataclasses.replace(good, trusted=False, refuted_after=after)
        assert [floor.trials for floor in floors_over_time(told, looks=50) if floor.trusted] == trusted


def test_constraints_and_the_order_of_play():
    run = played(16)
    table = pd.DataFrame(
        [{"number": i, "value": value, **configuration} for i, (configuration, value) in enumerate(run)]
    )
    table["system_attrs_constraints"] = [[0.0 if i >= 5 else 1.0] for i in range(16)]
    floors = floors_over_time(mb.certify(table, **STATED, space=SPACE), looks=8)
    assert [floor.trials for floor in floors] == [7, 9, 13, 16]
    allowed = [configuration for configuration, _ in run[5:]]
    assert all(floor.parameters in allowed for floor in floors[:-1])
    unordered = mb.certify(run, **STATED, space=SPACE, ordered=False)
    assert [floor.trials for floor in floors_over_time(unordered)] == [16]


def test_what_cannot_be_looked_at_is_refused():
    certificate = mb.certify(played(5), **STATED, space=SPACE)
    with pytest.raises(mb.InvalidInput, match="looks"):
        floors_over_time(certificate, looks=0)
    by_hand = mb.tuning.StudyCertificate({"x": 0.5}, 0.1, 0.2, 0.3, 0.2, "range")
    with pytest.raises(mb.InvalidInput, match="made by hand"):
        floors_over_time(by_hand)
    done = []
    floors_over_time(certificate, progress=done.append)
    assert done == [1, 2, 3, 4]

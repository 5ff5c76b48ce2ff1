"""A user's predictor, and a rule that acts on it: true probabilities, and a memory that is stored."""

import numpy as np
import pytest

import mixbandit as mb
from mixbandit._files import read_state, write_state
from mixbandit.predictors import Predictor
from mixbandit.search import ArmsOffer
from tests.extending.outside import LeastSquares
from tests.extending.playing import MADE, begun, play

ROWS = np.array([[1.0, 0.5], [-0.3, 2.0], [0.2, 0.1]])


def taught():
    predictor, offer = LeastSquares(2), ArmsOffer(ROWS)
    for arm, reward in ((0, 1.0), (2, -0.5), (0, 0.8), (1, 0.1)):
        predictor = predictor.after(offer, arm, reward)
    return predictor


def test_predictions_are_those_of_ridge_regression():
    seen, rewards = ROWS[[0, 2, 0, 1]], np.array([1.0, -0.5, 0.8, 0.1])
    inverse = np.linalg.inv(np.eye(2) + seen.T @ seen)
    mean, spread = taught().predict(ArmsOffer(ROWS))
    np.testing.assert_allclose(mean, ROWS @ inverse @ seen.T @ rewards, rtol=1e-12)
    np.testing.assert_allclose(spread**2, [row @ inverse @ row for row in ROWS], rtol=1e-12)


def test_a_predictor_is_a_value():
    predictor, offer = LeastSquares(2), ArmsOffer(ROWS)
    after = predictor.after(offer, 1, 3.0)
    assert not predictor.sums.any()
    assert after.sums.any()
    assert after.dim == 2


def test_a_round_trip_holds_everything(tmp_path):
    predictor = taught()
    write_state(tmp_path / "file", predictor.state_dict())
    loaded = Predictor.family.load(read_state(tmp_path / "file"))
    assert type(loaded) is LeastSquares
    for found, known in zip(loaded.predict(ArmsOffer(ROWS)), predictor.predict(ArmsOffer(ROWS)), strict=True):
        np.testing.assert_array_equal(found, known)
    assert LeastSquares.from_state_dict(predictor.state_dict()).dim == 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"dim": 0}, r"^predictor\.dim must be an integer between 1"),
        ({"gram": np.zeros(3)}, r"^predictor\.gram must have shape"),
        ({"sums": np.array([np.nan, 0.0])}, r"^predictor\.sums\[0\] must be finite"),
        ({"sums": None}, r"^predictor\.sums must"),
        ({"type": "Else"}, "predictor is a predictor of unknown type 'Else'; if it is your own, import the module"),
    ],
)
def test_damage_is_named_with_its_place(change, says):
    with pytest.raises(mb.DamagedState, match=says):
        Predictor.family.load(taught().state_dict() | change)


def test_memory_that_does_not_fit_is_damage():
    class Strict(LeastSquares):
        kind = "StrictLeastSquares"

        def recalled(self, memory):
            if len(memory["sums"]) != self.dim:
                raise mb.InvalidInput(f"sums must have {self.dim} entries")
            return super().recalled(memory)

    try:
        assert Strict(2).state_dict()["type"] == "StrictLeastSquares"
        with pytest.raises(mb.DamagedState, match=r"^predictor: sums must have 3 entries"):
            Predictor.family.load(Strict(2).state_dict() | {"dim": 3})
    finally:
        Predictor.family.kinds.pop("StrictLeastSquares")


def test_a_predictor_without_a_kind_is_code():
    class Mine(LeastSquares):
        pass

    with pytest.raises(mb.NotStorable, match=r"Mine .*cannot be stored.*state its `kind`"):
        Mine(2).state_dict()


def test_choices_have_the_probabilities_that_they_are_drawn_with():
    """Of many policies in the same state but for their seeds, each arm is played as often as its probability says."""
    policy = MADE["predictor"]()
    play(policy, 12)
    counts, draws = np.zeros(7), 4000
    for seed in range(draws):
        policy.state = policy.state._replace(seed=seed)
        choice = policy.at(policy.state).ask()
        counts[choice.index] += 1
    chances = choice.probabilities
    predicted = policy.state.predictor.predict(ArmsOffer(policy.actions.rows)).mean
    expected = np.exp(predicted / 0.05)
    np.testing.assert_allclose(chances, expected / expected.sum(), rtol=1e-9)
    assert np.all(np.abs(counts - draws * chances) < 5.0 * np.sqrt(draws * chances * (1.0 - chances)))
    assert choice.probability == chances[choice.index]


def test_pending_choices_count_with_their_predicted_rewards():
    """The predictor that acts has been told them; the policy's own has not."""
    policy = begun("predictor")
    told = policy.state.predictor
    policy.ask()
    assert policy.state.predictor is told
    anticipated = policy.state.anticipated.known.predictor
    assert anticipated.gram[0, 0] > told.gram[0, 0]
    np.testing.assert_allclose(
        anticipated.predict(ArmsOffer(np.array([[1.0]]))).mean, told.predict(ArmsOffer(np.array([[1.0]]))).mean
    )

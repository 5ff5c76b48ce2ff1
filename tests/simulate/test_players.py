"""Any object with `ask` and `tell` plays in `mb.run`, beside our policies."""

from collections import namedtuple

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.simulate import Environment, Offer, Records
from tests.extending.outside import EpsilonGreedy, Shop

Play = namedtuple("Play", "action")
SHOP = Shop(np.linspace(0.25, 2.0, 8), seed=1)


class Scripted:
    """Plays actions in turn, and remembers how it was asked and what it was told."""

    def __init__(self, *actions):
        self.actions_in_turn, self.asked, self.told = actions, [], []

    def ask(self, *arms, **named):
        self.asked.append((arms, named))
        return Play(self.actions_in_turn[(len(self.asked) - 1) % len(self.actions_in_turn)])

    def tell(self, choice, reward):
        self.told.append((choice, reward))


def test_it_is_asked_and_told_as_documented():
    player = Scripted(np.array([0.5]), np.array([1.0]))
    records = mb.run(player, SHOP, 6)
    assert player.asked == [((SHOP.actions,), {})] * 6
    assert [choice.action[0] for choice, _ in player.told] == [0.5, 1.0] * 3
    assert [reward for _, reward in player.told] == records.column("reward").tolist()
    assert all(type(choice) is Play for choice, _ in player.told)
    np.testing.assert_allclose(records.column("expected"), [0.5 * np.exp(-0.5), np.exp(-1.0)] * 3)
    assert records.column("id").tolist() == list(range(6))


def test_records_have_no_bounds(tmp_path):
    records = mb.run(EpsilonGreedy(8, 0.1, rng=0), SHOP, 20)
    assert np.isnan(records.column("lower")).all()
    assert np.isnan(records.column("upper")).all()
    assert not records.column("trusted").any()
    assert records.cumulative_regret[-1] > 0.0
    records.plot()
    records.to_csv(tmp_path / "run.csv")
    first = (tmp_path / "run.csv").read_text().splitlines()[1].split(",")
    assert first.count("") == 3  # label and bounds
    assert Records.from_state_dict(records.state_dict())[3].lower is None


def test_it_plays_beside_our_policies():
    phi = mb.RandomFourier(1, 6, lengthscale=0.7, rng=0)
    ours = mb.CMMUCB(phi, actions=SHOP.actions, sigma=1.0, norm_bound=2.0, rng=0)
    found = {
        name: mb.run(each, SHOP, 60) for name, each in {"theirs": EpsilonGreedy(8, 0.2, rng=0), "ours": ours}.items()
    }
    assert [len(each) for each in found.values()] == [60, 60]
    assert all(each.regret_known for each in found.values())
    assert (found["ours"].column("lower") <= found["ours"].column("expected")).all()
    # Noise belongs to rounds: where both played the same price, they earned the same.
    same = found["ours"].column("action") == found["theirs"].column("action")
    assert same.any()
    assert (found["ours"].column("reward") == found["theirs"].column("reward"))[same[:, 0]].all()


class Changing(Environment):
    """Other arms and another context every round."""

    def offer(self, t):
        return Offer(mb.Arms(np.full((2, 1), float(t)), labels=["a", "b"]), np.array([0.5, -t]))

    def reward(self, t, choice):
        assert choice.row.tolist() == [0.5, -t, t]
        assert (choice.label, choice.index) == ("b", 1)
        return float(t)


def test_arms_and_contexts_of_the_round_are_passed():
    class Full(Scripted):
        def ask(self, arms, context):
            super().ask(arms, context=context)
            return namedtuple("Full", "action index label")(arms.actions[1], 1, "b")

    player = Full(None)
    records = mb.run(player, Changing(), 3)
    assert [named["context"].tolist() for _, named in player.asked] == [[0.5, 0.0], [0.5, -1.0], [0.5, -2.0]]
    assert [arms[0].actions[0, 0] for arms, _ in player.asked] == [0.0, 1.0, 2.0]
    assert records.column("label").tolist() == ["b"] * 3
    assert records.column("context").shape == (3, 2)


def test_without_arms_and_context_ask_has_no_arguments():
    player = Scripted(np.array([0.3, 0.4]))
    mb.run(player, mb.FunctionEnvironment(lambda a: float(a.sum())), 2)
    assert player.asked == [((), {})] * 2
    assert [reward for _, reward in player.told] == [0.7, 0.7]


def test_batches_late_and_lost_rewards():
    player = Scripted(*np.linspace(0.25, 2.0, 8)[:, None])
    records = mb.run(player, SHOP, 10, batch=4, delay=lambda t, reward: None if t == 1 else 3)
    told = [float(choice.action[0]) for choice, _ in player.told]
    due = [row for row in records if row.told is not None and row.told <= 9]
    assert told == [float(row.action[0]) for row in due]
    assert records[1].told is None
    more = mb.run(player, SHOP, 14, records=records)
    assert more is records
    assert len({row.id for row in records}) == 14


def test_what_needs_a_policy_says_so(tmp_path):
    player = Scripted(np.array([0.5]))
    with pytest.raises(mb.InvalidInput, match="a checkpoint needs a mixbandit policy, whose state can be saved, got <"):
        mb.run(player, SHOP, 5, checkpoint=tmp_path / "run")
    with pytest.raises(mb.InvalidInput, match="stop_when needs a mixbandit policy, which can prove a gap, got <"):
        mb.run(player, SHOP, 5, stop_when=mb.stop_when(gap=0.1))
    assert not player.asked
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("player", "says"),
    [
        (3, "policy must be a mixbandit policy, or an object with ask and tell, got 3"),
        (type("Mute", (), {"ask": lambda self, arms: None})(), "an object with ask and tell"),
        (type("Bare", (), {"ask": lambda self, arms: 0.5, "tell": print})(), "ask must return .* `action`, got 0.5"),
        (Scripted(np.array([0.5, 0.5])), r"the action that ask returned must have shape \(1,\), got \(2,\)"),
        (Scripted("high"), "the action that ask returned"),
    ],
)
def test_other_objects_are_refused(player, says):
    with pytest.raises(mb.InvalidInput, match=says):
        mb.run(player, SHOP, 5)


def test_an_error_while_playing_leaves_whole_rounds():
    class Closing(Shop):
        def reward(self, t, choice):
            if t == 3:
                raise RuntimeError("closed")
            return super().reward(t, choice)

    player = Scripted(np.array([0.5]))
    with pytest.raises(RuntimeError, match="closed") as error:
        mb.run(player, Closing([0.5, 1.0]), 5)
    assert len(error.value.records) == len(player.told) == 3

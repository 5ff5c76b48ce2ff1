"""What the checks at the boundary accept, what they refuse, and how they say so."""

import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import mixbandit as mb
from mixbandit import _checks as checks
from mixbandit.errors import InvalidInput
from tests.helpers import tensors
from tests.helpers.worlds import ARMS, PHI, SETTINGS

MASKED = np.ma.array([0.3, 0.4], mask=[False, True])
# Users see warnings, not errors, where numpy drops an imaginary part or a mask.
pytestmark = pytest.mark.filterwarnings("ignore")


class Unprintable:
    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    "value",
    [0.5, Decimal("0.5"), Fraction(1, 2), np.float16(0.5), np.longdouble("0.5"), np.array(0.5), np.ma.array(0.5)],
)
def test_numbers_of_any_library_are_numbers(value):
    number = checks.as_number(value, "x")
    assert (type(number), number) == (float, 0.5)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (True, "a bool"),
        (np.array(True), "bool"),
        ("0.5", "a str"),
        (b"0.5", "bytes"),
        (bytearray(b"0.5"), "bytearray"),
        (None, "NoneType"),
        (1 + 2j, "complex"),
        (np.complex128(0.5 + 2j), "complex128"),
        (np.complex64(0.5), "complex64"),
        (np.array(0.5 + 2j), "complex"),
        (np.ma.masked, "masked"),
        (np.ma.array(0.5, mask=True), "masked"),
        (np.timedelta64(3, "s"), "timedelta64"),
        (np.timedelta64(3), "timedelta64"),
        (np.datetime64("2024-01-01"), "datetime64"),
        (np.array([0.5]), r"shape \(1,\)"),
        ({0.5}, "a set"),
        pytest.param(10**400, "too large", id="10**400"),
        pytest.param(10**5000, "an integer of about 5000 digits", id="10**5000"),
        (Unprintable(), "Unprintable without a repr"),
    ],
)
def test_what_is_not_one_number_is_refused_by_name(value, says):
    with pytest.raises(InvalidInput, match=rf"^x must be a number, got .*{says}"):
        checks.as_number(value, "x")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (MASKED, "masked"),
        ([MASKED, MASKED], "masked"),
        ([[0.1, np.ma.array(0.5, mask=True)]], "masked"),
        (([0.3, np.ma.masked],), "masked"),
        (np.array([MASKED, None], dtype=object)[:1], "masked"),
        (np.array([0.3, np.complex64(0.4)], dtype=object), "complex64"),
        ([0.3, 0.4j], "complex"),
        ([0.3, 10**400], "too large"),
        ({0.3, 0.4}, "a set"),
        ({"a": 0.3}, "a dict"),
        ((x for x in (0.3, 0.4)), "a generator"),
        (bytearray(b"ab"), "a bytearray"),
        (["0.3"], "dtype <U3"),
        ([[0.1, 0.2], [0.3]], "inhomogeneous"),
    ],
)
def test_what_is_not_an_array_of_numbers_is_refused_by_name(value, says):
    with pytest.raises(InvalidInput, match=rf"^x must be numbers, got .*{says}"):
        checks.as_float_array(value, "x")


def test_arrays_and_tables_of_other_libraries_are_arrays():
    expected = [[0.1, 0.2], [0.3, 0.4]]
    torch, polars = tensors.torch(), pytest.importorskip("polars")
    frame = polars.DataFrame({"a": [0.1, 0.3], "b": [0.2, 0.4]})
    exact = [[Decimal("0.1"), Decimal("0.2")], [Decimal("0.3"), Decimal("0.4")]]
    for value in (torch.tensor(expected, dtype=torch.float64), frame, exact, np.ma.array(expected)):
        found = checks.as_float_array(value, "x")
        assert (found.dtype, found.tolist()) == (np.float64, expected)
    assert checks.as_number(torch.tensor(0.5), "x") == 0.5
    for value in (torch.tensor(0.5, requires_grad=True), torch.tensor([0.5], requires_grad=True)):
        with pytest.raises(InvalidInput, match="detach it first"):
            checks.as_float_array(value, "x")
    with pytest.raises(InvalidInput, match="detach it first"):
        checks.as_number(torch.tensor(0.5, requires_grad=True), "x")


def test_sparse_matrices_are_refused_with_their_shape():
    sparse = pytest.importorskip("scipy.sparse").csr_matrix([[0.3, 0.4]])
    with pytest.raises(InvalidInput, match=r"sparse, of shape \(1, 2\): make it dense"):
        checks.as_float_array(sparse, "x")


def test_plain_float_arrays_are_not_copied():
    array = np.array([[0.1, 0.2]])
    assert checks.as_float_array(array, "x") is array


@pytest.mark.parametrize("value", [0, 1, "no", "False", None, np.array(True), np.array([True, False]), []])
def test_only_booleans_are_truth_values(value):
    with pytest.raises(InvalidInput, match=r"^x must be True or False, got "):
        checks.flag(value, "x")


def test_booleans_of_numpy_are_booleans():
    assert [checks.flag(value, "x") for value in (True, False, np.True_, np.False_)] == [True, False, True, False]


@pytest.mark.parametrize("seed", [0, np.int64(3), 10**400, [1, 2], np.random.SeedSequence(1), np.random.PCG64(1)])
def test_seeds(seed):
    numbers = [checks.as_generator(seed).integers(2**60) for _ in range(2)]
    assert numbers[0] == numbers[1] or isinstance(seed, np.random.PCG64)


@pytest.mark.parametrize(
    "seed", [-1, True, 1.0, "1", ["1"], [], [1.0], np.random.RandomState(0), np.timedelta64(1, "s")]
)
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(InvalidInput, match=r"^rng must be a seed ≥ 0, a numpy Generator or None, got "):
        checks.as_generator(seed)


def test_texts_that_compare_as_they_like_are_compared_as_text():
    class Agreeable(str):
        __slots__ = ()

        def __eq__(self, other):
            return True

        __hash__ = str.__hash__

    with pytest.raises(InvalidInput, match="one of a, b; got 'x'"):
        checks.one_of(Agreeable("x"), ("a", "b"), "x")
    assert type(checks.one_of(np.str_("a"), ("a", "b"), "x")) is str
    with pytest.raises(InvalidInput, match="one of a, b"):
        checks.one_of(np.array(["a", "b"]), ("a", "b"), "x")


@pytest.mark.parametrize(
    "value", [(0, 1), [0.0, 1.0], np.array([0, 1]), range(2), (Decimal(0), Fraction(1)), np.ma.array([0.0, 1.0])]
)
def test_pairs(value):
    assert checks.as_range(value, "x") == (0.0, 1.0)


@pytest.mark.parametrize("value", [{0, 1}, {0: "a", 1: "b"}, "01", (1, 0), (0, 1e60), MASKED, (0, 1, 2), "x"])
def test_what_is_no_pair_is_refused(value):
    with pytest.raises(InvalidInput, match=r"^x must be "):
        checks.as_range(value, "x")


def test_the_columns_of_a_table_are_no_pair():
    frame = pytest.importorskip("pandas").DataFrame([[5.0, 6.0]])  # its columns are 0 and 1
    with pytest.raises(InvalidInput, match=r"shape \(1, 2\)"):
        checks.as_range(frame, "reward_range")


def test_durations_are_not_counts():
    for check in (checks.positive_int, checks.nonnegative_int):
        with pytest.raises(InvalidInput, match="must be an integer"):
            check(np.timedelta64(3, "s"), "n")
    with pytest.raises(InvalidInput, match="must be at most"):
        checks.positive_int(10**400, "n")


@pytest.mark.parametrize("value", [None, b"x", "", "a\0b", 3, "\ud800"])
def test_what_is_no_path_is_refused(value):
    with pytest.raises(InvalidInput, match=r"^path must be the path of a file, got "):
        checks.as_path(value)


def test_messages_are_short_and_never_fail():
    assert checks.shown("x" * 1000) == "'" + "x" * 76 + "..."
    assert checks.shown(10**5000) == "an integer of about 5000 digits"
    assert checks.shown(Unprintable()) == "<Unprintable without a repr>"
    assert "\n" not in checks.shown(np.eye(3))


# --- where it matters: nothing is learnt or told from what is masked, lost or misread


@pytest.fixture
def bandit():
    policy = mb.AMMUCB(PHI, actions=ARMS, rng=0, **{**SETTINGS, "sigma": 1.0})
    policy.ask(n=3)
    return policy


@pytest.mark.parametrize(
    "reward", [np.ma.masked, np.ma.array(0.5, mask=True), np.complex128(0.5 + 1j), np.complex64(1)]
)
def test_no_reward_is_told_from_what_is_masked_or_complex(bandit, reward):
    before = bandit.state
    with pytest.raises(InvalidInput, match="reward must be"):
        bandit.tell(bandit.pending[0], reward)
    with pytest.raises(InvalidInput, match="reward must be"):
        bandit.tell(bandit.pending[:2], [0.5, reward])
    assert bandit.state is before


def test_masked_rewards_levels_and_ids_of_several_choices_are_refused(bandit):
    before, ids = bandit.state, [choice.id for choice in bandit.pending[:2]]
    for arguments in ((ids, MASKED), (ids, [0.3, 0.4], MASKED), (np.ma.array(ids, mask=[0, 1]), [0.3, 0.4])):
        with pytest.raises(InvalidInput):
            bandit.tell(*arguments)
    assert bandit.state is before
    assert bandit.tell(np.array(ids), np.ma.array([0.3, 0.4])).sequence.t == 2


def test_the_columns_of_a_table_are_no_choices(bandit):
    frame = pytest.importorskip("pandas").DataFrame([[5, 6]])  # its columns are 0 and 1
    with pytest.raises(InvalidInput, match="tell needs a Choice or its id"):
        bandit.tell(frame, [0.3, 0.4])
    assert bandit.sequence.t == 0


@pytest.mark.parametrize("context", [MASKED, MASKED.reshape(1, 2), [MASKED], np.array([0.3, 0.4 + 1j])])
def test_masked_and_complex_contexts_are_refused(context):
    policy = mb.CMMUCB(mb.Interaction(2, 2), actions=ARMS, rng=0, **SETTINGS)
    with pytest.raises(InvalidInput, match="context must be numbers"):
        policy.ask(context=context)
    assert policy.rounds == 0


@pytest.mark.parametrize("played", [np.array([True, False]), np.array([]), "no", 0, None])
def test_cancelling_changes_nothing_unless_played_is_true_or_false(bandit, played):
    before = bandit.state
    with pytest.raises(InvalidInput, match="played must be True or False"):
        bandit.cancel(bandit.pending[0], played=played)
    assert bandit.state is before
    assert before.moment is bandit.moment
    assert bandit.pending[0].given is None  # not even its bounds have been computed


@pytest.mark.parametrize("option", ["strict", "keep_history", "track_regret", "quick"])
def test_options_of_policies_are_true_or_false(option):
    with pytest.raises(InvalidInput, match=f"{option} must be True or False, got 'no'"):
        mb.CMMUCB(PHI, actions=ARMS, **SETTINGS, **{option: "no"})


def test_options_elsewhere_are_true_or_false(bandit):
    for call in (
        lambda: bandit.ask(n=2, distinct="no"),
        lambda: mb.Float(0.1, 1.0, log="no"),
        lambda: mb.Int(1, 2, log=1),
        lambda: mb.Tuner({"x": mb.Float(0, 1)}, reward_range=(0, 1), exact="no"),
    ):
        with pytest.raises(InvalidInput, match="must be True or False, got "):
            call()


def test_seeds_are_checked_wherever_there_is_one():
    space = mb.Space({"x": mb.Float(0, 1)})
    for call in (
        lambda: space.sample(2, rng="x"),
        lambda: space.spread(2, rng="x"),
        lambda: mb.LinearEnvironment(2, [0.1, 0.2], np.eye(2), sigma=0.1, seed=None),
        lambda: mb.ChangingArms(2, [0.1, 0.2], sigma=0.1, seed="x"),
        lambda: mb.RandomFourier(2, 3, rng="x"),
        lambda: mb.Tuner(space, reward_range=(0, 1), rng=1.5),
    ):
        with pytest.raises(InvalidInput, match=r"(rng|seed) must be"):
            call()


def test_labels_and_choices_are_lists_that_end():
    for given in (itertools.count(), {"a", "b"}, {"a": 1, "b": 2}):
        with pytest.raises(InvalidInput, match="label"):
            mb.Arms([1.0, 2.0], labels=given)
        with pytest.raises(InvalidInput, match="choices"):
            mb.Categorical(given)
    with pytest.raises(InvalidInput, match="labels must be a list of hashable values"):
        mb.Arms([1.0, 2.0], labels=[["a"], ["b"]])
    with pytest.raises(InvalidInput, match="comparable values"):
        mb.Categorical([np.array([1, 2]), np.array([3, 4])])
    assert mb.Categorical(np.array([1, 2])).choices == (1, 2)


def test_values_of_parameters_keep_their_imaginary_part_and_mask():
    number, choice = mb.Float(0.0, 1.0), mb.Categorical(["a", "b"])
    for value in (np.complex128(0.5 + 1j), np.ma.array(0.5, mask=True), MASKED):
        with pytest.raises(InvalidInput, match="x must be"):
            number.encode(value, "x")
        with pytest.raises(InvalidInput, match="x must be one of"):
            choice.encode(value, "x")
    assert number.encode(Decimal("0.5"), "x") == [0.5]


def test_names_of_parameters_are_text():
    space = mb.Space({"x": mb.Float(0, 1)})
    for name in (["x"], None, 10**5000):
        with pytest.raises(InvalidInput, match="must be text"):
            space.columns(name)
    with pytest.raises(InvalidInput, match="must be text"):
        mb.Space({"x": mb.Float(0, 1), "k": mb.Categorical(["a", "b"])}, {"x": (["k"], ["a"])})


def test_sequences_of_different_features_are_not_merged():
    one, other = (mb.MartingaleMixture(d, sigma=0.1, norm_bound=2.0) for d in (2, 3))
    with pytest.raises(mb.NotMergeable, match="differ in features"):
        one.merge(other)


def test_rewards_of_environments_keep_their_imaginary_part():
    environment = mb.FunctionEnvironment(lambda action: np.complex128(0.5 + 1j), ARMS)
    policy = mb.AMMUCB(PHI, actions=ARMS, rng=0, **SETTINGS)
    with pytest.raises(InvalidInput, match="the reward that the function returned must be a number"):
        mb.run(policy, environment, 2)
    assert policy.rounds == 0


@pytest.mark.parametrize("mean", [np.ma.array(0.0, mask=True), np.complex128(0.1 + 1j), "0.1"])
def test_forecasts_are_numbers(mean):
    class Careless:
        def predict(self, x):
            return mean, 1.0

        def update(self, x, r):
            pass

    sequence = mb.MartingaleMixture(2, sigma=0.1, norm_bound=2.0, mixture=Careless())
    with pytest.raises(InvalidInput, match="must predict a finite mean"):
        sequence.update([0.1, 0.2], [0.3])
    assert sequence.t == 0

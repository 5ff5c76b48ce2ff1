"""Numbers inside sentences claim no more than they may."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import mixbandit as mb
from mixbandit._words import at_most, confidence, with_article

PACKAGE = Path(mb.__file__).parent


@pytest.mark.parametrize(
    ("delta", "text"),
    [(0.05, "0.95"), (1e-6, "0.999999"), (1e-7, "1 − 1e-07"), (1e-200, "1 − 1e-200"), (1 / 3, "1 − 0.3334")],
)
def test_a_confidence_is_never_rounded_up(delta, text):
    assert confidence(delta) == text


@pytest.mark.parametrize(
    ("probability", "text"), [(6.4 * 0.05, "0.32"), (0.12341, "0.1235"), (1.0, "1"), (1e-200, "1e-200")]
)
def test_a_probability_of_error_is_never_rounded_down(probability, text):
    assert at_most(probability) == text


def test_no_text_claims_more_than_one_minus_delta():
    for delta in (0.5 ** np.random.default_rng(0).uniform(1, 60, size=300)).tolist():
        told = confidence(delta)
        wrong = Fraction(told.removeprefix("1 − ")) if "−" in told else 1 - Fraction(told)
        assert Fraction(repr(delta)) <= wrong <= Fraction(repr(delta)) * Fraction(1001, 1000) + Fraction(1, 10**6)


def test_a_tiny_delta_is_not_certainty():
    finalists = [({"a": 1}, 0.9), ({"a": 2}, 0.8)]
    told = mb.certify_finalists(finalists, samples=10_000, reward_range=(0, 1), delta=1e-200).details()
    assert "with probability at least 1 − 1e-200" in told
    assert "at least 1," not in told
    bandit = mb.CMMUCB(2, sigma=0.1, norm_bound=1.0, delta=1e-200)
    assert "1 − 1e-200" in bandit.guarantee


def test_every_sentence_has_its_confidence_from_one_place():
    """`{1 - delta:.6g}` prints 1 for a small δ."""
    for path in PACKAGE.rglob("*.py"):
        if path.name != "_words.py":
            text = path.read_text(encoding="utf-8")
            assert "delta:.6g}" not in text.replace("{1.0 - number:.6g}", ""), path
            assert "delta:g}, at all times" not in text, path


def test_one_other_configuration_is_not_called_the_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    search = mb.MixBanditSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, n_trials=10, random_state=0)
    told = str(search.fit(X, (X[:, 0] > 0).astype(int)).certificate_)
    assert "The other configuration does not have a 5-fold mean that is larger" in told
    assert "the 1 others" not in told


def test_articles():
    nouns = ("accuracy", "F1 score", "precision", "AUC", "Brier score")
    assert [with_article(noun).split()[0] for noun in nouns] == ["an", "an", "a", "an", "a"]

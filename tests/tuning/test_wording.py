"""A printed certificate claims no more than is proven."""

import pytest

from mixbandit.tuning import StudyCertificate


@pytest.mark.parametrize("proof", ["branch-and-bound", "range", "search"])
def test_a_certificate_says_which_of_its_lines_hold(proof):
    found = StudyCertificate({"C": 1.0}, 0.7, 0.8, 0.9, 0.2, proof, t=10, delta=0.05, assumptions="noise of sigma=1")
    text = found.details()
    assert text.startswith(str(found))
    assert ("NOT PROVEN" in str(found)) == (proof == "search")
    assert ("This holds with probability at least 0.95" in text) == (proof != "search")
    only = "Of these, only the interval holds, with probability" in text
    assert ("NOT PROVEN" in text and only) == (proof == "search")
    assert "expected rewards linear in the features" in text

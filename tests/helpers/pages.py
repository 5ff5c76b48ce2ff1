"""Pages as a browser reads them, and runs that are hard to report."""

import functools
import html.parser

import numpy as np

import mixbandit as mb

EVIL = "<script>document.title='pwned'</script>"
HOSTILE = [
    EVIL,
    '"><img src=x onerror=document.title="pwned">',
    "]]></style></title><b>&amp;&lt;",
    "$x^2 \\frac{1}{2}$",
    "line\nbreak\ttab\x00\x1b[31m",
    "日本語 🙂 👩‍👩‍👧 \ud800 \u202eback",
    "x" * 2000,
]
CHOICES = [EVIL, "'\"`${}", "$\\alpha$", "y" * 3000, (1, 2, 3), None, True]
KNOWN = mb.Assumptions(reward_range=(0, 1), samples=100, rows="fresh")
VOID = {"meta", "circle", "path", "rect"}


class Page(html.parser.HTMLParser):
    """The elements and the text of a page; unbalanced elements are an error."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.texts, self._open = [], [], [], []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] not in ("style", "title") and data.strip():
            self.texts.append((self._open[-1], data))

    @property
    def text(self):
        return " ".join(text for _, text in self.texts)

    def of(self, tag):
        return [text for name, text in self.texts if name == tag]


def accuracy(parameters, rng, samples=100):
    expected = 0.95 - 0.03 * (np.log10(parameters["C"]) - 0.5) ** 2 - 0.1 * (parameters["kernel"] == "poly")
    return rng.binomial(samples, expected) / samples


def svm_space():
    return mb.Space(
        {"C": mb.Float(1e-2, 1e2, log=True), "kernel": mb.Categorical(["rbf", "poly"]), "degree": mb.Int(2, 5)},
        {"degree": ("kernel", ["poly"])},
    )


@functools.cache
def svm_history(n=40):
    rng = np.random.default_rng(0)
    return tuple((parameters, accuracy(parameters, rng)) for parameters in svm_space().sample(n, rng=0))


@functools.cache
def svm():
    """The certificate of a short run over a space with a condition."""
    return mb.certify(list(svm_history()), KNOWN, space=svm_space())


@functools.cache
def hostile():
    """The certificate of a run whose names and choices are attacks, nonsense, or both."""
    kinds = [mb.Categorical(CHOICES), mb.Float(1e-4, 1e4, log=True), mb.Int(1, 5), mb.Float(-1, 1), mb.Int(1, 10**9)]
    space = mb.Space({name: kinds[i % len(kinds)] for i, name in enumerate(HOSTILE)})
    rng = np.random.default_rng(0)
    history = [(parameters, float(rng.uniform(0.3, 0.9))) for parameters in space.sample(25, rng=0)]
    return mb.certify(history, mb.Assumptions(reward_range=(0, 1), samples=5, rows="fresh"), space=space)


def noisy(n=80):
    """A run that cannot be means of so many results."""
    rng = np.random.default_rng(0)
    return [({"lr": i / n}, float(rng.uniform())) for i in range(n)]

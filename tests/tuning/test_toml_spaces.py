"""Spaces written as TOML."""

import pytest

import mixbandit as mb

WRITTEN = """
[C]
type = "float"
low = 0.01
high = 100
log = true

[kernel]
choices = ["rbf", "poly"]

[degree]
type = "int"
low = 2
high = 8
step = 2
when = { kernel = ["poly"] }

[shrinking]
type = "categorical"
choices = [true, false]

[share]
type = "float"
low = 0.0
high = 1
step = 0.25
when = { shrinking = true }
"""


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / "space.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return mb.Space.from_toml(path)

    return read


def test_a_file_is_the_space_that_one_would_write_in_python(read, tmp_path):
    expected = mb.Space(
        {
            "C": mb.Float(0.01, 100.0, log=True),
            "kernel": mb.Categorical(["rbf", "poly"]),
            "degree": mb.Int(2, 8, step=2),
            "shrinking": mb.Categorical([True, False]),
            "share": mb.Float(0.0, 1.0, step=0.25),
        },
        {"degree": ("kernel", ["poly"]), "share": ("shrinking", [True])},
    )
    assert read(WRITTEN) == expected
    assert mb.Space.from_toml(str(tmp_path / "space.toml")) == expected
    short = 'C = { type = "float", low = 0.01, high = 100, log = true }\nkernel = { choices = ["rbf", "poly"] }'
    assert list(read(short).items()) == list(expected.items())[:2]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no parameters"),
        ("x = 3", "x must be a table"),
        ("[x", "is not TOML"),
        (b"\xff\xfe", "must be UTF-8"),
        ("[x]\nlow = 1\nhigh = 2", "x: type must be one of 'float', 'int', 'categorical'; there is none"),
        ('[x]\ntype = "real"\nlow = 1\nhigh = 2', "got 'real'"),
        ("[x]\ntype = 3", "got 3"),
        ('[x]\ntype = "float"\nlow = 1', "x: high missing"),
        ('[x]\ntype = "float"', "x: low and high missing"),
        ('[x]\ntype = "categorical"', "x: choices missing"),
        ('[x]\ntype = "float"\nlow = 1\nhigh = 2\nlogarithmic = true', "x: 'logarithmic' unknown"),
        ('[x]\ntype = "float"\nlow = 1\nhigh = 2\nchoices = [1]', "x: 'choices' unknown"),
        ("[x]\nchoices = [1]\nlow = 2", "x: 'low' unknown; a parameter of type 'categorical' has type, choices, when"),
        ('[x]\ntype = "float"\nlow = 2\nhigh = 1', "x: Float: low must be less than high"),
        ('[x]\ntype = "float"\nlow = "a"\nhigh = 1', "x: Float: low must be a number"),
        ('[x]\ntype = "float"\nlow = 0\nhigh = 1\nlog = true', "x: Float: a logarithmic scale needs low > 0"),
        ('[x]\ntype = "float"\nlow = 1\nhigh = 2\nlog = "yes"', "x: Float: log must be True or False"),
        ('[x]\ntype = "float"\nlow = 1\nhigh = inf', "x: Float: high must be a finite number"),
        ('[x]\ntype = "int"\nlow = 1.5\nhigh = 2', "x: Int: low must be an integer"),
        ('[x]\nchoices = "abc"', "x: choices must be a list"),
        ("[x]\nchoices = []", "x: Categorical: choices must not be empty"),
        ("[x]\nchoices = [1, 1]", "x: Categorical: choices must differ"),
        ("[x]\nchoices = [[1], [2]]", "x: choices must be text, numbers, true or false"),
        ("[x]\nchoices = [1979-05-27]", "x: choices must be text, numbers, true or false"),
        ("[x]\nchoices = [1, 2]\nwhen = 3", "x: when must name one parameter"),
        ("[x]\nchoices = [1, 2]\nwhen = {}", "x: when must name one parameter"),
        ("[x]\nchoices = [1, 2]\nwhen = { y = [1] }", "'y'"),
        ("[y]\nchoices = [1, 2]\n[x]\nchoices = [1, 2]\nwhen = { y = [3] }", "y must be one of [1, 2], got 3"),
    ],
)
def test_what_is_wrong_is_named_with_the_file_and_the_parameter(read, text, says):
    with pytest.raises(mb.InvalidInput) as raised:
        read(text)
    assert "space.toml" in str(raised.value)
    assert says in str(raised.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(mb.InvalidInput, match="there is no file"):
        mb.Space.from_toml(tmp_path / "none.toml")
    with pytest.raises(mb.InvalidInput, match="cannot be read"):
        mb.Space.from_toml(tmp_path)
    with pytest.raises(mb.InvalidInput, match="path"):
        mb.Space.from_toml(3)


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 5000 + "]" * 5000,
        "x = " + "1" * 5000,
        "[x]\nlow = 1\nhigh = " + "1" * 5000,
        "[x]\nchoices = [" + "1" * 5000 + "]",
        "[x]\nchoices = " + "{a = " * 3000 + "1" + "}" * 3000,
        "a." * 5000 + "x = 1",
    ],
    ids=["nested arrays", "digits", "an end", "a choice", "nested tables", "dots"],
)
def test_files_that_python_cannot_read_are_named(text, tmp_path):
    (tmp_path / "space.toml").write_text(text)
    with pytest.raises(mb.InvalidInput, match=r"space\.toml"):
        mb.Space.from_toml(tmp_path / "space.toml")

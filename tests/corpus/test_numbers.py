"""Numbers read all at once are those that Python reads one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tempering.corpus.numbers import BLANKS_AND_COLONS, Tokens

part = st.one_of(
    st.integers(0, 10**20).map(str),
    st.integers(-100, -1).map(str),
    st.floats(allow_nan=True).map(repr),
    st.text("0123456789.eE+-xé_", min_size=1, max_size=8),
)
gap = st.text(" \t\r\n", min_size=1, max_size=3)


@given(st.lists(st.tuples(part, gap)))
def test_tokens_are_those_of_python(parts):
    text = "".join(word + space for word, space in parts) + "\n"
    tokens = Tokens(text.encode())
    words = text.encode().split()
    assert len(tokens) == len(words)
    reals = tokens.reals(np.arange(len(words)))
    for i, word in enumerate(words):
        is_plain = word.isdigit() and len(word) <= 18
        assert tokens.integers[i] == (int(word) if is_plain else -1)
        assert tokens.text(i) == repr(word.decode()[:40]) or len(word) > 40
        if set(word) <= set(b"0123456789.eE+-") and len(word) <= 40:
            try:
                assert reals[i] == float(word)
            except ValueError:
                assert np.isnan(reals[i])
        else:
            assert np.isnan(reals[i])


@given(st.lists(st.tuples(part, gap)))
def test_lines_are_those_of_python(parts):
    text = "".join(word + space for word, space in parts) + "\n"
    tokens = Tokens(text.encode())
    expected = [
        number for number, line in enumerate(text.encode().split(b"\n")) for _ in line.split()
    ]
    assert tokens.lines.tolist() == expected
    lines, heads, numbers = tokens.by_line()
    assert lines.tolist() == sorted(set(expected))
    assert [expected.index(line) for line in lines] == heads.tolist()
    assert numbers.tolist() == [expected.count(line) for line in lines]


def test_colons_separate_where_asked():
    tokens = Tokens(b"2 3:4 5:6\n", BLANKS_AND_COLONS)
    assert tokens.integers.tolist() == [2, 3, 4, 5, 6]
    assert Tokens(b"2 3:4\n").integers.tolist() == [2, -1]

"""TOML of unknown content: what would cost much is refused."""

from __future__ import annotations

import pytest

from dpfit.files.toml_document import LARGEST_DOCUMENT, parse_toml


@pytest.mark.parametrize("part", ["a", '"b c"', "'d.e'"])
@pytest.mark.parametrize("layout", ["{} = 1", "[{}]", "a = {{ {} = 1 }}"])
def test_long_names_are_refused(part: str, layout: str) -> None:
    """The parser's cost goes by the square of a name's parts; four are enough for any schema."""
    assert parse_toml(layout.format(".".join([part] * 4)).encode())
    with pytest.raises(ValueError, match="more than 4 parts"):
        parse_toml(layout.format(" . ".join([part] * 5)).encode())


def test_large_documents_are_refused() -> None:
    """Up to two MiB, which hold a hundred thousand levels, are read."""
    levels = b"a = [" + b",".join(b'"%d"' % i for i in range(100_000)) + b"]"
    assert len(parse_toml(levels)["a"]) == 100_000
    with pytest.raises(ValueError, match="larger than 2 MiB"):
        parse_toml(b"#" * (LARGEST_DOCUMENT + 1))

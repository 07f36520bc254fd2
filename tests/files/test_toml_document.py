"""TOML of unknown content: what is read, and what is refused before the parser pays for it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from dpfit.errors import StorageError, UsageError
from dpfit.files.toml_document import parse_toml, read_toml

LONG_NAMES = b"".join(b"a%d" % i + b".a" * 31 + b"=1\n" for i in range(1000))
TABLES = b"".join(b"[a%d.a]\n" % i for i in range(60_000))
KEYS = b"".join(b"a%d=1\n" % i for i in range(120_000))


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (LONG_NAMES, "a name has more than"),
        (b'a="""x""""\n' + LONG_NAMES, "a name has more than"),
        (b"# '''\n" + LONG_NAMES, "a name has more than"),
        (b'\'a\'."b\\"".' * 9 + b"c=1", "a name has more than"),
        (TABLES, "its names have more than"),
        (KEYS, "without its strings"),
        (b'a="' + b"x" * (4 << 20) + b'"', "larger than 4 MiB"),
        (b"#\n" * (2 << 20), "without its strings"),
        (b"a=" + b"[" * 100_000, "nested too deep|names have more than"),
    ],
)
def test_what_costs_more_than_it_may_is_refused_before_it_is_parsed(
    document: bytes, reason: str
) -> None:
    """The worst files are refused at the cost of reading them, whatever strings hide them."""
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match=f"a.toml: not read as TOML: .*({reason})"):
            parse_toml(document, "a.toml")
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_wide_schema_is_read() -> None:
    """A hundred thousand levels, dots in them or not, and ten thousand columns with ranges."""
    levels = [f"a.b.c.d.e.f.g.h.{i:012d}" for i in range(100_000)]
    columns = "".join(f"columns.x{i}.range = [0.0, 1.5]\n" for i in range(10_000))
    listed = ", ".join(f'"{level}"' for level in levels)
    document = parse_toml(f"{columns}\n[columns.job]\nlevels = [{listed}]\n".encode(), "")
    assert document["columns"]["job"]["levels"] == levels
    assert document["columns"]["x9999"]["range"] == [0.0, 1.5]


@pytest.mark.parametrize("text", [b'a="', b"a='''x''", b'a="\\', b'a="""\\"""', b"a.b"])
def test_a_string_without_an_end_is_no_toml(text: bytes) -> None:
    """It is the parser that says so."""
    with pytest.raises(UsageError, match="not valid TOML"):
        parse_toml(text, "a.toml")


@pytest.mark.parametrize("part", ["a", '"b c"', "'d.e'"])
@pytest.mark.parametrize("layout", ["{} = 1", "[{}]", "a = {{ {} = 1 }}"])
def test_a_name_has_eight_parts_at_most(part: str, layout: str) -> None:
    """The parser's cost goes by the square of a name's parts."""
    assert parse_toml(layout.format(".".join([part] * 8)).encode(), "")
    with pytest.raises(UsageError, match="more than 8 parts"):
        parse_toml(layout.format(" . ".join([part] * 9)).encode(), "")


def test_an_error_names_the_file_and_no_more_of_it_than_the_line(tmp_path: Path) -> None:
    """What was taken for TOML may have been data."""
    path = tmp_path / "t.toml"
    for content, message in [
        (b"a = 1\nsecret\n", f"{path}:2: not valid TOML"),
        (b"a = 1\na = 2\n", f"{path}:2: not valid TOML"),
        (b"a = '\xff'\n", f"{path}: not UTF-8 text"),
        (b"a = " + b"1" * 5000, f"{path}: not valid TOML"),
    ]:
        path.write_bytes(content)
        with pytest.raises(UsageError) as caught:
            read_toml(str(path))
        assert caught.value.message == message
    with pytest.raises(StorageError, match="cannot be read"):
        read_toml(str(tmp_path))

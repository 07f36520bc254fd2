"""A page as the standard library's parser reads it, for tests of what stands in it."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link", "col"}


class HtmlPage(HTMLParser):
    """Elements, texts and attributes; an element that is not closed in order is an error.

    Attributes
    ----------
    tags : list of str
    attributes : list of (str, dict)
        Tag and attributes of each element.
    texts : list of str
        Outside the style sheet.
    style : str
    """

    def __init__(self, document: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.style = ""
        self._open: list[str] = []
        assert document.startswith("<!DOCTYPE html>\n")
        self.feed(document)
        self.close()
        assert self._open == []

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert len(dict(attrs)) == len(attrs), "an attribute twice"
        self.attributes.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["style"]:
            self.style += data
        else:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

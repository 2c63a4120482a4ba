r"""Checks the links inside a built site: ``python docs/links.py FOLDER``.

Sphinx checks references between pages. This also covers what templates and raw files
link to, and the places inside pages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    r"""The links of a page, and the names that links may lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        r"""Called by the parser."""
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.add(value)
            elif value and name in ("id", "name"):
                self.places.add(value)


def broken(site: Path) -> Iterator[str]:
    r"""``page: link`` for each link inside the site that leads nowhere."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue  # another site, or an image in the page itself
            target = (path.parent / unquote(parts.path)).resolve()
            target = path.resolve() if not parts.path else target
            place = unquote(parts.fragment)
            if not target.exists() or (
                place
                and target in pages
                and place not in pages[target].places
                and not place.startswith("sym:")
            ):
                yield f"{path.relative_to(site)}: {link}"


if __name__ == "__main__":
    found = list(broken(Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "All links inside the site lead somewhere.")
    raise SystemExit(bool(found))

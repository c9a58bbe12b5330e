#!/usr/bin/env python3
"""Checks the site that `make docs` built: every link leads somewhere, and nothing is fetched from elsewhere.

    scripts/check_site.py SITE

Links between pages must hit a file, and behind a # an element of that name. Links to other sites are checked in form
alone, since there may be no Internet. What a page loads by itself (scripts, styles, fonts, pictures) must lie in the
site.
"""

import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Drawn by rustdoc, which checks its own links.
FOREIGN = "rust"
# What a browser fetches without being asked: attribute by element.
LOADED = {name: "src" for name in ("script", "img", "iframe", "source", "video", "audio")} | {"object": "data"}
LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "shortcut icon", "manifest"}
IMPORTED = re.compile(r"""@import\s+(?:url\()?["']?([^"')]+)|url\(\s*["']?([^"')]+)""")


class Page(HTMLParser):
    """The names of a page's elements, where it leads, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[tuple[int, str]] = []
        self.loaded: list[tuple[int, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        line = self.getpos()[0]
        self.names.update(found[key] for key in ("id", "name") if key in found)
        if tag in LOADED and LOADED[tag] in found:
            self.loaded.append((line, found[LOADED[tag]]))
        elif tag == "link" and found.get("rel") in LOADED_LINKS:
            self.loaded.append((line, found["href"]))
        elif tag in ("a", "area") and "href" in found:
            self.links.append((line, found["href"]))


@cache
def page(path: Path) -> Page:
    return Page(path.read_text())


def wrong(path: Path, target: str, loaded: bool) -> str | None:
    """Why a link of the page at `path` leads nowhere."""
    parts = urlsplit(target)
    if loaded and (parts.netloc or parts.scheme not in ("", "data")):
        return f"fetched from elsewhere: {target}"
    if parts.scheme in ("http", "https"):
        good = re.fullmatch(r"[\w-]+(\.[\w-]+)+(:\d+)?", parts.netloc) and " " not in target
        return None if good else f"no address: {target}"
    if parts.scheme or parts.netloc:
        return None if parts.scheme in ("mailto", "data") else f"unknown kind of address: {target}"
    aim = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if aim.is_dir():
        aim /= "index.html"
    if not aim.is_file():
        return f"no page {target}"
    if parts.fragment and aim.suffix == ".html" and unquote(parts.fragment) not in page(aim).names:
        return f"no element #{parts.fragment} in {parts.path or 'this page'}"
    return None


def main() -> int:
    site = Path(sys.argv[1]).resolve()
    pages = [path for path in sorted(site.rglob("*.html")) if path.relative_to(site).parts[0] != FOREIGN]
    problems = []
    links = 0
    for path in pages:
        name = path.relative_to(site)
        for line, target in page(path).loaded:
            if why := wrong(path, target, loaded=True):
                problems.append(f"{name}:{line}: {why}")
        for line, target in page(path).links:
            links += 1
            if why := wrong(path, target, loaded=False):
                problems.append(f"{name}:{line}: {why}")
    for path in sorted(site.rglob("*.css")):
        for match in IMPORTED.finditer(path.read_text()):
            if path.relative_to(site).parts[0] != FOREIGN and (why := wrong(path, match[1] or match[2], loaded=True)):
                problems.append(f"{path.relative_to(site)}: {why}")
    print("\n".join(sorted(set(problems))), end="\n" if problems else "")
    print(f"check_site: {len(pages)} pages, {links} links, {len(set(problems))} wrong")
    return 1 if problems or not pages else 0


if __name__ == "__main__":
    sys.exit(main())

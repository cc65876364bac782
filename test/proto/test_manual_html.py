# SPDX-License-Identifier: PostgreSQL
"""test_manual_html: `make html`: every chapter is a page, every link of every page resolves, and pages fetch nothing."""
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pgt import browser

TOP = Path(__file__).resolve().parents[2]
MAKER = TOP / "doc" / "html" / "make_html.py"
EMPTY = {"meta", "link", "input", "br", "hr", "img"}


class Reader(HTMLParser):
    """Links, ids and text of a page; asserts that what is opened is closed."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.ids: list[str] = []
        self.shown: list[str] = []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag not in EMPTY:
            self.open.append(tag)
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "a":
            self.links.append(found["href"])
        self.fetched += [found[name] for name in ("src", "href") if name in found and tag != "a"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data):
        if "code" not in self.open:
            self.shown.append(data)


def read(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    assert not reader.open
    return reader


def make(source: Path, out: Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, MAKER, source, out], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def manual(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("html")
    done = make(TOP / "doc" / "user", out)
    assert done.returncode == 0, done.stderr
    return out


def test_every_link_resolves(manual):
    pages = {path.name: read(path) for path in manual.glob("*.html")}
    chapters = {path.stem for path in (TOP / "doc" / "user").glob("*.md")} - {"README"} | {"index"}
    assert {Path(name).stem for name in pages} == chapters
    bad = []
    for name, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), name
        for link in page.links:
            file, _, part = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            if not (manual / (file or name)).is_file():
                bad.append(f"{name}: {link}: no such file")
            elif part and part not in pages[file or name].ids:
                bad.append(f"{name}: {link}: no such place")
    assert not bad, "\n".join(bad)


def test_pages_fetch_their_own_files_only(manual):
    for path in manual.glob("*.html"):
        for fetched in read(path).fetched:
            assert (manual / fetched).is_file(), (path.name, fetched)
    for name in ("manual.js", "manual.css"):
        assert not re.search(r"fetch\(|XMLHttpRequest|@import|url\(", (manual / name).read_text(encoding="utf-8")), name


def test_no_markdown_is_left(manual):
    for path in manual.glob("*.html"):
        text = "".join(read(path).shown)
        assert not re.search(r"^#{1,4} |\]\(|\*\*\w|^\|", text, re.M), path.name
        assert "`" not in text, path.name


def test_the_index_names_every_section(manual):
    text = (manual / "search_index.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("const manualIndex = ").rstrip().rstrip(";"))
    places = {(row["page"], row["anchor"]) for row in index}
    for path in manual.glob("*.html"):
        for place in read(path).ids:
            if place not in ("search", "found", "contents"):
                assert (path.name, place) in places, (path.name, place)
    found = [row for row in index if "idle_transaction_timeout" in row["title"]]
    assert [row["page"] for row in found] == ["reference-settings.html"]


@pytest.mark.skipif(browser.program() is None, reason="no Chromium is installed")
def test_search_in_a_browser(manual):
    """From a folder, without a server: what is typed is found, in a heading first."""
    one = browser.Browser()
    try:
        one.open(f"file://{manual}/pools-conf.html")
        one.type("#search", "query_timeout")
        one.wait("document.querySelectorAll('#found a').length > 1")
        assert one.js("document.querySelector('#found a').href").endswith("/reference-settings.html#query_timeout")
        one.press("ArrowDown", 40)
        assert one.js("document.activeElement === document.querySelector('#found a')")
        one.press("ArrowUp", 38)
        assert one.js("document.activeElement.id") == "search"
        one.press("Enter", 13)
        one.wait("location.href.endsWith('/reference-settings.html#query_timeout') && document.readyState === 'complete'")
        one.press("/", 191)
        one.wait("document.activeElement.id === 'search' && document.activeElement.value === ''")
        one.type("#search", "トランザクション")
        one.wait("document.querySelectorAll('#found a').length > 0")
        one.type("#search", " nowhere-to-be-found")
        one.wait("document.querySelector('#found').textContent === 'Nothing found.'")
    finally:
        one.stop()


@pytest.mark.skipif(browser.program() is None, reason="no Chromium is installed")
def test_no_page_is_wider_than_a_phone(manual):
    """Tables and code scroll by themselves; the contents are folded up, so that the page begins on the first screen."""
    one = browser.Browser()
    try:
        for path in sorted(manual.glob("*.html")):
            one.look(390, 844)
            one.open(f"file://{path}")
            assert one.js("document.documentElement.scrollWidth") <= 390, path.name
            assert one.js("document.querySelector('h1').getBoundingClientRect().top") < 300, path.name
            wanted = path.stem.rpartition("-")[2]
            assert one.js("document.documentElement.lang") == (wanted if wanted in ("ja", "zh") else "en"), path.name
        one.look(1280, 900)
        one.open(f"file://{manual}/index.html")
        assert one.js("document.querySelector('#contents').open && document.querySelector('#contents a').getBoundingClientRect().top > 0")
        assert not one.complaints
    finally:
        one.stop()


def test_blocks(tmp_path):
    """What the manual is written in, and a link that leads nowhere."""
    source = tmp_path / "in"
    source.mkdir()
    (source / "README.md").write_text("# Top `a<b`\n\n[one](one.md#two-words) **x** `**y** | z`\n\n| a | b |\n| --- | --- |\n"
                                      "| `p\\|q` | [one](one.md) |\n\n1. first\n   more\n   ```\n   code <i>\n   ```\n2. second\n   - inner\n",
                                      encoding="utf-8")
    (source / "one.md").write_text("# One\n\n## Two words\n\n## Two words\n", encoding="utf-8")
    assert make(source, tmp_path / "out").returncode == 0
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    body = re.sub(r"\s*\n\s*", "", text[text.index("<main>"):])
    assert '<h1 id="top-ab">Top <code>a&lt;b</code></h1>' in body
    assert '<p><a href="one.html#two-words">one</a> <strong>x</strong> <code>**y** | z</code></p>' in body
    assert '<th>a</th><th>b</th>' in body and '<td><code>p|q</code></td><td><a href="one.html">one</a></td>' in body
    assert "<ol><li>first more<pre><code>code &lt;i&gt;</code></pre></li><li>second<ul><li>inner</li></ul></li></ol>" in body
    assert '<h2 id="two-words-1">' in (tmp_path / "out" / "one.html").read_text(encoding="utf-8")
    (source / "one.md").write_text("[x](gone.md)\n", encoding="utf-8")
    assert "gone.md: no such file" in make(source, tmp_path / "out").stderr

#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""make_html: the manual (doc/user/*.md) as HTML pages with contents at the side, search, light and dark. `make html`.

Nothing but Python's own library, and pages that fetch nothing: a browser may open them from a folder. Only the Markdown
that the manual uses is known: headings, paragraphs, lists, tables, code, links, emphasis.
"""
import html
import json
import re
import sys
from pathlib import Path

LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
ITEM = re.compile(r"( *)([-*]|\d+\.) +(.*)")
ROW_END = re.compile(r"(?<!\\)\|")


def anchor(heading: str) -> str:
    """The name of a heading as links in Markdown have it."""
    words = re.sub(r"[^\w\- ]", "", heading.lower().replace("`", ""))
    return words.strip().replace(" ", "-")


def plain(text: str) -> str:
    return LINK.sub(r"\1", text).replace("`", "").replace("**", "")


class Page:
    """One chapter: its blocks as HTML, its headings, its text for the search."""

    def __init__(self, path: Path, chapters: set[str], copied: set[Path]):
        self.path = path
        self.chapters = chapters
        self.copied = copied  # files outside the manual that pages point at
        self.out: list[str] = []
        self.headings: list[tuple[int, str, str]] = []
        self.texts: list[list[str]] = []  # text under each heading
        self.used: set[str] = set()
        self.blocks(path.read_text(encoding="utf-8").splitlines())

    @property
    def title(self) -> str:
        return self.headings[0][1] if self.headings else self.path.stem

    @property
    def name(self) -> str:
        return page_name(self.path.name)

    def target(self, to: str) -> str:
        """A link of the chapter as one of the page."""
        if re.match(r"[a-z]+:", to) or to.startswith("#"):
            return to
        file, _, part = to.partition("#")
        if file in self.chapters:
            return page_name(file) + ("#" + part if part else "")
        other = (self.path.parent / file).resolve()
        if not other.is_file():
            raise SystemExit(f"{self.path}: link to {file}: no such file")
        self.copied.add(other)
        return f"files/{other.name}" + ("#" + part if part else "")

    def inline(self, text: str) -> str:
        parts = re.split(r"(`+)(.+?)\1", text.replace("\\|", "|"))
        code = [f"<code>{html.escape(part, quote=False)}</code>" for part in parts[2::3]]
        # Code is put aside, for emphasis may reach around it.
        whole = "".join(html.escape(part, quote=False) + ("\0" if i < len(code) else "") for i, part in enumerate(parts[::3]))
        whole = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", whole)
        whole = LINK.sub(lambda m: f'<a href="{html.escape(self.target(html.unescape(m[2])))}">{m[1]}</a>', whole)
        rest = iter(code)
        return re.sub("\0", lambda _: next(rest), whole)

    def say(self, text: str) -> None:
        if self.texts:
            self.texts[-1].append(plain(text))

    def heading(self, level: int, text: str) -> None:
        base = name = anchor(text)
        number = 0
        while name in self.used:
            number += 1
            name = f"{base}-{number}"
        self.used.add(name)
        self.headings.append((level, plain(text), name))
        self.texts.append([])
        self.out.append(f'<h{level} id="{name}">{self.inline(text)}</h{level}>')

    def table(self, lines: list[str]) -> None:
        rows = [[cell.strip() for cell in ROW_END.split(line.strip().strip("|"))] for line in lines]
        head = [] if len(rows) < 2 or not re.fullmatch(r"[-: ]+", rows[1][0]) else rows[0]
        self.out.append('<div class="wide"><table>')
        if head:
            self.out.append("<thead><tr>" + "".join(f"<th>{self.inline(c)}</th>" for c in head) + "</tr></thead>")
        for row in rows[2:] if head else rows:
            self.say(" ".join(row))
            self.out.append("<tr>" + "".join(f"<td>{self.inline(c)}</td>" for c in row) + "</tr>")
        self.out.append("</table></div>")

    def items(self, lines: list[str]) -> None:
        """A list: what is indented under an item belongs to it."""
        first = ITEM.match(lines[0])
        assert first is not None
        tag = "ol" if first[2][0].isdigit() else "ul"
        self.out.append(f"<{tag}>")
        i = 0
        while i < len(lines):
            item = ITEM.match(lines[i])
            assert item is not None
            inner = [item[3]]
            width = len(item[1]) + len(item[2]) + 1
            i += 1
            while i < len(lines) and not (ITEM.match(lines[i]) and len(lines[i]) - len(lines[i].lstrip()) <= len(item[1])):
                inner.append(lines[i][min(width, len(lines[i]) - len(lines[i].lstrip())):])
                i += 1
            self.out.append("<li>")
            self.blocks(inner, tight=True)
            self.out.append("</li>")
        self.out.append(f"</{tag}>")

    def code(self, lines: list[str]) -> None:
        self.say(" ".join(lines))
        self.out.append(f"<pre><code>{html.escape(chr(10).join(lines), quote=False)}</code></pre>")

    def paragraph(self, lines: list[str], tight: bool) -> None:
        text = " ".join(line.strip() for line in lines)
        self.say(text)
        self.out.append(self.inline(text) if tight else f"<p>{self.inline(text)}</p>")

    def blocks(self, lines: list[str], tight: bool = False) -> None:
        i = 0
        while i < len(lines):
            line, start = lines[i], i
            heading = re.match(r"(#{1,4}) (.*)", line)
            i += 1
            if not line.strip() or line.startswith("<!--"):
                continue
            if heading:
                self.heading(len(heading[1]), heading[2])
            elif line.lstrip().startswith("```"):
                while i < len(lines) and not lines[i].lstrip().startswith("```"):
                    i += 1
                self.code(lines[start + 1:i])
                i += 1
            elif line.startswith("|"):
                while i < len(lines) and lines[i].startswith("|"):
                    i += 1
                self.table(lines[start:i])
            elif ITEM.match(line):
                while i < len(lines) and (ITEM.match(lines[i]) or lines[i].startswith(" ") or
                                          not lines[i].strip() and i + 1 < len(lines) and lines[i + 1].startswith("  ")):
                    i += 1
                self.items(lines[start:i])
            else:
                while i < len(lines) and lines[i].strip() and not re.match(r"#{1,4} |\||```", lines[i]) and not ITEM.match(lines[i]):
                    i += 1
                self.paragraph(lines[start:i], tight)


def page_name(chapter: str) -> str:
    return "index.html" if chapter == "README.md" else Path(chapter).stem + ".html"


def contents(pages: list[Page], here: Page) -> str:
    """The chapters; under the present one its sections."""
    out = []
    for page in pages:
        mark = ' aria-current="page"' if page is here else ""
        out.append(f'<li><a href="{page.name}"{mark}>{html.escape(page.title)}</a>')
        if page is here:
            out.append("<ul>" + "".join(f'<li><a href="#{name}">{html.escape(text)}</a></li>'
                                        for level, text, name in page.headings if level == 2) + "</ul>")
        out.append("</li>")
    return "<ul>" + "".join(out) + "</ul>"


def language(page: Page) -> str:
    """By the end of its name: which of the glyphs that Japanese and Chinese share a browser takes goes by it."""
    end = page.path.stem.rpartition("-")[2]
    return end if end in ("ja", "zh") else "en"


def ordered(pages: list[Page]) -> list[Page]:
    """As the first page lists them; what it does not list comes last."""
    first = next(page for page in pages if page.name == "index.html")
    listed = LINK.findall(first.path.read_text(encoding="utf-8"))
    order = ["README.md"] + [to.partition("#")[0] for _, to in listed]
    return sorted(pages, key=lambda p: (order.index(p.path.name) if p.path.name in order else len(order), p.path.name))


def index_of(pages: list[Page]) -> list[dict]:
    return [{"page": page.name, "chapter": page.title, "anchor": name, "title": text, "text": " ".join(words)}
            for page in pages for (_, text, name), words in zip(page.headings, page.texts)]


def main(args: list[str]) -> int:
    if len(args) != 2:
        print("usage: make_html.py FOLDER_OF_CHAPTERS OUTPUT_FOLDER", file=sys.stderr)
        return 2
    source, out = Path(args[0]).resolve(), Path(args[1])
    here = Path(__file__).resolve().parent
    names = sorted(path.name for path in source.glob("*.md"))
    copied: set[Path] = set()
    pages = ordered([Page(source / name, set(names), copied) for name in names])
    out.mkdir(parents=True, exist_ok=True)
    frame = (here / "page.html").read_text(encoding="utf-8")
    for page in pages:
        text = frame
        for mark, value in (("@LANG@", language(page)), ("@TITLE@", html.escape(page.title)), ("@CONTENTS@", contents(pages, page)),
                            ("@BODY@", "\n".join(page.out))):
            text = text.replace(mark, value)
        (out / page.name).write_text(text, encoding="utf-8")
    for name in ("manual.css", "manual.js"):
        (out / name).write_bytes((here / name).read_bytes())
    (out / "search_index.js").write_text("const manualIndex = " + json.dumps(index_of(pages)) + ";\n", encoding="utf-8")
    for path in sorted(copied):
        (out / "files").mkdir(exist_ok=True)
        (out / "files" / path.name).write_bytes(path.read_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: PostgreSQL
"""bench_svg: the two charts the bench draws, as plain SVG: grouped bars and lines."""

from html import escape

COLOURS = ["#336791", "#d98324", "#8a8f98", "#5b8c5a", "#8e5572"]
FONT = 'font-family="sans-serif"'


def text(x, y, words, size=12, anchor="middle", extra=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" {FONT} '
            f'{extra}>{escape(str(words))}</text>')


def document(width, height, parts):
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
         f'viewBox="0 0 {width} {height}">',
         f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>", ""])


def legend(names, x, y):
    parts = []
    for i, name in enumerate(names):
        parts.append(f'<rect x="{x + i * 110}" y="{y - 10}" width="12" height="12" '
                     f'fill="{COLOURS[i % len(COLOURS)]}"/>')
        parts.append(text(x + i * 110 + 17, y, name, anchor="start"))
    return parts


def bar_panel(title, groups, names, value, label, top, width=900, height=230):
    """One panel of grouped bars. value(group, name) gives the height or None, label() its text."""
    left, bottom = 50, top + height - 30
    values = [value(g, n) for g in groups for n in names]
    most = max([v for v in values if v is not None] or [1]) * 1.15
    room = (width - left - 20) / max(len(groups), 1)
    bar = room * 0.8 / max(len(names), 1)
    parts = [text(left, top + 16, title, 14, "start", 'font-weight="bold"'),
             f'<line x1="{left}" y1="{bottom}" x2="{width - 20}" y2="{bottom}" stroke="#444"/>']
    usable = height - 70
    if most > 1:
        y = bottom - usable / most
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width - 20}" y2="{y:.1f}" '
                     f'stroke="#bbb" stroke-dasharray="4 3"/>')
        parts.append(text(left - 6, y + 4, "1.0", 11, "end"))
    for g, group in enumerate(groups):
        x0 = left + g * room + room * 0.1
        parts.append(text(x0 + room * 0.4, bottom + 18, group))
        for n, name in enumerate(names):
            v = value(group, name)
            if v is None:
                continue
            tall = usable * v / most
            x = x0 + n * bar
            parts.append(f'<rect x="{x:.1f}" y="{bottom - tall:.1f}" width="{bar * 0.92:.1f}" '
                         f'height="{tall:.1f}" fill="{COLOURS[n % len(COLOURS)]}"/>')
            parts.append(text(x + bar * 0.46, bottom - tall - 4, label(group, name), 10))
    return parts


def line_panel(title, series, top, width=900, height=300, x_name="", y_name=""):
    """One panel of lines. series: {name: [(x, y)]}"""
    left, bottom, right = 80, top + height - 45, width - 30
    points = [p for line in series.values() for p in line]
    x_most = max([p[0] for p in points] or [1]) or 1
    y_most = (max([p[1] for p in points] or [1]) or 1) * 1.15
    parts = [text(left, top + 16, title, 14, "start", 'font-weight="bold"'),
             f'<path d="M{left} {top + 30} V{bottom} H{right}" fill="none" stroke="#444"/>',
             text((left + right) / 2, bottom + 34, x_name),
             text(left, top + 34, y_name, 11, "start", 'dx="6"')]
    for i in range(5):
        part = i / 4
        y = bottom - part * (bottom - top - 40)
        parts.append(text(left - 6, y + 4, f"{part * y_most:,.1f}", 11, "end"))
        parts.append(text(left + part * (right - left), bottom + 16, f"{part * x_most:,.0f}", 11))
    for i, line in enumerate(series.values()):
        path = " ".join(
            f"{left + x / x_most * (right - left):.1f},"
            f"{bottom - y / y_most * (bottom - top - 40):.1f}" for x, y in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke-width="2" '
                     f'stroke="{COLOURS[i % len(COLOURS)]}"/>')
    return parts

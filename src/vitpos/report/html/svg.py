"""Put a matplotlib SVG into a page: themed colours, unique identifiers, a title and a description."""

from __future__ import annotations

import re
from html import escape

from markupsafe import Markup

from vitpos.report.figures.picture import BAND, COLOURS, GRID, INK

_THEMED = {INK: "currentColor", GRID: "var(--grid)", BAND: "var(--band)"} | {
    colour.lower(): f"var(--c{place})" for place, colour in enumerate(COLOURS)
}
# Metadata, and a style sheet that would apply to the whole page; the page's own has the same rule for figures.
_UNWANTED = re.compile(r'\s*<metadata>.*?</metadata>|\s*<style type="text/css">.*?</style>', re.DOTALL)


def inline_svg(svg: bytes, prefix: str, title: str, description: str) -> Markup:
    """Return an SVG as an element of an HTML page.

    Args:
        svg: what matplotlib wrote, with text as text.
        prefix: put before every identifier, so that several figures live in one page.
        title: accessible name.
        description: accessible description.
    """
    text = svg.decode()
    text = _UNWANTED.sub("", text[text.index("<svg") :])
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = text.replace("url(#", f"url(#{prefix}-").replace('href="#', f'href="#{prefix}-')
    text = re.sub(r"font-family: [^;\"]+", "font-family: var(--font)", text)
    for colour, themed in _THEMED.items():
        text = text.replace(colour, themed)
    end = text.index(">")
    # Without a size of its own the figure is as wide as its column.
    opening = re.sub(r' (?:width|height)="[^"]*"', "", text[:end])
    names = f'<title id="{prefix}-title">{escape(title)}</title><desc id="{prefix}-desc">{escape(description)}</desc>'
    label = f'role="img" aria-labelledby="{prefix}-title {prefix}-desc"'
    return Markup(f"{opening} {label}>{names}{text[end + 1 :].strip()}")

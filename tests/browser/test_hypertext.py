"""Translated HTML in a real browser: what the model says is text there too, however broken the HTML is."""

import random
import re

from playwright.sync_api import Browser
from tests.unit.serve.test_markup import FRAGMENTS

from tandem.serve.hypertext import build_hypertext
from tandem.translate.translator import Link, Translation

MORE = """
<a <b <i <p <a\x00 " ' / = x b= c=' d=" > > </p <script/> <style> </style> <style/> <textarea> </textarea> <svg> <svg/>
<title> <select> <table> <template> <!--> <!---> --!> -- > <b> </b> <code>
"""
EVIL = """evil" evil=1 ' evil=2 <evil> --> `evil`"""
SEEN = """
pages => pages.map(html => {
  const page = new DOMParser().parseFromString(html, "text/html");
  const told = [...page.querySelectorAll("script, style")].map(each => each.textContent);
  for (const each of page.querySelectorAll("*")) {
    told.push(each.localName, ...each.getAttributeNames(), ...[...each.attributes].map(one => one.value));
  }
  const comments = page.createNodeIterator(page, NodeFilter.SHOW_COMMENT);
  for (let each = comments.nextNode(); each; each = comments.nextNode()) told.push(each.data);
  return told.some(each => each.includes("evil"));
})
"""


def draw_page(dice: random.Random) -> tuple[str, str]:
    """HTML of any kind, and what becomes of it where the model would like to write some."""
    fragments = [*FRAGMENTS.split(), *MORE.split(), " ", "\n", '<b translate="no">']
    html = "".join(dice.choices(fragments, k=dice.randint(2, 16)))
    page = build_hypertext(html)
    words = [found.span() for found in re.finditer(r"\S+", EVIL)]

    def said(line: str) -> Translation:
        sources = [found.span() for found in re.finditer(r"\S+", line)]
        alignment = tuple(Link(source=dice.choice(sources), target=word) for word in words)
        return Translation(text=EVIL, score=0.0, pieces=1, alignment=alignment)

    return html, page.rewritten([said(line) for line in page.lines])


def test_no_browser_sees_markup_in_what_the_model_says(browser: Browser) -> None:
    dice = random.Random(1)
    pages = [draw_page(dice) for _ in range(10_000)]
    assert sum("evil" in html for _, html in pages) > 1_000
    seen = browser.new_page().evaluate(SEEN, [html for _, html in pages])
    assert [page for page, is_seen in zip(pages, seen, strict=True) if is_seen] == []

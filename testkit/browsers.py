"""The distribution's Chromium, driven by Playwright, for tests of web pages.

While it is open, an event loop runs in the tests' own thread: it is closed before tests that need a loop of their own.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, expect, sync_playwright

PATIENCE_MILLISECONDS = 60_000
#: Script that lists visible texts, buttons, fields and pictures that are not wholly on the screen: beyond its left or
#: right edge, or cut off by an element around them. Charts, which scroll and zoom by themselves, and texts for screen
#: readers only are left out.
CUT_OFF = """() => {
  const cut = [];
  const unmeant = "[hidden], .skip, thead, .chart, svg.heat, script, style, dialog:not([open])";
  const isMeant = (element) => !element.closest(unmeant)
    && element.checkVisibility({ visibilityProperty: true });
  const look = (element, box, what) => {
    if (box.width === 0 || box.height === 0) return;
    if (box.left < -0.5 || box.right > innerWidth + 0.5) { cut.push("off the screen: " + what); return; }
    for (let around = element; around && around !== document.body; around = around.parentElement) {
      const style = getComputedStyle(around), outer = around.getBoundingClientRect();
      const beside = style.overflowX !== "visible" && (box.left < outer.left - 0.5 || box.right > outer.right + 0.5);
      const below = style.overflowY !== "visible" && (box.top < outer.top - 0.5 || box.bottom > outer.bottom + 0.5);
      if (beside || below) {
        cut.push("cut off by " + around.tagName + "." + around.className + ": " + what);
        return;
      }
    }
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    if (!text.data.trim() || !isMeant(text.parentElement)) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    for (const box of range.getClientRects()) look(text.parentElement, box, text.data.trim().slice(0, 60));
  }
  const controls = "button, a, input:not([type=hidden]), select, progress, svg, canvas, .badge";
  for (const element of document.querySelectorAll(controls))
    if (isMeant(element)) look(element, element.getBoundingClientRect(), element.outerHTML.slice(0, 80));
  return cut;
}"""
#: Script for `add_init_script`: `window.written` has each text that a canvas shows, and how it is aligned.
KEEP_WRITTEN = """
window.written = new Map();
const fill = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  window.written.set(text, this.textAlign);
  return fill.call(this, text, ...rest);
};
"""


@contextmanager
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program is not None, "the tests need chromium: apt-get install chromium"
    expect.set_options(timeout=PATIENCE_MILLISECONDS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()

r"""A page as a browser without network and without a window shows it."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
LISTEN = """<script>
window.faults = [];
addEventListener("error", event => faults.push(String(event.message)));
for (const name of ["error", "warn"]) {
  const said = console[name];
  console[name] = (...words) => { faults.push(words.join(" ")); said(...words); };
}
</script>"""
"""Notes what goes wrong from the first line of a page on."""
ACT = """<script>
addEventListener("load", () => setTimeout(async () => {
  let found;
  try {
    found = await (async () => { %s })();
  } catch (error) { faults.push(String(error)); }
  const resources = performance.getEntriesByType("resource").map(one => one.name);
  const seen = document.createElement("pre");
  seen.id = "seen";
  seen.textContent = JSON.stringify({found, faults, resources});
  document.body.append(seen);
}, 1000));
</script>"""
"""Does something once a page is there, and writes down what it saw."""


@cache
def is_there() -> bool:
    r"""Whether there is a Chromium that starts."""
    if CHROMIUM is None:
        return False
    with tempfile.TemporaryDirectory() as profile:
        call = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--dump-dom"]
        try:
            done = subprocess.run(
                [*call, "data:text/html,<p>here</p>"], capture_output=True, timeout=120
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
    return b"<p>here</p>" in done.stdout


def _needed() -> None:
    if not is_there():
        pytest.skip("there is no Chromium that starts: apt-get install chromium")


def printed(page: Path, *flags: str) -> list[str]:
    r"""The texts of the sheets of paper that a page is printed on."""
    _needed()
    pypdf = pytest.importorskip("pypdf")
    paper, profile = page.with_suffix(".pdf"), page.with_name("profile")
    call = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *flags]
    call += ["--virtual-time-budget=20000", f"--print-to-pdf={paper}", page.as_uri()]
    subprocess.run(call, capture_output=True, timeout=300, check=True)
    return [sheet.extract_text() for sheet in pypdf.PdfReader(paper).pages]


def seen(page: Path, act: str, *flags: str) -> Any:
    r"""What a script returns that runs on a page once all is drawn.

    Nothing may have gone wrong, and nothing may have been asked of any server.

    Args:
        page: The page.
        act: The body of a function in JavaScript, which may wait.
        flags: Of Chromium, such as ``--window-size=390,800``.
    """
    _needed()
    text = page.read_text(encoding="utf-8")
    acting = page.with_name(f"acting_{page.name}")
    text = text.replace("<head>", f"<head>{LISTEN}", 1)
    acting.write_text(text.replace("</body>", f"{ACT % act}</body>"), encoding="utf-8")
    profile = page.with_name("profile")
    call = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *flags]
    call += ["--virtual-time-budget=20000", "--dump-dom", acting.as_uri()]
    shown = subprocess.run(call, capture_output=True, timeout=300, check=True).stdout
    (data,) = re.findall(r'<pre id="seen">(.*?)</pre>', shown.decode("utf-8"), re.S)
    found = json.loads(html.unescape(data))
    assert found["faults"] == []
    assert found["resources"] == []
    return found.get("found")

"""The pages that the loop writes, in a real Chromium: at a desk and on a telephone."""

from __future__ import annotations

import json

import pytest

from loop.bench_tables import Mark, Outcome, Score
from loop.journal import Journal
from loop.start import write_page, write_report, write_review
from tests.chromium import browsing, program
from tests.integration.loop.test_review import kit, run, session, walked  # noqa: F401

pytestmark = pytest.mark.skipif(program() is None, reason="this machine has no Chromium")

DESK, TELEPHONE = 1280, 390
#: What sticks out of the window to the right, but for what scrolls by itself.
STICKS_OUT = """
[...document.body.querySelectorAll("*")].filter((each) =>
  each.getBoundingClientRect().right > innerWidth + 1 && !each.closest("pre, .wide, .chart"))
  .map((each) => each.outerHTML.slice(0, 80))
"""
#: Tables and pictures that are seen only in part.
SCROLLS = """
[...document.querySelectorAll(".wide, .chart")].filter((each) =>
  each.scrollWidth > each.clientWidth + 1).map((each) => each.innerHTML.slice(0, 80))
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """One browser for all pages."""
    with browsing(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def pages(kit, session, tmp_path):  # noqa: F811
    """Report and review of twelve edits, and the arms of a benchmark."""
    found = Journal(kit.ledger, "s1").history()
    assert found is not None
    write_report(found, tmp_path / "report.html")
    write_review(found, tmp_path / "review.html")
    arms = ("full", "draft", "single_shot", "blind_retry", "best_of_12", "human")
    scores = tuple(
        Score(f"{n}/1", arm, n % 3 > 0, "converged", tokens=place * 400, cpu_s=place + 1.0,
              again_cpu_s=0.1, marks=(Mark(False, 0, 0.1), Mark(n % 3 > 0, place * 400, 1.0)))
        for place, arm in enumerate(arms) for n in range(9)
    )  # fmt: skip
    write_page(Outcome("everyday", scores).to_html(), tmp_path / "bench.html")
    return tmp_path


@pytest.mark.parametrize("width", [DESK, TELEPHONE])
@pytest.mark.parametrize(
    ("name", "says"),
    [("report", "Rounds"), ("review", "The workflow as it stands"), ("bench", "break-even runs")],
)
def test_a_page_fits_its_window_and_asks_for_nothing(page, pages, name, says, width):
    """Nothing sticks out, the text is there, and no address but its own file is asked for."""
    page.asked.clear()

    page.open(pages / f"{name}.html", width)

    assert page.run("innerWidth") == width
    assert says in page.run("document.body.innerText")
    assert page.run(STICKS_OUT) == []
    assert page.run("document.documentElement.scrollWidth") <= width
    if width == DESK:
        assert page.run(SCROLLS) == [], "at a desk tables and pictures are seen whole"
    assert page.asked == [(pages / f"{name}.html").as_uri()]


def test_every_word_of_a_chart_is_inside_it(page, pages):
    """Neither bars nor names are cut off at an edge."""
    cut = """
    [...document.querySelectorAll("svg")].flatMap((svg) => {
      const box = svg.getBoundingClientRect();
      return [...svg.querySelectorAll("text, rect")].filter((each) => {
        const at = each.getBoundingClientRect();
        return at.left < box.left - 1 || at.right > box.right + 1 || at.bottom > box.bottom + 1;
      }).map((each) => each.outerHTML.slice(0, 80));
    })
    """
    for name in ("report", "bench"):
        page.open(pages / f"{name}.html", DESK)

        assert page.run('document.querySelectorAll("svg").length') >= 1
        assert page.run(cut) == []


@pytest.mark.sandbox
def test_a_maintainers_walk_in_the_browser(page, pages, kit, session, tmp_path):  # noqa: F811
    """Accept eight, reject three, edit one, save: what the page saved is what is carried out."""
    page.open(pages / "review.html", TELEPHONE)
    better = [{"op": "to_shell", "step": "s0",
               "command": "tr '[:lower:]' '[:upper:]' < names.txt > o0.txt"}]  # fmt: skip
    chosen = {f"{n + 1}.0": "accept" if n < 9 else "reject" for n in range(12)}
    page.run(f"""
    for (const [name, word] of Object.entries({json.dumps({**chosen, "1.0": "edit"})}))
      document.querySelector(`[data-hunk="${{name}}"] input[value="${{word}}"]`).click();
    """)
    field = "document.querySelector('[data-hunk=\"1.0\"] textarea')"
    assert page.run("document.querySelectorAll('.editor:not([hidden])').length") == 1

    page.run(f"{field}.value = 'no json'; document.getElementById('save').click()")
    complaint = page.run("document.getElementById('said').textContent")
    page.run(f"{field}.value = {json.dumps(json.dumps(better))}")
    page.saved(tmp_path, "document.getElementById('save').click()")

    assert complaint.startswith("1.0 is no JSON")
    assert page.run("document.getElementById('said').textContent") == "saved as decisions.json"
    run("--decisions", str(tmp_path / "decisions.json"), "--as", "ada")
    walked(kit, session)


TAKEN = "document.title = 'taken'"
HOSTILE = f'</pre><script>{TAKEN}</script><img src=x onerror="{TAKEN}">'


def test_what_a_session_holds_is_shown_and_not_obeyed(page, pages, kit, tmp_path):  # noqa: F811
    """Markup in a task, a goal and a workflow is text on both pages."""
    journal = Journal(kit.ledger, "s1")
    journal.note(task=HOSTILE, goals=[HOSTILE], workflow_text=HOSTILE, stop=HOSTILE)
    found = journal.history()
    assert found is not None
    for name, write in (("report", write_report), ("review", write_review)):
        write(found, tmp_path / f"hostile-{name}.html")

        page.open(tmp_path / f"hostile-{name}.html", DESK)

        assert page.run("document.title") != "taken"
        assert HOSTILE in page.run("document.body.innerText")

"""What all pages have in common: links that lead somewhere, and names of conditions and Events that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpushare.domain import gpunode
from gpushare.plan import status

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "operator" / "gpushare"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "charts").glob("*/README.md"))]
POLICY_CONDITIONS = (
    status.READY, status.ERROR, status.CONFIG_VALID, status.ROLLED_OUT, status.CONFLICT, status.UNMANAGED, status.PERMITTED
)  # fmt: skip
NODE_CONDITIONS = (
    gpunode.CONFIG_ASSIGNED, gpunode.AGENT_READY, gpunode.CAPACITY_SHOWN, gpunode.DISCOVERED, gpunode.CONFIG_APPLIED,
    gpunode.DEVICES_READY, gpunode.REGISTERED, gpunode.MPS_READY,
)  # fmt: skip


def section(page: str, heading: str) -> str:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.split(r"^#+ ", text.partition(f"# {heading}\n")[2], flags=re.MULTILINE)[0]


def rows(text: str) -> list[list[str]]:
    """The cells of a table, without its head."""
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings}


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    """To a file, and to a heading in it."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not heading or heading in anchors(target), link


def test_every_page_is_listed() -> None:
    """Whoever reads the README finds all of them."""
    readme = PAGES[0].read_text(encoding="utf-8")

    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"{page.name})" not in readme] == []


def test_conditions_are_told() -> None:
    """Each that a policy or a GPUNode may have, and the reasons of a node's exist."""
    text = section("policy.md", "What it says")
    assert [name for name in POLICY_CONDITIONS if f"`{name}`" not in text] == []

    table = rows(section("sharing.md", "Conditions of a GPUNode"))
    assert {row[0].strip("`") for row in table} == set(NODE_CONDITIONS)
    assert_written({reason for row in table for reason in re.findall(r"`([A-Z]\w+)`", row[3])})


def test_events_are_told() -> None:
    """Those that the page names exist, and what the controller says of a policy or a node is on the page."""
    told = set(re.findall(r"`([A-Z]\w+)`", section("sharing.md", "Events")))
    source = (SOURCES / "plan" / "events.py").read_text(encoding="utf-8")

    assert_written(told)
    assert set(re.findall(r'(?:_Said\(|reason, kind(?:, text)? = )"(\w+)"', source)) <= told


def assert_written(names: set[str]) -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py"))
    assert names
    assert [name for name in names if f'"{name}"' not in code] == []

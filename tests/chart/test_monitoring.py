"""Alert rules and dashboard: they can be read, and ask for figures that there are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml

from support import helm

MONITORING = helm.CHART / "monitoring"
PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
SCRAPED = {"instance", "job", "namespace", "node", "pod"}
"""Labels that come with scraping; `node` by the relabeling of the ServiceMonitor of the agents."""
ROW = re.compile(r"^\| `(?P<name>\w+)` \| (?P<kind>\w+) \| (?P<labels>[^|]*) \|", re.MULTILINE)

RULES = [
    rule for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"] for rule in group["rules"]
]
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
QUERIES = [
    *(pytest.param(rule["expr"], id=rule["alert"]) for rule in RULES),
    *(
        pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")
        for panel in DASHBOARD["panels"]
        for target in panel["targets"]
    ),
]


def metrics() -> Mapping[str, set[str]]:
    """Every series and its labels, from the page that another test holds against the processes."""
    found: dict[str, set[str]] = {}
    for row in ROW.finditer(PAGE.read_text()):
        labels = set(re.findall(r"`(\w+)`", row["labels"]))
        found[row["name"]] = labels
        if row["kind"] == "histogram":
            found |= {
                f"{row['name']}_bucket": labels | {"le"},
                f"{row['name']}_sum": labels,
                f"{row['name']}_count": labels,
            }
    return found


def parsed(query: str) -> promql.Expr:
    # What Grafana puts in before it asks.
    return promql.parse(query.replace("$__rate_interval", "5m"))


def selectors(expression: Any) -> Iterator[promql.VectorSelector]:
    """All selectors of a query, wherever they stand in it."""
    if isinstance(expression, promql.VectorSelector):
        yield expression
    elif isinstance(expression, promql.MatrixSelector):
        yield expression.vector_selector
    else:
        for name in ("lhs", "rhs", "expr", "param", "args"):
            part = getattr(expression, name, None)
            for each in part if isinstance(part, list) else [part]:
                if each is not None:
                    yield from selectors(each)


@pytest.mark.parametrize("query", QUERIES)
def test_queries(query: str) -> None:
    """Each is PromQL, and speaks of metrics that some process tells, by labels that they have."""
    known = metrics()
    found = list(selectors(parsed(query)))

    assert found
    for selector in found:
        assert selector.name in known
        matched = {matcher.name for matcher in selector.matchers.matchers}
        assert matched <= known[selector.name] | SCRAPED


def test_metrics_are_found() -> None:
    """The table is read as it is meant."""
    found = metrics()

    assert found["gpushare_shares"] == {"health", "resource", "strategy"}
    assert "le" in found["gpushare_grpc_request_duration_seconds_bucket"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_rules(rule: dict[str, Any]) -> None:
    """Each waits a while, says how bad it is, what is wrong and what to look at, by labels that its series have."""
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"GPUSharing\w+", rule["alert"])
    assert re.fullmatch(r"[1-9]\d*[mh]", rule["for"])
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert set(rule["annotations"]) == {"summary", "description"}
    texts = " ".join(rule["annotations"].values())
    labels = set().union(*(metrics()[selector.name] for selector in selectors(parsed(rule["expr"]))))
    assert set(re.findall(r"\$labels\.(\w+)", texts)) <= labels | SCRAPED
    assert re.findall(r"{{(.*?)}}", texts) == re.findall(r"{{( \$labels\.\w+ )}}", texts)


def test_page() -> None:
    """The page tells of every alert, and when it comes."""
    words = {"m": "min", "h": "h"}
    rows = {rule["alert"]: f"| `{rule['alert']}` | {rule['for'][:-1]} {words[rule['for'][-1]]} |" for rule in RULES}

    assert [row for row in rows.values() if row not in PAGE.read_text()] == []
    assert re.findall(r"^\| `(GPUSharing\w+)`", PAGE.read_text(), re.MULTILINE) == list(rows)


def test_panels() -> None:
    """Panels have numbers of their own, lie side by side, and all ask the data source that is chosen at the top."""
    panels = DASHBOARD["panels"]

    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in panels
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert {target["datasource"]["uid"] for panel in panels for target in panel["targets"]} == {"${datasource}"}
    assert [each["name"] for each in DASHBOARD["templating"]["list"]] == ["datasource"]


def test_in_the_chart() -> None:
    """The chart carries both as they are, under the labels by which they are found."""
    values = ("alerts.enabled=true", "alerts.labels.release=prometheus", "dashboard.enabled=true")
    found = {item["kind"]: item for item in helm.render(*(part for value in values for part in ("--set", value)))}

    assert [rule for group in found["PrometheusRule"]["spec"]["groups"] for rule in group["rules"]] == RULES
    assert found["PrometheusRule"]["metadata"]["labels"]["release"] == "prometheus"
    [dashboard] = [
        item
        for item in helm.render("--set", "dashboard.enabled=true")
        if item["metadata"]["name"] == "gpu-sharing-operator-dashboard"
    ]
    assert json.loads(dashboard["data"]["gpu-sharing.json"]) == DASHBOARD
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"

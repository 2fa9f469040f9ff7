"""Figures as Prometheus reads them."""

from __future__ import annotations

from gpushare.serving.metrics import Gauge, Metrics


def test_render() -> None:
    """Gauges of one name stand together, each with its labels, as they are when asked."""
    figures = [
        Gauge(name="gpushare_shares", help="shares", value=4, labels={"resource": "nvidia.com/gpu", "health": "ok"}),
        Gauge(name="gpushare_up", help="up", value=1),
        Gauge(name="gpushare_shares", help="shares", value=2, labels={"resource": "nvidia.com/gpu", "health": 'a"b'}),
    ]
    metrics = Metrics(lambda: figures)

    assert metrics.render().decode().splitlines() == [
        "# HELP gpushare_shares shares",
        "# TYPE gpushare_shares gauge",
        'gpushare_shares{health="ok",resource="nvidia.com/gpu"} 4.0',
        'gpushare_shares{health="a\\"b",resource="nvidia.com/gpu"} 2.0',
        "# HELP gpushare_up up",
        "# TYPE gpushare_up gauge",
        "gpushare_up 1.0",
    ]
    figures.clear()
    assert metrics.render() == b""

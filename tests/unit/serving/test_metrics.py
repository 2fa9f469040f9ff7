"""Figures as Prometheus reads them."""

from __future__ import annotations

from gpushare.serving.metrics import Counter, Gauge, Histogram, Metrics


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


def test_counters_and_histograms() -> None:
    """Classes are told as Prometheus wants them: each with all that are smaller."""
    figures = [
        Counter(name="gpushare_reloads_total", help="reloads", value=3, labels={"result": "applied"}),
        Histogram(name="gpushare_calls_seconds", help="calls", bounds=(0.001, 0.5), counts=(4, 2, 1), sum=2.5),
    ]

    assert Metrics(lambda: figures).render().decode().splitlines() == [
        "# HELP gpushare_reloads_total reloads",
        "# TYPE gpushare_reloads_total counter",
        'gpushare_reloads_total{result="applied"} 3.0',
        "# HELP gpushare_calls_seconds calls",
        "# TYPE gpushare_calls_seconds histogram",
        'gpushare_calls_seconds_bucket{le="0.001"} 4.0',
        'gpushare_calls_seconds_bucket{le="0.5"} 6.0',
        'gpushare_calls_seconds_bucket{le="+Inf"} 7.0',
        "gpushare_calls_seconds_count 7.0",
        "gpushare_calls_seconds_sum 2.5",
    ]

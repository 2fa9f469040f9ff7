"""Probes of our own programs: what a kubelet asks over HTTP or TCP, how often, and what it makes of the answers.

Started by the container's runner. Programs in this process cannot be asked by `exec` or gRPC: such a probe always succeeds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

PROBES = {"startup": "startupProbe", "readiness": "readinessProbe", "liveness": "livenessProbe"}


class Prober:
    """One probe of one container."""

    def __init__(self, kind: str, probe: Mapping[str, Any], container: Mapping[str, Any], pod_ip: str) -> None:
        self.kind = kind
        """`startup`, `readiness` or `liveness`."""
        self._probe = probe
        self._container = container
        self._pod_ip = pod_ip

    async def run(
        self, first_pause: float, on_result: Callable[[bool], None], on_failure: Callable[[str], None]
    ) -> None:
        """Asks until cancelled; a startup probe only until it has succeeded.

        Calls `on_result` when the thresholds have been passed in either direction, and `on_failure` with the text of each
        failed try once the probe has ever succeeded, or would have for a real kubelet.
        """
        probe = self._probe
        period = float(probe.get("periodSeconds") or 10)
        pause = min(first_pause, period)
        good = bad = 0
        ever = False
        await asyncio.sleep(float(probe.get("initialDelaySeconds") or 0))
        while True:
            problem = await self._ask()
            good, bad = (0, bad + 1) if problem else (good + 1, 0)
            if problem and pause >= period:
                on_failure(f"{self.kind.capitalize()} probe failed: {problem}")
            if good >= int(probe.get("successThreshold") or 1):
                ever = True
                on_result(True)
                if self.kind == "startup":
                    return
            # Tries that a real kubelet would not have made yet do not count against the program.
            elif bad >= int(probe.get("failureThreshold") or 3) and pause >= period:
                on_result(False)
            pause = period if ever else min(pause * 2, period)
            await asyncio.sleep(pause)

    async def _ask(self) -> str:
        """Empty when all is well, else what is wrong, in the kubelet's words."""
        seconds = float(self._probe.get("timeoutSeconds") or 1)
        try:
            async with asyncio.timeout(seconds):
                if http := self._probe.get("httpGet"):
                    return await self._get(http)
                if tcp := self._probe.get("tcpSocket"):
                    _, writer = await asyncio.open_connection(tcp.get("host") or self._pod_ip, self._port(tcp["port"]))
                    writer.close()
        except TimeoutError:
            return "context deadline exceeded"
        except OSError as error:
            return self._refused(error)
        except ValueError as error:
            return str(error)  # no port of that name, or no HTTP
        return ""

    async def _get(self, http: Mapping[str, Any]) -> str:
        host, port = http.get("host") or self._pod_ip, self._port(http["port"])
        reader, writer = await asyncio.open_connection(host, port)
        try:
            path = http.get("path") or "/"
            agent = "User-Agent: kube-probe/1.36\r\nAccept: */*\r\nConnection: close\r\n"
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{agent}\r\n".encode())
            status = (await reader.readline()).split(b" ")
        finally:
            writer.close()
        code = int(status[1]) if len(status) > 1 and status[1].isdigit() else 0
        return "" if 200 <= code < 400 else f"HTTP probe failed with statuscode: {code}"

    def _port(self, port: int | str) -> int:
        if isinstance(port, int):
            return port
        named = {one.get("name"): one["containerPort"] for one in self._container.get("ports") or ()}
        return int(named.get(port, port))

    def _refused(self, error: OSError) -> str:
        target = self._probe.get("httpGet") or self._probe["tcpSocket"]
        address = f"{target.get('host') or self._pod_ip}:{target['port']}"
        what = (error.strerror or str(error)).lower()
        dial = f"dial tcp {address}: connect: {what}"
        return f'Get "http://{address}{target.get("path") or "/"}": {dial}' if "httpGet" in self._probe else dial

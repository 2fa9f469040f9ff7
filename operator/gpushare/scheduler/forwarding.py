"""Hands calls of kube-scheduler on to the replica that leads: only it knows what it has just decided. Used by `extender`."""

from __future__ import annotations

import ssl
from collections.abc import Callable

import h11

from gpushare.kube.http import Address
from gpushare.kube.pool import Pool
from gpushare.serving.http import JSON, Request, Response

FORWARDED = "x-gpushare-forwarded"
"""Header of a call that another replica has handed on; it is never handed on again."""
_MOST = 64


class Unreachable(Exception):  # noqa: N818 - the state is the name, as in `errors`
    """The leader does not answer; says why."""


class Forwarder:
    """Connections to the leader, kept between calls."""

    def __init__(self, server_name: str, trusted: Callable[[], str]) -> None:
        """`server_name`: stands in the certificate of every replica; `trusted`: PEM of who has signed it, at the moment."""
        self._server_name = server_name
        self._trusted = trusted
        self._pool: Pool | None = None
        self._known = ("", "")
        """The leader's address, and what its certificate was verified by."""

    async def forward(self, request: Request, leader: str) -> Response:
        """The leader's answer.

        Raises:
            Unreachable: there is none.
        """
        headers = [("Host", leader), ("Content-Type", JSON), (FORWARDED, "true")]
        try:
            pool = await self._connect(leader)
            async with pool.lend() as connection:
                code = await connection.request(request.method, request.path, headers, request.body)
                return Response(status=code, body=await connection.body(), content_type=JSON)
        except (OSError, ValueError, h11.RemoteProtocolError) as error:
            reason = str(error) or type(error).__name__
            raise Unreachable(
                f"the replica of gpushare scheduler that decides, {leader}, does not answer; it is tried again, and "
                f"another one takes over within seconds ({reason})"
            ) from error

    async def close(self) -> None:
        """Ends all connections."""
        if self._pool is not None:
            await self._pool.close()

    async def _connect(self, leader: str) -> Pool:
        known = (leader, self._trusted())
        if self._pool is None or self._known != known:
            context = ssl.create_default_context(cadata=known[1] or None)
            address = Address.parse(f"https://{leader}", context, self._server_name)
            before, self._pool, self._known = self._pool, Pool(address, most=_MOST), known
            if before is not None:
                await before.close()
        return self._pool

"""The API under test."""

import pytest

from support.embedded_api import EmbeddedApi


@pytest.fixture
def api() -> EmbeddedApi:
    return EmbeddedApi()

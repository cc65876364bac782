# SPDX-License-Identifier: PostgreSQL
"""Fixtures of the tests of authentication."""
import pytest

import auth_house as house


@pytest.fixture
def pools(request):
    """Starts pgpools, as house.start_auth_pool does with the settings that the test file names in POOL_CONF, and stops them."""
    started = []
    conf = getattr(request.module, "POOL_CONF", {})

    def start(*args, **kwargs):
        started.append(house.start_auth_pool(*args, **{**conf, **kwargs}))
        return started[-1]

    yield start
    for pool in started:
        pool.stop()

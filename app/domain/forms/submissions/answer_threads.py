"""Checks answers and reads messages without holding up the event loop."""

from collections.abc import Callable
from typing import Any, TypeVar

from app.domain.forms.definition.api import FormDefinition, patterns
from app.jobs.threads import TenantThreads
from app.services import Services

T = TypeVar("T")


async def run(
    services: Services,
    tenant_id: str,
    form: FormDefinition,
    function: Callable[..., T],
    *args: Any,
    **more: Any,
) -> T:
    """Calls a pure function; in a thread when the form is so large that it may take long. Its
    patterns share a budget of time.
    """
    if not form.is_large:
        return function(*args, **more)
    with patterns.share_budget():
        return await services.get(TenantThreads).run(tenant_id, function, *args, **more)

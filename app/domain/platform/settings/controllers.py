from litestar import Controller, get

from app.http.dependencies import Context

from . import service
from .schemas import SettingViews


class SettingsController(Controller):
    path = "/api/v1/settings"
    tags = ["Settings"]

    @get(summary="List settings", needs="settings:read")
    async def list_settings(self, context: Context) -> SettingViews:
        """What configures this instance and the tenant, each with its source: an environment
        variable, the database or a default. super_admin sees all, others what concerns their
        tenant. Secrets are not shown.
        """
        return await service.list_settings(context)

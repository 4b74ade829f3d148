"""The screens without a session. A worker that sends mails would remove their links."""

from app.services import Services
from tests.browser import hostile, looks
from tests.browser.account_pages import find_mail_link, invite
from tests.browser.console.console import Console
from tests.browser.console.screens import OPEN_SCREENS
from tests.browser.console.test_screens import wait_for
from tests.database import run_sql
from tests.failing_cases import FailingCases
from tests.world import World


async def test_every_screen_without_a_session_is_accessible(
    console: Console, services: Services, world: World, subtests: FailingCases
) -> None:
    tokens = await issue_tokens(services, world)
    for screen in OPEN_SCREENS:
        token = tokens.get(screen.path)
        with subtests.test(screen.name):
            await console.open(f"{screen.path}?token={token}" if token else screen.path)
            await wait_for(console.page, screen.shows)
            name = f"console-{screen.name}"
            assert await looks.find_problems(console.page, name, 1280, 360) == []
            assert await hostile.find_harm(console.page, []) == []


async def issue_tokens(services: Services, world: World) -> dict[str, str]:
    """Those of the mails to somebody who was invited, and to one whose address is not verified."""
    admin, user = await world.user("tenant_admin"), await world.user(is_verified=False)
    names = (hostile.HTML[:100], admin.tenant_id)
    await run_sql(services, "UPDATE tenants SET name = $1 WHERE id = $2 RETURNING id", *names)
    email = f"invited.{admin.user_id[-8:]}@example.com"
    await invite(admin, email)
    await user.post("/auth/verify-email/resend")
    links = [await find_mail_link(services, email), await find_mail_link(services, user.email)]
    await world.anonymous().post("/auth/forgot-password", {"email": admin.email})
    links.append(await find_mail_link(services, admin.email))
    return {path: token for path, _, token in (link.partition("?token=") for link in links)}

"""One's own account in the console: profile, picture, password, sessions and two-factor sign-in."""

import re
from pathlib import Path

import pyotp
from playwright.async_api import expect

from app.kit import clock
from app.services import Services
from tests.browser import looks
from tests.browser.console.console import Console
from tests.browser.hostile import HTML
from tests.identity.accounts.mfa_users import create_mfa_user
from tests.identity.profile.pictures import plain_picture
from tests.world import PASSWORD, Client, World

NEW_PASSWORD = "Battery9Staple"


async def test_the_profile_is_changed_and_its_language_is_the_consoles(
    console: Console, developer: Client
) -> None:
    await console.sign_in(developer)
    await console.open("/people/me", title="Your account")
    # Until a language is chosen, the console has that of the browser.
    await console.page.evaluate("localStorage.setItem('parley-language', 'de')")
    await console.page.reload()
    await expect(console.heading).to_have_text("Ihr Konto")
    await expect(console.page.get_by_role("combobox", name="Sprache")).to_have_value("de")
    await console.page.evaluate("localStorage.clear()")
    await console.page.reload()
    await console.field("First name").fill(HTML[:90])
    await console.field("Time zone").select_option("Europe/Berlin")
    await console.page.get_by_role("combobox", name="Language").select_option("de")
    await console.page.keyboard.press("Control+s")
    await expect(console.heading).to_have_text("Ihr Konto")
    await expect(console.page.get_by_role("button", name=HTML[:90])).to_be_visible()
    profile = (await developer.get("/api/v1/profile")).json()
    assert (profile["language"], profile["timezone"]) == ("de", "Europe/Berlin")
    # In another browser, the language of the profile wins.
    await console.page.evaluate("localStorage.setItem('parley-language', 'en')")
    await console.page.reload()
    await expect(console.heading).to_have_text("Ihr Konto")
    await console.button("Sprache").click()
    async with console.page.expect_response("**/api/v1/profile"):
        await console.page.get_by_role("menuitem", name="English").click()
    await expect(console.heading).to_have_text("Your account")
    profile = (await developer.get("/api/v1/profile")).json()
    assert profile["language"] == "en"
    assert await console.page.evaluate("window.hacked") is None


async def test_a_picture_is_shown_before_it_is_sent_and_is_removed(
    console: Console, developer: Client, tmp_path: Path
) -> None:
    picture = tmp_path / "me.png"
    picture.write_bytes(plain_picture("PNG", (200, 200)))
    text = tmp_path / "me.txt"
    text.write_text("not a picture")
    await console.sign_in(developer)
    await console.open("/people/me", title="Your account")
    shown = console.page.locator(".picture img")
    entry = console.page.locator("input[type=file]")
    await entry.set_input_files(text)
    await expect(console.page.get_by_role("alert")).to_contain_text("PNG, JPEG or WebP")
    await entry.set_input_files(picture)
    await expect(shown).to_have_attribute("src", re.compile("^blob:"))
    assert (await developer.get("/api/v1/profile")).json()["avatar_url"] is None
    await console.button("Use this picture").click()
    await expect(shown).to_have_attribute("src", re.compile("/api/v1/avatars/"))
    await expect(console.page.locator(".account img")).to_have_js_property("naturalWidth", 200)
    await console.button("Remove").click()
    await expect(shown).to_have_count(0)
    assert (await developer.get("/api/v1/profile")).json()["avatar_url"] is None


async def test_the_password_is_changed_and_other_sessions_end(
    console: Console, developer: Client, anonymous: Client
) -> None:
    body = {"email": developer.email, "password": PASSWORD}
    login = (await anonymous.post("/auth/login", body)).json()
    await console.sign_in(developer)
    await console.open("/people/me?tab=security", title="Your account")
    await console.field("Current password").fill("Wrong7Horse")
    await console.field("New password").fill(NEW_PASSWORD)
    await console.button("Change the password").click()
    wrong = console.field("Current password")
    await expect(wrong).to_have_attribute("aria-invalid", "true")
    await wrong.fill(PASSWORD)
    await console.button("Change the password").click()
    await expect(console.page.get_by_text("The password is changed, and")).to_be_visible()
    await expect(wrong).to_have_value("")
    headers = {"authorization": f"Bearer {login['access_token']}"}
    assert (await anonymous.get("/auth/me", headers=headers)).status_code == 401
    body["password"] = NEW_PASSWORD
    assert (await anonymous.post("/auth/login", body)).status_code == 200


async def test_a_session_is_ended_from_the_list(
    console: Console, developer: Client, anonymous: Client
) -> None:
    body = {"email": developer.email, "password": PASSWORD}
    headers = {
        "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
    }
    login = (await anonymous.post("/auth/login", body, headers=headers)).json()
    await console.sign_in(developer)
    await console.open("/people/me?tab=sessions", title="Your account")
    await expect(console.page.get_by_role("row")).to_have_count(3)
    assert await console.find_problems_in_long_runs("console-account-sessions") == []
    await console.widen()
    await console.button("End the session: Firefox on Linux").click()
    await expect(console.page.get_by_role("row")).to_have_count(2)
    token = {"authorization": f"Bearer {login['access_token']}"}
    assert (await anonymous.get("/auth/me", headers=token)).status_code == 401
    await console.page.get_by_role("row").get_by_role("button", name="Sign out").click()
    await expect(console.heading).to_have_text("Sign in")


async def test_two_factor_sign_in_is_set_up_changed_and_turned_off(
    console: Console, developer: Client, services: Services, world: World
) -> None:
    await console.sign_in(developer)
    await console.open("/people/me?tab=security", title="Your account")
    await console.button("Set up").click()
    dialog = console.dialog("Two-factor sign-in")
    code = dialog.get_by_role("img", name="QR code")
    await expect(code).to_have_attribute("src", re.compile("^data:image/png"))
    assert await code.evaluate("image => image.naturalWidth") > 100
    assert await looks.find_problems(console.page, "console-account-mfa", 1280, 360) == []
    await console.widen()
    totp = pyotp.TOTP(await dialog.locator("code").inner_text())
    now = int(clock.epoch())
    await console.field("Code of the app").fill("abc")
    await console.button("Confirm").click()
    await expect(console.field("Code of the app")).to_have_attribute("aria-invalid", "true")
    await console.field("Code of the app").fill(totp.at(now))
    await dialog.get_by_label("Name of the device").fill(HTML[:90])
    await console.button("Confirm").click()
    listed = console.dialog("Keep your recovery codes").get_by_role("listitem")
    await expect(listed).to_have_count(10)
    codes = await listed.all_inner_texts()
    assert await console.find_problems_in_long_runs("console-account-codes") == []
    await console.widen()
    # A stray Escape loses nothing.
    await console.page.keyboard.press("Escape")
    async with console.page.expect_download() as downloading:
        await console.page.get_by_role("link", name="Download").click()
    path = await (await downloading.value).path()
    assert path.read_text().split() == codes
    await console.button("I have kept them").click()
    devices = console.page.get_by_role("list", name="Devices").get_by_role("listitem")
    await expect(devices).to_have_count(1)
    await expect(devices).to_contain_text("<script>")
    assert (await developer.get("/api/v1/mfa/status")).json()["enabled"]
    await turn_mfa_off(console, codes[0])
    assert not (await developer.get("/api/v1/mfa/status")).json()["enabled"]


async def turn_mfa_off(console: Console, code: str) -> None:
    await console.button("Turn off").click()
    await console.field("Code").fill("000000")
    off = console.dialog("Turn off two-factor")
    await off.get_by_role("button", name="Turn off").click()
    await expect(console.field("Code")).to_have_attribute("aria-invalid", "true")
    await console.field("Code").fill(code)
    await off.get_by_role("button", name="Turn off").click()
    await expect(console.button("Set up")).to_be_visible()


async def test_a_code_is_asked_for_before_two_factor_sign_in_is_weakened(
    console: Console, developer: Client, anonymous: Client
) -> None:
    body = {"email": developer.email, "password": PASSWORD}
    login = (await anonymous.post("/auth/login", body)).json()
    user = await create_mfa_user(developer)
    # Another session, which has not shown a code.
    developer.refresh_token = login["refresh_token"]
    await console.sign_in(developer)
    await console.open("/people/me?tab=security", title="Your account")
    await console.button("New recovery codes").click()
    dialog = console.dialog("Enter a code")
    await console.field("Code").fill(user.wrong_code())
    await console.button("Continue").click()
    await expect(dialog).to_contain_text("is wrong or was used before")
    await console.field("Code").fill(pyotp.TOTP(user.seed).now())
    await console.button("Continue").click()
    await expect(console.dialog("Keep your recovery codes")).to_be_visible()
    await console.button("I have kept them").click()
    # The session has shown a code now, and is not asked again.
    await console.button("Remove Authenticator").click()
    await expect(console.dialog("Remove Authenticator?")).to_contain_text("your only device")
    await console.button("Remove").click()
    await expect(console.button("Set up")).to_be_visible()
    assert not (await developer.get("/api/v1/mfa/status")).json()["enabled"]

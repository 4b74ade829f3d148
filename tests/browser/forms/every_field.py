"""A form with every type of field, and how visitors answer it on the page and in the chat."""

from typing import Any

from playwright.async_api import expect

from app.domain.forms.definition.fields.registry import FIELD_TYPES
from tests.browser.forms.chat_page import Chat
from tests.browser.forms.form_page import FormPage
from tests.browser.screenshots import take
from tests.forms.contents import PDF

OPTIONS = [
    {"value": "sales", "label": "Sales"},
    {"value": "help", "label": "Help with a product"},
    {"value": "press", "label": "Press"},
]
INTERESTS = [{"value": f"i{number}", "label": f"Interest {number}"} for number in range(1, 12)]

FIELDS: list[dict[str, Any]] = [
    {"id": "start", "type": "page_break", "label": "About you", "help_text": "It takes a minute."},
    {
        "id": "name",
        "type": "text",
        "label": "Your name",
        "placeholder": "Ada Lovelace",
        "required": True,
    },
    {
        "id": "email",
        "type": "email",
        "label": "E-mail address",
        "help_text": "We reply to this address.",
        "required": True,
    },
    {"id": "phone", "type": "phone", "label": "Phone number"},
    {"id": "site", "type": "url", "label": "Web site"},
    {
        "id": "message",
        "type": "textarea",
        "label": "Message",
        "validation": {"min_length": 5, "max_length": 40},
    },
    {"id": "visit", "type": "section", "label": "Your visit", "help_text": "Tell us about it."},
    {"id": "note", "type": "paragraph", "label": "We are open on weekdays.\nPlease come on time."},
    {
        "id": "guests",
        "type": "number",
        "label": "Guests",
        "validation": {"min": 1, "max": 9, "step": 1},
    },
    {"id": "topic", "type": "select", "label": "Topic", "options": OPTIONS},
    {
        "id": "interests",
        "type": "multi_select",
        "label": "Interests",
        "options": INTERESTS,
        "validation": {"min_selections": 2, "max_selections": 3},
    },
    {"id": "how", "type": "radio", "label": "How did you find us?", "options": OPTIONS},
    {"id": "news", "type": "checkbox_group", "label": "News about", "options": OPTIONS},
    {"id": "day", "type": "date", "label": "Day", "validation": {"min_date": "2026-01-01"}},
    {"id": "time", "type": "datetime", "label": "Arrival"},
    {
        "id": "document",
        "type": "file",
        "label": "Document",
        "validation": {"allowed_types": ["pdf", "txt"], "max_size_mb": 1},
    },
    {"id": "stars", "type": "rating", "label": "How do you like us?"},
    {
        "id": "level",
        "type": "slider",
        "label": "How sure are you?",
        "validation": {"min": 0, "max": 10, "step": 0.5},
    },
    {"id": "signature", "type": "signature", "label": "Signature", "required": True},
    {"id": "campaign", "type": "hidden", "label": "Campaign"},
    {"id": "terms", "type": "checkbox", "label": "I agree to the terms", "required": True},
]
_TYPES = {name for name, kind in FIELD_TYPES.items() if kind.has_value and kind.is_asked}
# The fields that a visitor answers.
ASKED = [field for field in FIELDS if field["type"] in _TYPES]

# What `fill_in` answers, besides a file and a signature.
ANSWERS = {
    "name": "Ada Lovelace",
    "email": "ada@example.com",
    "phone": "+44 20 7946 0958",
    "site": "https://example.com/ada",
    "message": "Two lines:\nthis and that",
    "guests": 3,
    "topic": "help",
    "interests": ["i2", "i11"],
    "how": "press",
    "news": ["sales", "press"],
    "day": "2026-03-04",
    # 10:30 in Paris.
    "time": "2026-03-04T09:30:00Z",
    "stars": 4,
    "level": 7.5,
    "campaign": "spring",
    "terms": True,
}

# What `reply` answers, besides a file and a signature.
REPLIES = {
    "name": "Ada",
    "email": "ada@example.com",
    "phone": "+44 20 7946 0958",
    "message": "Nice and long",
    "guests": 3,
    "topic": "help",
    "interests": ["i2", "i4"],
    "how": "press",
    "news": ["sales"],
    "day": "2026-03-04",
    "time": "2026-03-04T10:30:00Z",
    "stars": 4,
    "level": 7.5,
    "campaign": "spring",
    "terms": True,
}


async def fill_in(form_page: FormPage) -> None:
    """Answers every field as `ANSWERS` has it, and adds a file and a signature."""
    page = form_page.page
    await form_page.field("Your name").fill("Ada Lovelace")
    await form_page.field("E-mail address").fill("ada@example.com")
    await form_page.field("Phone number").fill("+44 20 7946 0958")
    # The scheme is added.
    await form_page.field("Web site").fill("example.com/ada")
    await form_page.field("Message").fill("Two lines:\nthis and that")
    await form_page.field("Guests").fill("3")
    await form_page.field("Topic").select_option("Help with a product")
    await page.locator(".picker > summary").click()
    await form_page.choice("Interest 2").click()
    await page.get_by_label("Search the options").fill("11")
    await expect(form_page.choice("Interest 3")).to_be_hidden()
    await form_page.choice("Interest 11").click()
    await page.locator("[role=radiogroup]").get_by_label("Press").check()
    news = page.get_by_role("group", name="News about")
    await news.get_by_label("Press").check()
    await news.get_by_label("Sales").check()
    await form_page.field("Day").fill("2026-03-04")
    await form_page.field("Arrival").fill("2026-03-04T10:30")
    file = {"name": "plan.pdf", "mimeType": "application/pdf", "buffer": PDF}
    await form_page.field("Document").set_input_files(file)  # type: ignore[arg-type]
    await page.get_by_label("4 of 5").check()
    await form_page.field("How sure are you?").fill("7.5")
    await form_page.draw([(40, 60), (120, 30), (200, 90)])
    await form_page.field("I agree to the terms").check()


async def reply(chat: Chat) -> None:
    """Answers every question as `REPLIES` has it, and adds a file and a signature."""
    await _answer_texts(chat)
    await _answer_choices(chat)
    await _answer_others(chat)
    await chat.expect_question("I agree to the terms")
    await chat.press("Yes")


async def _answer_texts(chat: Chat) -> None:
    for label, text in (
        ("Your name", "Ada"),
        ("E-mail address", "it is ada@example.com"),
        ("Phone number", "+44 20 7946 0958"),
    ):
        await chat.expect_question(label)
        await chat.say(text)
    await chat.expect_question("Web site")
    await chat.press("Skip")
    await chat.expect_question("Message")
    await chat.say("Nice and long")
    await chat.expect_question("Guests")
    await chat.say("3")


async def _answer_choices(chat: Chat) -> None:
    await chat.expect_question("Topic")
    await take(chat.page, "chat-options")
    await chat.press("Help with a product")
    await chat.expect_question("Interests")
    await chat.page.locator(".picker > summary").click()
    for label in ("Interest 2", "Interest 4"):
        await chat.page.get_by_label(label, exact=True).check()
    await chat.press("Send this answer")
    await chat.expect_question("How did you find us?")
    await chat.press("Press")
    await chat.expect_question("News about")
    await chat.page.get_by_label("Sales").check()
    await chat.press("Send this answer")


async def _answer_others(chat: Chat) -> None:
    page = chat.page
    await chat.expect_question("Day")
    await page.locator("input[type=date]").fill("2026-03-04")
    await chat.press("Send this answer")
    await chat.expect_question("Arrival")
    await page.locator("input[type=datetime-local]").fill("2026-03-04T10:30")
    await chat.press("Send this answer")
    await chat.expect_question("Document")
    file: Any = {"name": "plan.pdf", "mimeType": "application/pdf", "buffer": PDF}
    await page.locator("input[type=file]").set_input_files(file)
    await expect(page.get_by_role("button", name="Remove plan.pdf")).to_be_visible()
    await chat.press("Send this answer")
    await expect(page.locator(".bubble.user").last).to_have_text("plan.pdf")
    await chat.expect_question("How do you like us?")
    await chat.press("4")
    await chat.expect_question("How sure are you?")
    await page.locator("input[type=range]").fill("7.5")
    await chat.press("Send this answer")
    await chat.expect_question("Signature")
    await page.get_by_label("Type your name to sign").fill("Ada")
    await take(page, "chat-signature")
    await chat.press("Send this answer")

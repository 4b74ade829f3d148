"""The fictional shop of the demo: its agent, its documents and its form."""

from pathlib import Path
from typing import Final

from app.domain.agents.definition.schemas import CreateAgent
from app.domain.forms.definition.api import Conditional, Field, Option
from app.domain.forms.definition.schemas import Branding, CreateForm, FormSettings

NAME: Final = "Fernhill Pottery"
DOCUMENTS: Final = Path(__file__).with_name("documents")
COLOR: Final = "#9a4a2b"
GREETING: Final = "Hello! Ask me about our pieces, delivery, returns or opening hours."
# Questions that also the small local model answers well.
SUGGESTIONS: Final = (
    "When are you open?",
    "How much is shipping?",
    "What is your return policy?",
)

AGENT: Final = CreateAgent(
    name="Fernhill Pottery assistant",
    description="The assistant of the demo shop at /demo",
    primary_model="local/smollm2",
    # Short, for a small model, which also tends to repeat itself after a sentence or two.
    system_prompt=(
        f"You are the friendly assistant of the shop {NAME}. Answer in one short sentence."
    ),
    max_tokens=40,
    temperature=0.0,
    status="published",
)

_TOPICS = (
    ("order", "An order that I made"),
    ("return", "A return"),
    ("custom", "A piece made for me"),
    ("other", "Something else"),
)
FORM: Final = CreateForm(
    name="Your message to the shop",
    fields=[
        Field(id="name", type="text", label="Your name", required=True),
        Field(id="email", type="email", label="Your e-mail address", required=True),
        Field(
            id="topic",
            type="select",
            label="What is it about?",
            required=True,
            options=[Option(value=value, label=label) for value, label in _TOPICS],
        ),
        Field(
            id="order_number",
            type="text",
            label="Order number",
            conditional=Conditional(field="topic", operator="in", value=["order", "return"]),
        ),
        Field(id="message", type="textarea", label="Your message", required=True),
    ],
    settings=FormSettings(
        submit_button_text="Send the message",
        success_message="Thank you! We will write back within one working day.",
    ),
    branding=Branding(primary_color=COLOR),
)

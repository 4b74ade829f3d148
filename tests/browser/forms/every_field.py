"""A form with every type of field."""

from typing import Any

OPTIONS = [
    {"value": "sales", "label": "Sales"},
    {"value": "help", "label": "Help with a product"},
    {"value": "press", "label": "Press"},
]
INTERESTS = [{"value": f"i{number}", "label": f"Interest {number}"} for number in range(1, 12)]

FIELDS: list[dict[str, Any]] = [
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

"""What a tool is for. Its slug is what a tool names."""

from typing import Final, Literal

import msgspec

Category = Literal[
    "crm",
    "email",
    "database",
    "analytics",
    "automation",
    "payment",
    "storage",
    "social",
    "development",
    "webhook",
    "custom",
]


class About(msgspec.Struct, frozen=True):
    slug: Category
    name: str
    description: str
    icon: str


CATEGORIES: Final = (
    About("crm", "CRM", "Customers, contacts and deals", "users"),
    About("email", "E-mail", "Sending and reading mail", "mail"),
    About("database", "Databases", "Asking and changing databases", "database"),
    About("analytics", "Analytics", "Figures, reports and tracking", "bar-chart"),
    About("automation", "Automation", "Moving work between systems", "zap"),
    About("payment", "Payments", "Invoices, charges and refunds", "credit-card"),
    About("storage", "Storage", "Files and documents", "hard-drive"),
    About("social", "Social media", "Posting and listening", "share"),
    About("development", "Development", "Code, issues and builds", "code"),
    About("webhook", "Webhooks", "Calling out to other systems", "link"),
    About("custom", "Custom", "Everything else", "puzzle"),
)

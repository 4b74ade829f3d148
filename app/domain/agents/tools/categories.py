"""The categories of tools. A tool stores the slug of its category."""

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


class CategoryInfo(msgspec.Struct, frozen=True):
    slug: Category
    name: str
    description: str
    icon: str


CATEGORIES: Final = (
    CategoryInfo("crm", "CRM", "Customers, contacts and deals", "users"),
    CategoryInfo("email", "E-mail", "Sending and reading mail", "mail"),
    CategoryInfo("database", "Databases", "Querying and changing databases", "database"),
    CategoryInfo("analytics", "Analytics", "Figures, reports and tracking", "bar-chart"),
    CategoryInfo("automation", "Automation", "Moving work between systems", "zap"),
    CategoryInfo("payment", "Payments", "Invoices, charges and refunds", "credit-card"),
    CategoryInfo("storage", "Storage", "Files and documents", "hard-drive"),
    CategoryInfo("social", "Social media", "Posting and listening", "share"),
    CategoryInfo("development", "Development", "Code, issues and builds", "code"),
    CategoryInfo("webhook", "Webhooks", "Calling out to other systems", "link"),
    CategoryInfo("custom", "Custom", "Everything else", "puzzle"),
)

"""The keys of documents in the file store: a folder per agent, and in it one per document."""

from typing import Final

DOCUMENTS_FOLDER: Final = "documents/"


def documents_folder(agent_id: str) -> str:
    return f"{DOCUMENTS_FOLDER}{agent_id}/"


def document_folder(agent_id: str, document_id: str) -> str:
    return f"{documents_folder(agent_id)}{document_id}/"

"""What other areas may call."""

from .document_values import FieldValues, Labels, LanguageCode, trim_labels
from .queries import delay_deletion, find_existing_ids, list_usable
from .retrieval_settings import DocumentFilter, RetrievalSettings
from .runtime import (
    AgentRuntime,
    AttachedToolInfo,
    EmbeddedAgent,
    KnowledgeInfo,
    SubAgentInfo,
    WebSearchInfo,
    find_by_embed_key,
    find_by_embed_key_id,
    find_runtime,
    load_draft_runtime,
    load_runtime,
)
from .schemas import Status
from .service import create, emit_updated, find, get_name, require

"""What other areas may call."""

from .catalogue import check_type, describe_unknown
from .queries import (
    CHAT_EVENTS,
    FAN_OUT,
    MAX_DEPTH,
    NOTIFIED_TYPES,
    ROUTED,
    RUN_ACTION,
    add_derived_work,
    delete,
    delete_agent_chat_events,
    delete_conversation_events,
    delete_message_events,
    delete_selected,
    emission_sql,
    find_chains,
    find_event,
    lock_derived_work,
)
from .request_spans import RequestSpans
from .service import (
    IS_SETTLED,
    MAX_SPANS,
    EmittedEvent,
    chain_of,
    emit,
    emit_dead,
    emit_test,
    encode_events,
    follow_cause,
    record,
    save_changes,
    wake,
    wake_for,
)

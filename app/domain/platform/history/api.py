from .service import call_action, note

__all__ = ["call_action", "note"]

"""Conversations that are kept: in SQLite, message by message."""

from edgespec.history.archive import History
from edgespec.history.conversation import Conversation
from edgespec.history.saved import Attachment, Saved, State, Summary

__all__ = ["Attachment", "Conversation", "History", "Saved", "State", "Summary"]

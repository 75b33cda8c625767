"""The tables of the history, and the way to them from older versions."""

from __future__ import annotations

import sqlite3
from typing import Final

VERSION: Final = 2
APPLICATION: Final = 0x65647370  # "edsp", by which `file` and we know our own files
MOST_INDEXED: Final = 50_000  # characters of a message; a pasted megabyte must not block the screen

# AUTOINCREMENT: a number is never given twice, so that a process which still holds a deleted
# conversation cannot write into another one.
_TABLES: Final = (
    """
    CREATE TABLE conversations (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL,
        named INTEGER NOT NULL,
        system TEXT NOT NULL,
        head INTEGER REFERENCES messages (id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
        created_s REAL NOT NULL,
        changed_s REAL NOT NULL
    )
    """,
    # the parent's rule is deferred: a cascade along a long conversation would be too deep
    """
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        parent INTEGER REFERENCES messages (id) DEFERRABLE INITIALLY DEFERRED,
        role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
        content TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('whole', 'writing', 'cut')),
        ids BLOB NOT NULL,
        stats TEXT NOT NULL,
        model TEXT NOT NULL,
        seed INTEGER,
        branch INTEGER NOT NULL,
        created_s REAL NOT NULL,
        CHECK (parent < id)
    )
    """,
    """
    CREATE TABLE attachments (
        message INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        name TEXT NOT NULL,
        text TEXT NOT NULL,
        tokens INTEGER,
        PRIMARY KEY (message, place)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX messages_of ON messages (conversation)",
    "CREATE INDEX messages_below ON messages (parent)",
    "CREATE INDEX messages_unfinished ON messages (id) WHERE state = 'writing'",
    "CREATE INDEX conversations_with_head ON conversations (head)",
    "CREATE INDEX conversations_by_change ON conversations (changed_s)",
)
# Trigrams find parts of words, code, and scripts that put no spaces. An answer that is being
# written is not searched, so that saving it every second stays cheap.
_INDEX: Final = (
    f"""
    CREATE VIEW searchable AS
    SELECT id, substr(content, 1, {MOST_INDEXED}) AS content FROM messages
    WHERE state <> 'writing'
    """,
    """
    CREATE VIRTUAL TABLE texts USING fts5 (
        content, content='searchable', content_rowid='id', tokenize='trigram'
    )
    """,
    f"""
    CREATE TRIGGER message_added AFTER INSERT ON messages WHEN new.state <> 'writing' BEGIN
        INSERT INTO texts (rowid, content) VALUES (new.id, substr(new.content, 1, {MOST_INDEXED}));
    END
    """,
    # one trigger, since the order of two is not defined
    f"""
    CREATE TRIGGER message_changed AFTER UPDATE OF content, state ON messages BEGIN
        INSERT INTO texts (texts, rowid, content)
        SELECT 'delete', old.id, substr(old.content, 1, {MOST_INDEXED})
        WHERE old.state <> 'writing';
        INSERT INTO texts (rowid, content)
        SELECT new.id, substr(new.content, 1, {MOST_INDEXED}) WHERE new.state <> 'writing';
    END
    """,
    f"""
    CREATE TRIGGER message_deleted AFTER DELETE ON messages WHEN old.state <> 'writing' BEGIN
        INSERT INTO texts (texts, rowid, content)
        VALUES ('delete', old.id, substr(old.content, 1, {MOST_INDEXED}));
    END
    """,
)
# Version 1 had one line of messages for each conversation, the system prompt among them.
_FROM_1: Final = (
    "DROP INDEX messages_of",
    "ALTER TABLE messages RENAME TO old_messages",
    "ALTER TABLE conversations RENAME TO old_conversations",
    *_TABLES,
    *_INDEX,
    """
    INSERT INTO conversations (id, title, named, system, created_s, changed_s)
    SELECT c.id, c.title, 1,
        coalesce((SELECT content FROM old_messages
                  WHERE conversation = c.id AND role = 'system' ORDER BY id LIMIT 1), ''),
        c.created_s,
        coalesce((SELECT max(created_s) FROM old_messages WHERE conversation = c.id), c.created_s)
    FROM old_conversations c
    """,
    """
    INSERT INTO messages
        (id, conversation, parent, role, content, state, ids, stats, model, branch, created_s)
    SELECT id, conversation, lag(id) OVER (PARTITION BY conversation ORDER BY id),
        role, content, 'whole', x'', '{}', '', 0, created_s
    FROM old_messages WHERE role IN ('user', 'assistant') ORDER BY id
    """,
    "UPDATE conversations SET head = (SELECT max(id) FROM messages WHERE conversation ="
    " conversations.id)",
    "DROP TABLE old_messages",
    "DROP TABLE old_conversations",
)
_STEPS: Final = {0: (*_TABLES, *_INDEX), 1: _FROM_1}


def bring_up_to_date(connection: sqlite3.Connection) -> None:
    """Make the tables, or make those of an older version into the present ones: all or nothing.

    Raises: sqlite3.Error.
    """
    if _version(connection) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        for statement in _STEPS.get(version, ()):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])

-- Summaries. The items that a summary replaces stay in the record, and a sandbox gets no refs to them.
ALTER TABLE items ADD COLUMN summary_item TEXT;
CREATE TABLE summaries (
  item TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  ordinal INTEGER NOT NULL,    -- the last turn that it replaces: its place in a conversation
  from_seq INTEGER NOT NULL,
  upto_seq INTEGER NOT NULL,
  items INTEGER NOT NULL
) STRICT;
CREATE INDEX summaries_by_session ON summaries (session_id);

-- Retention: the size of a session's items, and the place up to which all of them are summarised or dropped.
ALTER TABLE sessions ADD COLUMN item_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN pruned_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN settled_seq INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET item_bytes = (SELECT coalesce(sum(bytes), 0) FROM items WHERE session_id = sessions.id);

-- The first turn of a message determines its place in the conversation, even if another turn answers it.
ALTER TABLE messages ADD COLUMN first_ordinal INTEGER;
UPDATE messages SET first_ordinal = (SELECT ordinal FROM turns WHERE turns.id = messages.turn_id);

CREATE TABLE memories (
  ordinal INTEGER PRIMARY KEY NOT NULL,
  id TEXT NOT NULL UNIQUE,
  agent_id TEXT NOT NULL,
  session_id TEXT,             -- the conversation in which it was first kept
  turn_id TEXT,
  author TEXT NOT NULL,
  principal TEXT NOT NULL,     -- on whose behalf
  labels TEXT NOT NULL,
  digest TEXT NOT NULL,
  text TEXT NOT NULL,
  by_person INTEGER NOT NULL,  -- 1: a person wrote it without an agent, so it belongs to no conversation
  created_at INTEGER NOT NULL,
  UNIQUE (agent_id, digest)
) STRICT;
-- The conversations in which a note was kept. The note is removed with the last of them.
CREATE TABLE memory_sources (
  session_id TEXT NOT NULL,
  ordinal INTEGER NOT NULL REFERENCES memories (ordinal) ON DELETE CASCADE,
  PRIMARY KEY (session_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_sources_by_note ON memory_sources (ordinal);
CREATE VIRTUAL TABLE memories_text USING fts5 (text, content = 'memories', content_rowid = 'ordinal', tokenize = 'unicode61 remove_diacritics 2');
INSERT INTO memories_text (memories_text, rank) VALUES ('secure-delete', 1);

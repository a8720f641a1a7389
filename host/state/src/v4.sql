-- Summaries: what one stands in for is not named to a sandbox any more, and stays in the record.
ALTER TABLE items ADD COLUMN summary_item TEXT;
CREATE TABLE summaries (
  item TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  ordinal INTEGER NOT NULL,    -- the last turn of what it stands in for: its place in a conversation
  from_seq INTEGER NOT NULL,
  upto_seq INTEGER NOT NULL,
  items INTEGER NOT NULL
) STRICT;
CREATE INDEX summaries_by_session ON summaries (session_id);

-- Retention: what a session's items take, and up to where all of them are summarised or no more.
ALTER TABLE sessions ADD COLUMN item_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN pruned_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN settled_seq INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET item_bytes = (SELECT coalesce(sum(bytes), 0) FROM items WHERE session_id = sessions.id);

-- The first turn of a message is its place in a conversation, even if another turn answers it.
ALTER TABLE messages ADD COLUMN first_ordinal INTEGER;
UPDATE messages SET first_ordinal = (SELECT ordinal FROM turns WHERE turns.id = messages.turn_id);

CREATE TABLE memories (
  ordinal INTEGER PRIMARY KEY NOT NULL,
  id TEXT NOT NULL UNIQUE,
  agent_id TEXT NOT NULL,
  session_id TEXT,             -- the conversation in which it was kept first
  turn_id TEXT,
  author TEXT NOT NULL,
  principal TEXT NOT NULL,     -- on whose behalf
  labels TEXT NOT NULL,
  digest TEXT NOT NULL,
  text TEXT NOT NULL,
  by_person INTEGER NOT NULL,  -- somebody wrote it down by themselves: it goes with no conversation
  created_at INTEGER NOT NULL,
  UNIQUE (agent_id, digest)
) STRICT;
-- The conversations in which a note was kept; with the last of them it goes.
CREATE TABLE memory_sources (
  session_id TEXT NOT NULL,
  ordinal INTEGER NOT NULL REFERENCES memories (ordinal) ON DELETE CASCADE,
  PRIMARY KEY (session_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_sources_by_note ON memory_sources (ordinal);
CREATE VIRTUAL TABLE memories_text USING fts5 (text, content = 'memories', content_rowid = 'ordinal', tokenize = 'unicode61 remove_diacritics 2');
INSERT INTO memories_text (memories_text, rank) VALUES ('secure-delete', 1);

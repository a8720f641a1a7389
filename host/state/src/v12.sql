-- Quotas for each person and channel: the owner of a conversation (the sender of its first message), and the size of a message.
ALTER TABLE sessions ADD COLUMN person_id TEXT;
UPDATE sessions SET person_id = first.principal FROM
  (SELECT session_id, principal, min(seq) FROM messages WHERE principal GLOB 'per_*' GROUP BY session_id) AS first
  WHERE first.session_id = sessions.id;
CREATE INDEX sessions_by_person ON sessions (person_id) WHERE state <> 'removed';
CREATE INDEX sessions_by_channel ON sessions (channel) WHERE state <> 'removed';
ALTER TABLE messages ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE messages SET bytes = coalesce(
  (SELECT bytes FROM items WHERE items.session_id = messages.session_id AND items.seq = messages.seq), 0)
  WHERE status IN ('queued','processing');
CREATE INDEX messages_waiting_of ON messages (principal, bytes) WHERE status IN ('queued','processing') AND trigger = 1;
CREATE INDEX messages_waiting_on ON messages (channel, bytes) WHERE status IN ('queued','processing') AND trigger = 1;

-- User ids of removed sessions. One that is not usable may still own files in a granted directory.
CREATE TABLE uids_free (
  uid_offset INTEGER PRIMARY KEY NOT NULL,
  usable INTEGER NOT NULL
) STRICT;

-- An index of notes. Each word has its agent as a prefix, so that a search reads only the words of one agent. The host fills it at
-- its next start.
DROP TABLE memories_text;
CREATE VIRTUAL TABLE memories_text USING fts5 (words, content = '', tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'");
INSERT INTO memories_text (memories_text, rank) VALUES ('secure-delete', 1);
ALTER TABLE memories ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX memories_unindexed ON memories (ordinal) WHERE indexed = 0;
CREATE INDEX memories_by_agent ON memories (agent_id, ordinal);

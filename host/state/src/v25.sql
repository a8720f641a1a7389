-- The rules of a wiring: the messages that open a turn, their senders, and the sessions that people share.
CREATE TABLE rules (
  channel TEXT PRIMARY KEY NOT NULL REFERENCES channels (name) ON DELETE CASCADE,
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  engage TEXT NOT NULL CHECK (engage IN ('all','pattern','mention','mention_sticky')),
  pattern TEXT,
  senders TEXT NOT NULL CHECK (senders IN ('known','all')),
  unknown TEXT NOT NULL CHECK (unknown IN ('strict','request','public')),
  ignored TEXT NOT NULL CHECK (ignored IN ('accumulate','drop')),
  sharing TEXT NOT NULL CHECK (sharing IN ('thread','shared','agent'))
) STRICT, WITHOUT ROWID;
INSERT INTO rules SELECT channel, agent_id, engage, pattern, 'known', 'strict', 'accumulate', 'thread' FROM wirings;
DROP TABLE wirings;
ALTER TABLE rules RENAME TO wirings;
CREATE INDEX wirings_by_agent ON wirings (agent_id);

-- Senders who are linked to no person and wait for one.
CREATE TABLE waiting_senders (
  channel TEXT NOT NULL REFERENCES channels (name) ON DELETE CASCADE,
  sender TEXT NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY (channel, sender)
) STRICT, WITHOUT ROWID;

-- The meaning of an origin: a sender, a guest, a group, or an agent.
ALTER TABLE sessions ADD COLUMN origin_kind TEXT NOT NULL DEFAULT 'sender' CHECK (origin_kind IN ('sender','guest','group','agent'));
DROP INDEX sessions_by_origin;
CREATE UNIQUE INDEX sessions_by_origin ON sessions (agent_id, channel, platform_id, thread_id, origin_kind) WHERE state <> 'removed';

-- The address for the reply to a message of a channel. Without a thread here, the reply goes to the origin of the session.
ALTER TABLE messages ADD COLUMN group_id TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN thread_id TEXT;
-- 1: it mentions the agent and opened a turn for that.
ALTER TABLE messages ADD COLUMN mentions INTEGER NOT NULL DEFAULT 0;
CREATE INDEX messages_mentioning ON messages (session_id, group_id, thread_id) WHERE mentions = 1;

-- A delivery over a network is sent by the journal; any other is complete with its row.
ALTER TABLE deliveries ADD COLUMN over_network INTEGER NOT NULL DEFAULT 1;
ALTER TABLE deliveries ADD COLUMN group_id TEXT NOT NULL DEFAULT '';
UPDATE deliveries SET over_network = 0 WHERE channel = 'loopback';
DROP INDEX deliveries_out;
CREATE INDEX deliveries_out ON deliveries (channel, state, session_id) WHERE state IN ('intent','sending') AND over_network = 1;
DROP INDEX deliveries_unseen;
CREATE INDEX deliveries_unseen ON deliveries (session_id) WHERE over_network = 0 AND state = 'received' AND seen_at IS NULL;

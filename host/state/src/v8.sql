-- Channels other than the loopback.
CREATE TABLE channels (
  generation INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, unlike a name
  name TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (kind IN ('webhook')),
  url TEXT NOT NULL,           -- target of replies
  idempotent INTEGER NOT NULL, -- 1: it shows a delivery once, even if it receives it twice
  wrapped BLOB NOT NULL,       -- the signing secret, under the master key
  created_at INTEGER NOT NULL
) STRICT;

-- The agents that receive the messages of a channel.
CREATE TABLE wirings (
  channel TEXT PRIMARY KEY NOT NULL REFERENCES channels (name) ON DELETE CASCADE,
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX wirings_by_agent ON wirings (agent_id);

-- Signed events that became messages. A repeated event is the same message, and another event with the same id is refused.
CREATE TABLE events (
  channel TEXT NOT NULL,
  event_id TEXT NOT NULL,
  digest TEXT NOT NULL,        -- of the received event
  message_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  received_at INTEGER NOT NULL,
  PRIMARY KEY (channel, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX events_by_age ON events (received_at);

-- The journal of deliveries: attempts, retry times and outcomes. From this version on, `failed` is `dead`.
CREATE TABLE journal (
  id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  turn_id TEXT,
  item TEXT NOT NULL,
  row_id TEXT,
  channel TEXT NOT NULL,
  generation INTEGER,          -- of its channel; a later channel with the same name has another one
  platform_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('intent','sending','received','unknown','dead','dropped')),
  attempts INTEGER NOT NULL,
  next_at INTEGER,             -- time of the next attempt
  reason TEXT,                 -- why it was not received, in words of the host
  created_at INTEGER NOT NULL,
  settled_at INTEGER
) STRICT;
INSERT INTO journal (id, session_id, turn_id, item, row_id, channel, platform_id, thread_id, state, attempts, created_at, settled_at)
  SELECT id, session_id, turn_id, item, row_id, channel, platform_id, thread_id,
    CASE state WHEN 'failed' THEN 'dead' ELSE state END, attempts, created_at, settled_at FROM deliveries ORDER BY rowid;
DROP TABLE deliveries;
ALTER TABLE journal RENAME TO deliveries;
CREATE INDEX deliveries_open ON deliveries (created_at) WHERE state IN ('intent','sending');
CREATE INDEX deliveries_open_by_session ON deliveries (session_id, created_at) WHERE state IN ('intent','sending');
CREATE INDEX deliveries_by_turn ON deliveries (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX deliveries_out ON deliveries (channel, state, session_id) WHERE state IN ('intent','sending') AND channel <> 'loopback';
CREATE INDEX deliveries_lost ON deliveries (created_at) WHERE state IN ('unknown','dead');

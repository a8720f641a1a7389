-- Channels beside the loopback: where messages come from and replies go.
CREATE TABLE channels (
  generation INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, unlike a name
  name TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (kind IN ('webhook')),
  url TEXT NOT NULL,           -- where replies go
  idempotent INTEGER NOT NULL, -- whether it shows a delivery once that is sent to it twice
  wrapped BLOB NOT NULL,       -- the signing secret, under the master key
  created_at INTEGER NOT NULL
) STRICT;

-- Which agent hears what comes in on a channel.
CREATE TABLE wirings (
  channel TEXT PRIMARY KEY NOT NULL REFERENCES channels (name) ON DELETE CASCADE,
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX wirings_by_agent ON wirings (agent_id);

-- Signed events that became messages: the same one again is the same message, another one under its id is refused.
CREATE TABLE events (
  channel TEXT NOT NULL,
  event_id TEXT NOT NULL,
  digest TEXT NOT NULL,        -- of the event as it came
  message_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  received_at INTEGER NOT NULL,
  PRIMARY KEY (channel, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX events_by_age ON events (received_at);

-- Deliveries as a journal: what is sent again and when, and how it ended. `failed` is `dead` from here on.
CREATE TABLE journal (
  id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  turn_id TEXT,
  item TEXT NOT NULL,
  row_id TEXT,
  channel TEXT NOT NULL,
  generation INTEGER,          -- of the channel that it is for: another one of its name is not meant
  platform_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('intent','sending','received','unknown','dead','dropped')),
  attempts INTEGER NOT NULL,
  next_at INTEGER,             -- an intent that was tried is not sent before
  reason TEXT,                 -- why it was not received, in the host's own words
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

CREATE TABLE meta (
  key TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE ledger (
  seq INTEGER PRIMARY KEY NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL,          -- the canonical bytes that were hashed
  hash TEXT NOT NULL,
  at INTEGER NOT NULL,
  session_id TEXT,             -- the last three only help to find entries; the chain does not cover them
  message_id TEXT,
  turn_id TEXT
) STRICT;
CREATE INDEX ledger_by_message ON ledger (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX ledger_by_turn ON ledger (turn_id) WHERE turn_id IS NOT NULL;

CREATE TABLE agents (
  id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL UNIQUE,
  model TEXT NOT NULL,
  persona TEXT NOT NULL,
  enabled_tools TEXT NOT NULL,
  mode TEXT NOT NULL CHECK (mode IN ('enforce','dangerous_warn','dangerous_off')),
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE people (
  id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL CHECK (role IN ('owner','admin','member')),
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE identities (
  channel TEXT NOT NULL,
  sender TEXT NOT NULL,        -- whole and opaque, never a prefix
  person_id TEXT NOT NULL REFERENCES people (id),
  PRIMARY KEY (channel, sender)
) STRICT;

CREATE TABLE tokens (
  digest TEXT PRIMARY KEY NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id),
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
  id TEXT PRIMARY KEY NOT NULL,
  agent_id TEXT NOT NULL,
  channel TEXT NOT NULL,
  platform_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,     -- '' where the channel has no threads
  uid_offset INTEGER NOT NULL UNIQUE,
  state TEXT NOT NULL CHECK (state IN ('live','parked','quarantined','removed')),
  reason TEXT,
  last_seq INTEGER NOT NULL CHECK (last_seq % 2 = 0),
  cursor INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  queue_key BLOB,              -- wrapped; gone once the session is removed
  content_key BLOB,
  created_at INTEGER NOT NULL,
  last_active_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX sessions_by_origin ON sessions (agent_id, channel, platform_id, thread_id) WHERE state <> 'removed';

CREATE TABLE items (
  id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  seq INTEGER NOT NULL CHECK (seq > 0 AND seq % 2 = 0),
  kind TEXT NOT NULL,
  issued_at INTEGER NOT NULL,
  boot TEXT NOT NULL,
  turn_id TEXT,
  call_id TEXT,
  tool TEXT,
  hop INTEGER NOT NULL,
  authors TEXT NOT NULL,
  labels TEXT NOT NULL,
  digest TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  body BLOB NOT NULL,          -- under the session's content key
  UNIQUE (session_id, seq)
) STRICT;

CREATE TABLE messages (
  id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('queued','scheduled','processing','completed','delivered')),
  trigger INTEGER NOT NULL,    -- 0: context, opens no turn
  sender TEXT NOT NULL,
  principal TEXT NOT NULL,
  channel TEXT NOT NULL,
  event_id TEXT,
  received_at INTEGER NOT NULL,
  turn_id TEXT,
  attempts INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_waiting ON messages (session_id, seq) WHERE status IN ('queued','processing');
CREATE INDEX messages_by_turn ON messages (turn_id) WHERE turn_id IS NOT NULL;
CREATE UNIQUE INDEX messages_by_event ON messages (channel, sender, event_id) WHERE event_id IS NOT NULL;

CREATE TABLE turns (
  ordinal INTEGER PRIMARY KEY NOT NULL,
  id TEXT NOT NULL UNIQUE,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  principal TEXT NOT NULL,
  scope TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open','closed')),
  opened_at INTEGER NOT NULL,
  deadline INTEGER NOT NULL,
  closed_at INTEGER,
  outcome TEXT,
  model_calls INTEGER NOT NULL,
  tool_calls INTEGER NOT NULL,
  result_bytes INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX one_open_turn ON turns (session_id) WHERE state = 'open';

CREATE TABLE calls (
  id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  turn_id TEXT NOT NULL,
  output_item TEXT NOT NULL,
  position INTEGER NOT NULL,
  tool TEXT NOT NULL,
  class TEXT NOT NULL,
  runs TEXT NOT NULL,
  digest TEXT NOT NULL,        -- of the canonical arguments, with the recipe's name
  state TEXT NOT NULL CHECK (state IN ('permitted','refused','done','unknown','void')),
  result_item TEXT
) STRICT;
CREATE INDEX calls_by_turn ON calls (turn_id);

CREATE TABLE outbound_rows (
  session_id TEXT NOT NULL REFERENCES sessions (id),
  seq INTEGER NOT NULL,
  digest TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (session_id, seq)
) STRICT;

CREATE TABLE deliveries (
  id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  turn_id TEXT,
  item TEXT NOT NULL,
  row_id TEXT,
  channel TEXT NOT NULL,
  platform_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('intent','sending','received','unknown','failed')),
  attempts INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  settled_at INTEGER
) STRICT;
CREATE INDEX deliveries_open ON deliveries (created_at) WHERE state IN ('intent','sending');
CREATE INDEX deliveries_by_turn ON deliveries (turn_id) WHERE turn_id IS NOT NULL;

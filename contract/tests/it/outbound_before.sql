CREATE TABLE messages_out (
  id TEXT PRIMARY KEY NOT NULL,
  seq INTEGER NOT NULL UNIQUE CHECK (seq > 0 AND seq % 2 = 1),
  in_reply_to TEXT,
  timestamp INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('chat','task','webhook','system')),
  platform_id TEXT,
  channel_type TEXT,
  thread_id TEXT,
  content TEXT NOT NULL,
  turn TEXT NOT NULL,
  call_id TEXT
) STRICT;
CREATE TABLE processing_ack (
  message_id TEXT PRIMARY KEY NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('queued','scheduled','processing','completed','delivered')),
  status_changed INTEGER NOT NULL
) STRICT;
CREATE TABLE session_state (
  key TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

-- The copies of files that agents send. The host makes one when the agent asks, and it ends with the call.
CREATE TABLE sent_files (
  call_id TEXT PRIMARY KEY NOT NULL REFERENCES calls (id) ON DELETE CASCADE,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  item TEXT NOT NULL,          -- the name under which the content is encrypted
  name TEXT NOT NULL,
  media_type TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  digest TEXT NOT NULL,        -- of the content
  content BLOB NOT NULL        -- under the session's content key
) STRICT;
CREATE INDEX sent_files_by_session ON sent_files (session_id);
CREATE INDEX deliveries_by_call ON deliveries (call_id) WHERE call_id IS NOT NULL;

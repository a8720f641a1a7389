-- Schedules: prompts that agents get at given times. Times are in milliseconds since the epoch.
CREATE TABLE schedules (
  id TEXT PRIMARY KEY NOT NULL,
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  creator TEXT NOT NULL,       -- a person, who may be removed since
  change_id TEXT NOT NULL,     -- the change that added it
  prompt TEXT NOT NULL,        -- '' once it is removed
  written_by TEXT NOT NULL,
  kind TEXT NOT NULL,          -- cron, every or at
  recurrence TEXT NOT NULL,
  zone TEXT NOT NULL,
  anchor INTEGER NOT NULL,     -- the time from which periods count
  catch_up TEXT NOT NULL,
  may TEXT NOT NULL,           -- JSON list of classes and tools
  channel TEXT NOT NULL,       -- the origin of the conversation that gets the replies
  platform_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active','paused','ended','removed')),
  reason TEXT,
  next_due INTEGER,            -- null unless it is active
  failing_since INTEGER,       -- the first failure since the last success
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX schedules_due ON schedules (next_due) WHERE next_due IS NOT NULL;
CREATE INDEX schedules_by_agent ON schedules (agent_id);
CREATE INDEX schedules_by_creator ON schedules (creator);

-- The occurrences of schedules. A settled row never changes.
CREATE TABLE occurrences (
  ordinal INTEGER PRIMARY KEY NOT NULL,
  schedule_id TEXT NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
  due INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('scheduled','started','done','failed','skipped','unknown')),
  reason TEXT,
  count INTEGER NOT NULL,      -- the number of skipped times that the row counts
  by_person TEXT,              -- the person who started it by hand
  message_id TEXT,
  receipt TEXT,                -- the delivery of the reply
  created_at INTEGER NOT NULL,
  settled_at INTEGER,
  UNIQUE (schedule_id, due)
) STRICT;
CREATE INDEX occurrences_open ON occurrences (ordinal) WHERE state IN ('scheduled','started');
CREATE INDEX occurrences_by_message ON occurrences (message_id) WHERE message_id IS NOT NULL;

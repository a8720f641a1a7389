-- One outbox: a notification is a delivery to a person, without a session and without an item. The numbers of the deliveries stay, because
-- `deliveries_unseen` goes by them.
CREATE TABLE rebuilt (
  id TEXT PRIMARY KEY NOT NULL,            -- dlv_…: the idempotency key on the channel
  session_id TEXT REFERENCES sessions (id),
  turn_id TEXT,
  item TEXT,
  call_id TEXT,                            -- the call of a message to a destination; null for a reply and a notice
  person_id TEXT REFERENCES people (id) ON DELETE CASCADE,
  about TEXT,
  subject TEXT,                            -- of a notification: id or name of the object
  channel TEXT NOT NULL,                   -- '': the person of a notification has no place
  generation INTEGER,                      -- of its channel; a later channel with the same name has another one
  platform_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  group_id TEXT NOT NULL DEFAULT '',
  over_network INTEGER NOT NULL DEFAULT 1, -- 1: the journal sends it; any other is complete with its row
  state TEXT NOT NULL CHECK (state IN ('intent','sending','received','unknown','dead','dropped','withdrawn','unplaced')),
  is_obsolete INTEGER NOT NULL DEFAULT 0,  -- 1: the object of a notification ended while it was in flight
  attempts INTEGER NOT NULL,
  next_at INTEGER,                         -- time of the next attempt; null: now
  reason TEXT,                             -- why it was not received, in words of the host
  created_at INTEGER NOT NULL,
  settled_at INTEGER,
  seen_at INTEGER,                         -- when the person got it over the API; null: not yet
  unseen INTEGER,                          -- 1: a reply on this host that no client got, in a complete block
  -- A reply, a notice or a message has a session and an item, and a notification has a person and an object.
  CHECK ((session_id IS NULL) = (item IS NULL) AND (session_id IS NULL) = (person_id IS NOT NULL)
    AND (person_id IS NULL) = (about IS NULL) AND (person_id IS NULL) = (subject IS NULL))
) STRICT;
INSERT INTO rebuilt (rowid, id, session_id, turn_id, item, call_id, channel, generation, platform_id, thread_id, group_id,
    over_network, state, attempts, next_at, reason, created_at, settled_at, seen_at, unseen)
  SELECT rowid, id, session_id, turn_id, item, call_id, channel, generation, platform_id, thread_id, group_id,
    over_network, state, attempts, next_at, reason, created_at, settled_at, seen_at, unseen
  FROM deliveries ORDER BY rowid;
INSERT INTO rebuilt (id, person_id, about, subject, channel, generation, platform_id, thread_id, state, is_obsolete, attempts, next_at,
    reason, created_at, settled_at)
  SELECT id, person_id, about, subject, coalesce(channel, ''), generation, coalesce(sender, ''), '',
    CASE state WHEN 'waiting' THEN 'intent' WHEN 'delivered' THEN 'received' WHEN 'failed' THEN 'dead' WHEN 'no_place' THEN 'unplaced'
      ELSE state END,
    is_obsolete, attempts, next_at, reason, created_at, settled_at
  FROM notifications ORDER BY ordinal;
DROP TABLE deliveries;
DROP TABLE notifications;
ALTER TABLE rebuilt RENAME TO deliveries;
CREATE INDEX deliveries_open_by_session ON deliveries (session_id, created_at) WHERE state IN ('intent','sending');
CREATE INDEX deliveries_lost ON deliveries (created_at) WHERE state IN ('unknown','dead') AND session_id IS NOT NULL;
CREATE INDEX deliveries_out ON deliveries (channel, state) WHERE state IN ('intent','sending') AND over_network = 1;
CREATE INDEX deliveries_by_call ON deliveries (call_id) WHERE call_id IS NOT NULL;
CREATE INDEX deliveries_unseen ON deliveries (session_id) WHERE unseen = 1;
CREATE INDEX deliveries_by_subject ON deliveries (subject, about, person_id) WHERE person_id IS NOT NULL;
CREATE INDEX deliveries_told ON deliveries (settled_at) WHERE person_id IS NOT NULL;
-- The notifications may complete a block of 256.
UPDATE deliveries SET unseen = 1
  WHERE over_network = 0 AND seen_at IS NULL AND rowid <= (SELECT max(rowid) / 256 * 256 FROM deliveries);

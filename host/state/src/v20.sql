-- The place where a person is told: one of their identities on a channel. It ends with the identity, the channel or the person.
CREATE TABLE notification_places (
  person_id TEXT PRIMARY KEY NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  channel TEXT NOT NULL REFERENCES channels (name) ON DELETE CASCADE,
  sender TEXT NOT NULL,
  FOREIGN KEY (channel, sender) REFERENCES identities (channel, sender) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX notification_places_by_identity ON notification_places (channel, sender);

-- The notifications of people: each has the kind and the id of an object, and no content.
CREATE TABLE notifications (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,     -- dlv_…: the idempotency key on the channel
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  about TEXT NOT NULL,
  subject TEXT NOT NULL,       -- id or name of the object
  channel TEXT,                -- null: the person has no place
  generation INTEGER,          -- of the channel
  sender TEXT,
  state TEXT NOT NULL CHECK (state IN ('waiting','sending','delivered','failed','unknown','no_place','withdrawn')),
  attempts INTEGER NOT NULL,
  next_at INTEGER,             -- of the next attempt; null: now
  reason TEXT,                 -- of the last attempt
  is_obsolete INTEGER NOT NULL DEFAULT 0, -- 1: its object ended while it was in flight
  created_at INTEGER NOT NULL,
  settled_at INTEGER
) STRICT;
CREATE INDEX notifications_open ON notifications (channel, state) WHERE state IN ('waiting','sending');
CREATE INDEX notifications_by_subject ON notifications (subject, about, person_id);
CREATE INDEX notifications_settled ON notifications (settled_at) WHERE settled_at IS NOT NULL;

-- The time at which people are told that a request or a change expires soon; null: they were told, or it is older than this version.
ALTER TABLE requests ADD COLUMN remind_at INTEGER;
ALTER TABLE changes ADD COLUMN remind_at INTEGER;
CREATE INDEX requests_to_remind ON requests (remind_at) WHERE remind_at IS NOT NULL;
CREATE INDEX changes_to_remind ON changes (remind_at) WHERE remind_at IS NOT NULL;

-- The time at which the person got the reply over the API; null: not yet. Replies of earlier versions count as shown.
ALTER TABLE deliveries ADD COLUMN seen_at INTEGER;
UPDATE deliveries SET seen_at = coalesce(settled_at, created_at) WHERE channel = 'loopback' AND state = 'received';
CREATE INDEX deliveries_unseen ON deliveries (session_id) WHERE channel = 'loopback' AND state = 'received' AND seen_at IS NULL;

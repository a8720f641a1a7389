-- Fewer pages for each message: tables without a second b-tree for their key, and indexes without the rows in their ordinary states.

-- A turn names its messages, its deliveries and its last item, so that none of them needs an index by turn: the row of the turn changes
-- anyway. This comes first, while the indexes of version 28 find them.
ALTER TABLE turns ADD COLUMN message_ids TEXT NOT NULL DEFAULT '[]';  -- JSON list of the messages that were put into it
ALTER TABLE turns ADD COLUMN delivery_ids TEXT NOT NULL DEFAULT '[]'; -- JSON list
ALTER TABLE turns ADD COLUMN last_seq INTEGER; -- of a closed turn: no item of it has a higher number
UPDATE turns SET
  last_seq = iif(state = 'closed', coalesce((SELECT max(seq) FROM items WHERE turn_id = turns.id), 0), NULL),
  message_ids = (SELECT json_group_array(id) FROM messages WHERE turn_id = turns.id),
  delivery_ids = (SELECT json_group_array(id) FROM deliveries WHERE turn_id = turns.id);

-- `waits` repeats the status for the indexes, which then do not change while a message goes from the queue into its turn.
CREATE TABLE messages_of_29 (
  id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('queued','scheduled','processing','completed','delivered')),
  waits INTEGER CHECK (waits = 1),       -- 1: in the queue or in a turn; null: neither
  trigger INTEGER NOT NULL,              -- 0: context, opens no turn
  sender TEXT NOT NULL,
  principal TEXT NOT NULL,
  of_another INTEGER NOT NULL DEFAULT 0, -- 1: its principal is not the person who began the session
  channel TEXT NOT NULL,
  event_id TEXT,
  received_at INTEGER NOT NULL,
  turn_id TEXT,
  attempts INTEGER NOT NULL,
  first_ordinal INTEGER,
  moved_seq INTEGER,
  bytes INTEGER NOT NULL DEFAULT 0,
  images BLOB,
  root TEXT,
  principal_kind TEXT NOT NULL DEFAULT 'unsigned',
  answers TEXT,                          -- the question that it answers
  group_id TEXT NOT NULL DEFAULT '',
  thread_id TEXT,
  mentions INTEGER NOT NULL DEFAULT 0,   -- 1: it mentions the agent and opened a turn for that
  CHECK ((waits IS NOT NULL) = (status IN ('queued','processing')))
) STRICT, WITHOUT ROWID;
INSERT INTO messages_of_29 (id, session_id, seq, kind, status, waits, trigger, sender, principal, of_another, channel, event_id,
    received_at, turn_id, attempts, first_ordinal, moved_seq, bytes, images, root, principal_kind, answers, group_id, thread_id, mentions)
  SELECT id, session_id, seq, kind, status, iif(status IN ('queued','processing'), 1, NULL), trigger, sender, principal,
    principal IS NOT (SELECT person_id FROM sessions WHERE sessions.id = session_id), channel, event_id, received_at,
    turn_id, attempts, first_ordinal, moved_seq, bytes, images, root, principal_kind, answers, group_id, thread_id, mentions FROM messages;
DROP TABLE messages;
ALTER TABLE messages_of_29 RENAME TO messages;
CREATE UNIQUE INDEX messages_by_event ON messages (channel, sender, event_id) WHERE event_id IS NOT NULL;
CREATE INDEX messages_waiting ON messages (session_id, trigger, seq) WHERE waits = 1;
-- A person's waiting messages in sessions of other people, and those on a channel over a network; both are for the quota.
CREATE INDEX messages_waiting_of ON messages (principal, bytes) WHERE waits = 1 AND trigger = 1 AND of_another = 1;
CREATE INDEX messages_waiting_on ON messages (channel, bytes) WHERE waits = 1 AND trigger = 1 AND channel <> 'loopback';
-- Messages that no turn has shown and that do not wait for one.
CREATE INDEX messages_unshown ON messages (session_id, seq) WHERE first_ordinal IS NULL AND waits IS NULL;
CREATE INDEX messages_by_root ON messages (root) WHERE root IS NOT NULL;
CREATE INDEX messages_mentioning ON messages (session_id, group_id, thread_id) WHERE mentions = 1;

CREATE TABLE outbound_rows_of_29 (
  session_id TEXT NOT NULL REFERENCES sessions (id),
  seq INTEGER NOT NULL,
  digest TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (session_id, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO outbound_rows_of_29 (session_id, seq, digest, at) SELECT session_id, seq, digest, at FROM outbound_rows;
DROP TABLE outbound_rows;
ALTER TABLE outbound_rows_of_29 RENAME TO outbound_rows;

-- `deliveries_open_by_session` and `deliveries_out` have the same rows.
DROP INDEX deliveries_open;

-- The messages and the turns that the entries of the complete blocks of the ledger name; a block has 256 numbers. The table replaces two
-- indexes, so that an entry changes one page. It only helps to find entries; no hash covers it.
CREATE TABLE ledger_subjects (
  subject TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (subject, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO ledger_subjects (subject, seq)
  SELECT message_id, seq FROM ledger WHERE message_id IS NOT NULL AND seq < (SELECT (max(seq) + 1) / 256 * 256 FROM ledger)
  UNION SELECT turn_id, seq FROM ledger WHERE turn_id IS NOT NULL AND seq < (SELECT (max(seq) + 1) / 256 * 256 FROM ledger);
DROP INDEX ledger_by_message;
DROP INDEX ledger_by_turn;

DROP INDEX deliveries_by_turn;
DROP INDEX items_by_turn;

-- Replies on this host that no client got, in the complete blocks of 256 deliveries. The others are found by their number, so that
-- a reply that is read soon changes no index. A later version that rebuilds this table keeps the rowids, or sets `unseen` again.
ALTER TABLE deliveries ADD COLUMN unseen INTEGER;
UPDATE deliveries SET unseen = 1
  WHERE over_network = 0 AND seen_at IS NULL AND rowid <= (SELECT max(rowid) / 256 * 256 FROM deliveries);
DROP INDEX deliveries_unseen;
CREATE INDEX deliveries_unseen ON deliveries (session_id) WHERE unseen = 1;

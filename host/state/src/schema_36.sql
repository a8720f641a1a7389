-- What waits for people is one table, whatever its kind: calls, questions and changes. The prefix of the id tells the kind.
CREATE TABLE waiting (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
  id TEXT NOT NULL UNIQUE,                -- req_…, qst_… or chg_…
  kind TEXT GENERATED ALWAYS AS (substr(id, 1, 3)) VIRTUAL,
  subject TEXT NOT NULL,                  -- the tool of a call or a question; the kind of a change
  status TEXT NOT NULL CHECK (status IN ('pending','doubtful','approved','running','done','queued','failed','rejected','expired',
                                         'withdrawn','unknown')),
  agent_id TEXT,                          -- null: a change that concerns none
  principal TEXT NOT NULL,                -- the person on whose behalf
  session_id TEXT,                        -- null: a person asked
  turn_id TEXT,                           -- the newest turn that asked
  call_id TEXT,                           -- its call
  message_id TEXT,                        -- the message of that turn
  root TEXT,                              -- the message whose task it is
  output_item TEXT,                       -- of a call: the output that has it; its calls form one sheet
  digest TEXT NOT NULL,                   -- of what is asked for: an equal request is the same
  labels TEXT NOT NULL,                   -- of the output that asked
  own TEXT NOT NULL DEFAULT '{}',         -- what only this kind has, JSON
  sealed BLOB,                            -- the arguments of a call, the text of a question: under the content key of the session
  answer TEXT,                            -- of a question: the message with the answer
  generation INTEGER NOT NULL,            -- of the record
  counts INTEGER NOT NULL DEFAULT 1,      -- 0: it is from before a reset, and counts against no bound
  told TEXT NOT NULL DEFAULT '',          -- the places in which people were told
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,            -- without a decision; once a call is approved, of its approvals
  ends_at INTEGER,                        -- when the host ends it; null: it does not
  remind_at INTEGER,                      -- when people are told that it ends soon; null: they were told
  asked_seq INTEGER NOT NULL DEFAULT 0,   -- of its ledger entry
  shown TEXT,                             -- digest of the page of the last yes
  decided_by TEXT,                        -- the last person who decided or answered
  decided_at INTEGER,
  ended_at INTEGER,
  outcome TEXT                            -- in words of the host, or the reason of a rejection
) STRICT;

INSERT INTO waiting (id, subject, status, agent_id, principal, session_id, turn_id, call_id, message_id, digest, labels, own, generation,
  created_at, expires_at, ends_at, remind_at, asked_seq, shown, decided_by, decided_at, ended_at, outcome)
SELECT id, kind, CASE status WHEN 'applied' THEN 'done' WHEN 'unknown' THEN 'doubtful' ELSE status END, agent_id, principal, session_id,
  turn_id, call_id, message_id, digest, labels,
  json_object('before', json(before), 'facts', json(facts), 'payload', json(payload), 'reason', reason), generation, created_at, expires_at,
  iif(status = 'pending', expires_at, NULL), remind_at, asked_seq, shown, decided_by, decided_at,
  iif(status IN ('pending','approved','unknown'), NULL, coalesce(applied_at, decided_at, expires_at)), outcome
FROM changes ORDER BY ordinal;

INSERT INTO waiting (id, subject, status, agent_id, principal, session_id, turn_id, call_id, root, output_item, digest, labels, own, sealed,
  generation, counts, told, created_at, expires_at, ends_at, remind_at, asked_seq, decided_by, decided_at, ended_at, outcome)
SELECT id, tool, status, agent_id, principal, session_id, turn_id, call_id, root, output_item, digest, labels,
  json_object('class', class, 'origins', json(origins), 'reasons', json(reasons), 'scope',
    iif(scope = '', json('[]'), json('["' || replace(scope, ' ', '","') || '"]'))), arguments, generation, counts, told,
  created_at, expires_at, iif(status IN ('pending','approved'), expires_at, NULL), remind_at, asked_seq, decided_by, decided_at,
  iif(status IN ('pending','approved','running'), NULL, decided_at), outcome
FROM requests ORDER BY ordinal;

INSERT INTO waiting (id, subject, status, agent_id, principal, session_id, turn_id, call_id, message_id, root, digest, labels, own, sealed,
  answer, generation, created_at, expires_at, ends_at, remind_at, decided_by, decided_at, ended_at, outcome)
SELECT id, 'ask_user_question', CASE status WHEN 'waiting' THEN 'pending' WHEN 'answered' THEN 'done' WHEN 'unknown' THEN 'doubtful'
    WHEN 'cancelled' THEN iif(ended_by IS NULL, 'withdrawn', 'rejected') ELSE status END,
  agent_id, principal, session_id, turn_id, call_id, asked_for, root, digest, labels,
  json_object('principal_kind', principal_kind, 'scope',
    iif(scope = '', json('[]'), json('["' || replace(scope, ' ', '","') || '"]'))), body, answer, 0, created_at, expires_at,
  iif(status = 'waiting', expires_at, NULL), remind_at, ended_by, iif(ended_by IS NULL, NULL, ended_at),
  iif(status IN ('waiting','unknown'), NULL, ended_at), outcome
FROM questions ORDER BY ordinal;

DROP TABLE changes;
DROP TABLE requests;
DROP TABLE questions;

-- A change is asked for once, a call once in a task, and a call makes one change.
CREATE UNIQUE INDEX waiting_changes ON waiting (digest) WHERE status = 'pending' AND kind = 'chg';
CREATE UNIQUE INDEX waiting_calls ON waiting (session_id, root, digest) WHERE status IN ('pending','approved','running') AND kind = 'req';
CREATE INDEX waiting_by_status ON waiting (status, ordinal);
CREATE INDEX waiting_underway ON waiting (kind, status, ordinal) WHERE status IN ('approved','running');
CREATE INDEX waiting_ending ON waiting (ends_at) WHERE ends_at IS NOT NULL;
CREATE INDEX waiting_to_remind ON waiting (remind_at) WHERE remind_at IS NOT NULL;
CREATE INDEX waiting_by_agent ON waiting (agent_id, status, ordinal);
CREATE INDEX waiting_by_principal ON waiting (principal, status, ordinal);
CREATE INDEX waiting_by_time ON waiting (principal, created_at) WHERE kind = 'req';
CREATE INDEX waiting_counted ON waiting (created_at) WHERE counts = 1 AND kind = 'req';
CREATE INDEX waiting_by_session ON waiting (session_id, ordinal) WHERE session_id IS NOT NULL;
CREATE INDEX waiting_by_call ON waiting (call_id) WHERE call_id IS NOT NULL;

-- One notification for each step of this life.
UPDATE notifications SET about = 'waits' WHERE about IN ('request_waits','change_waits','question_waits');
UPDATE notifications SET about = 'ends_soon' WHERE about IN ('request_expires','change_expires','question_reminder');

-- The questions of agents to the people of their turns.
CREATE TABLE questions (
  ordinal INTEGER PRIMARY KEY NOT NULL,
  id TEXT NOT NULL UNIQUE,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  agent_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,        -- the first turn that asked
  call_id TEXT NOT NULL,        -- its call
  asked_for TEXT NOT NULL,      -- the newest message of that turn: a later try at it asks the same question
  root TEXT NOT NULL,           -- the message whose task it is
  principal TEXT NOT NULL,      -- the person concerned
  principal_kind TEXT NOT NULL,
  scope TEXT NOT NULL,          -- the classes of the turn that asked
  digest TEXT NOT NULL,         -- of the canonical arguments, with the recipe's name
  body BLOB NOT NULL,           -- question and options, canonical JSON text, under the session's content key
  labels TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  remind_at INTEGER,            -- null: the person was reminded, or the question has ended
  expires_at INTEGER NOT NULL,
  ended_by TEXT,
  ended_at INTEGER,
  outcome TEXT,
  answer TEXT                   -- the message with the answer
) STRICT;
CREATE INDEX questions_by_status ON questions (status, ordinal);
CREATE INDEX questions_by_session ON questions (session_id, ordinal);
CREATE INDEX questions_by_principal ON questions (principal, ordinal);

-- The question that a message answers.
ALTER TABLE messages ADD COLUMN answers TEXT;

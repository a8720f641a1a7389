-- Calls with the code of a refusal, the answer of each stage of their judgement, and the state `running`. The host refuses an unknown state.
CREATE TABLE calls_of_16 (
  id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  turn_id TEXT NOT NULL,
  output_item TEXT NOT NULL,
  position INTEGER NOT NULL,
  tool TEXT NOT NULL,
  class TEXT NOT NULL,
  runs TEXT NOT NULL,
  digest TEXT NOT NULL,        -- of the canonical arguments, with the recipe's name
  state TEXT NOT NULL,
  result_item TEXT,
  code TEXT NOT NULL DEFAULT '',
  stages TEXT NOT NULL DEFAULT '',
  allowance INTEGER            -- the allowance that has a use left for it while it is permitted
) STRICT;
INSERT INTO calls_of_16 (id, session_id, turn_id, output_item, position, tool, class, runs, digest, state, result_item)
  SELECT id, session_id, turn_id, output_item, position, tool, class, runs, digest, state, result_item FROM calls;
DROP TABLE calls;
ALTER TABLE calls_of_16 RENAME TO calls;
CREATE INDEX calls_by_turn ON calls (turn_id);
CREATE INDEX calls_by_allowance ON calls (allowance) WHERE allowance IS NOT NULL;

-- The classes that a message of a person asks for, with their origin: `declared:read send`. Empty for every other item.
ALTER TABLE items ADD COLUMN scope TEXT NOT NULL DEFAULT '';

-- Hosts of the network that the host asks for an agent.
CREATE TABLE egress_grants (
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  host TEXT NOT NULL,          -- canonical name
  granted TEXT NOT NULL,       -- canonical payload of the change
  PRIMARY KEY (agent_id, host)
) STRICT, WITHOUT ROWID;

-- The approvals of a change or of a call; each one counts once.
CREATE TABLE approvals_of_16 (
  id TEXT PRIMARY KEY NOT NULL,
  subject TEXT NOT NULL,       -- a change or an approval request
  person_id TEXT NOT NULL,
  token TEXT NOT NULL,         -- canonical; see `approval`
  state TEXT NOT NULL CHECK (state IN ('live','used','void')),
  given_at INTEGER NOT NULL,
  ended_at INTEGER,
  CHECK ((state = 'live') = (ended_at IS NULL))
) STRICT;
INSERT INTO approvals_of_16 (id, subject, person_id, token, state, given_at, ended_at)
  SELECT id, change_id, person_id, token, state, given_at, ended_at FROM approvals;
DROP TABLE approvals;
ALTER TABLE approvals_of_16 RENAME TO approvals;
CREATE UNIQUE INDEX approvals_once ON approvals (subject, person_id) WHERE state = 'live';
CREATE INDEX approvals_by_subject ON approvals (subject);

-- Approval requests: calls that wait for people. The host refuses an unknown status.
CREATE TABLE requests (
  ordinal INTEGER PRIMARY KEY NOT NULL,
  id TEXT NOT NULL UNIQUE,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  agent_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,       -- the newest turn that asked
  call_id TEXT NOT NULL,       -- the newest call that asked
  output_item TEXT NOT NULL,   -- the output of that call: its requests form one sheet
  root TEXT NOT NULL,          -- the message whose task it is
  principal TEXT NOT NULL,
  scope TEXT NOT NULL,         -- the classes of the turn that asked
  tool TEXT NOT NULL,
  class TEXT NOT NULL,
  digest TEXT NOT NULL,        -- of the canonical arguments, with the recipe's name
  arguments BLOB NOT NULL,     -- canonical JSON text, under the session's content key
  labels TEXT NOT NULL,
  reasons TEXT NOT NULL,       -- canonical JSON
  origins TEXT NOT NULL,       -- canonical JSON
  generation INTEGER NOT NULL,
  status TEXT NOT NULL,
  told TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL, -- of the request; once it is approved, of the approvals
  asked_seq INTEGER NOT NULL,  -- of its ledger entry
  decided_by TEXT,
  decided_at INTEGER,
  outcome TEXT
) STRICT;
CREATE UNIQUE INDEX requests_once ON requests (session_id, root, digest) WHERE status IN ('pending','approved','running');
CREATE INDEX requests_by_status ON requests (status, ordinal);
CREATE INDEX requests_by_session ON requests (session_id, ordinal);
CREATE INDEX requests_by_call ON requests (call_id);
CREATE INDEX requests_by_principal ON requests (principal, created_at);

-- The message whose task a follow-up continues, and the milliseconds that a turn has waited for people.
ALTER TABLE messages ADD COLUMN root TEXT;
CREATE INDEX messages_by_root ON messages (root) WHERE root IS NOT NULL;
ALTER TABLE turns ADD COLUMN waited_ms INTEGER NOT NULL DEFAULT 0;

-- Allowances: counted repetitions of calls that would need their person.
CREATE TABLE allowances (
  id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  tool TEXT NOT NULL,
  manifest TEXT NOT NULL,      -- digest of the manifest of the tool
  fields TEXT NOT NULL,        -- canonical JSON: the fixed control fields
  uses_max INTEGER NOT NULL,
  uses INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  CHECK (uses BETWEEN 0 AND uses_max)
) STRICT;
CREATE INDEX allowances_by_person ON allowances (person_id, agent_id, tool);

-- The kind of the principal of a message and a turn; the host refuses an unknown one. A row that names none may ask for nothing.
ALTER TABLE messages ADD COLUMN principal_kind TEXT NOT NULL DEFAULT 'unsigned';
UPDATE messages SET principal_kind = 'person' WHERE principal <> 'host';
ALTER TABLE turns ADD COLUMN principal_kind TEXT NOT NULL DEFAULT 'unsigned';
UPDATE turns SET principal_kind = 'person';

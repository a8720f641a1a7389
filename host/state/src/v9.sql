-- Changes of an agent or its capabilities: proposed, decided by people, applied once.
CREATE TABLE changes (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  agent_id TEXT,               -- the agent that it concerns or that proposed it; null for a change by a person that concerns no agent
  requester TEXT NOT NULL,     -- agt_… or per_…
  principal TEXT NOT NULL,     -- per_…: the person on whose behalf
  session_id TEXT,             -- the session of the agent that proposed it
  turn_id TEXT,
  message_id TEXT,
  call_id TEXT UNIQUE,
  payload TEXT NOT NULL,       -- canonical, completed by the checks
  before TEXT NOT NULL,        -- the earlier value of the setting, canonical
  facts TEXT NOT NULL,         -- the referenced names at that time, canonical
  digest TEXT NOT NULL,        -- of requester and content: two equal requests of one requester are one
  labels TEXT NOT NULL,        -- of the output that asked
  reason TEXT NOT NULL,
  generation INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending','approved','applied','rejected','expired','withdrawn','failed','unknown')),
  shown TEXT,                  -- digest of the review page of the decision
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  decided_by TEXT,             -- per_…
  decided_at INTEGER,
  applied_at INTEGER,
  outcome TEXT                 -- in words of the host, or the reason of a rejection
) STRICT;
CREATE INDEX changes_by_status ON changes (status, ordinal);
CREATE UNIQUE INDEX changes_asked ON changes (digest) WHERE status = 'pending';
CREATE INDEX changes_pending ON changes (requester) WHERE status = 'pending';
CREATE INDEX changes_ending ON changes (expires_at) WHERE status = 'pending';
CREATE INDEX changes_by_agent ON changes (agent_id, status, ordinal);
CREATE INDEX changes_by_principal ON changes (principal, status, ordinal);
CREATE INDEX changes_by_session ON changes (session_id) WHERE session_id IS NOT NULL;

-- The approvals of a change; each one counts once.
CREATE TABLE approvals (
  id TEXT PRIMARY KEY NOT NULL,
  change_id TEXT NOT NULL REFERENCES changes (id),
  person_id TEXT NOT NULL,
  token TEXT NOT NULL,         -- canonical; see `approval`
  state TEXT NOT NULL CHECK (state IN ('live','used','void')),
  given_at INTEGER NOT NULL,
  ended_at INTEGER,
  CHECK ((state = 'live') = (ended_at IS NULL))
) STRICT;
CREATE UNIQUE INDEX approvals_once ON approvals (change_id, person_id) WHERE state = 'live';
CREATE INDEX approvals_by_change ON approvals (change_id);

-- The roles of people at an agent: the right to talk to it, and the right to decide on its own changes.
ALTER TABLE agents ADD COLUMN access TEXT NOT NULL DEFAULT 'everyone' CHECK (access IN ('everyone','members'));
CREATE TABLE agent_roles (
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  person_id TEXT NOT NULL REFERENCES people (id),
  role TEXT NOT NULL CHECK (role IN ('admin','member')),
  PRIMARY KEY (agent_id, person_id)
) STRICT, WITHOUT ROWID;

-- Directories of the host in the jail of an agent.
CREATE TABLE agent_mounts (
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  target TEXT NOT NULL,
  source TEXT NOT NULL,
  read_only INTEGER NOT NULL,
  PRIMARY KEY (agent_id, target)
) STRICT, WITHOUT ROWID;

-- Software in the jail of an agent: the requested packages, and their layer.
CREATE TABLE agent_packages (
  agent_id TEXT PRIMARY KEY NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  packages TEXT NOT NULL,      -- canonical, the payload of its change
  layer TEXT NOT NULL,         -- digest of its content, and the name of its directory
  made_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The rule of a wiring for messages that open a turn.
ALTER TABLE wirings ADD COLUMN engage TEXT NOT NULL DEFAULT 'all' CHECK (engage IN ('all','pattern'));
ALTER TABLE wirings ADD COLUMN pattern TEXT;

-- MCP servers that a person confirmed, and the tools of them that an agent has.
CREATE TABLE mcp_servers (
  name TEXT PRIMARY KEY NOT NULL,
  url TEXT NOT NULL,
  tools TEXT NOT NULL,         -- canonical
  headers TEXT NOT NULL,       -- canonical; names of secrets, never values
  made_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE mcp_grants (
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  server TEXT NOT NULL REFERENCES mcp_servers (name) ON DELETE CASCADE,
  tools TEXT NOT NULL,         -- canonical list of names
  PRIMARY KEY (agent_id, server)
) STRICT, WITHOUT ROWID;

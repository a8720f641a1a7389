-- Trust groups of agents.
CREATE TABLE agent_groups (
  name TEXT PRIMARY KEY NOT NULL,
  tools TEXT NOT NULL -- JSON list
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_group_members (
  group_name TEXT NOT NULL REFERENCES agent_groups (name) ON DELETE CASCADE,
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  PRIMARY KEY (group_name, agent_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_group_members_by_agent ON agent_group_members (agent_id);

-- The other agent of a destination; null for an address of a channel.
ALTER TABLE destinations ADD COLUMN to_agent TEXT;

-- Messages between agents: requests of a call, and the answers that return.
CREATE TABLE agent_messages (
  message_id TEXT PRIMARY KEY NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('request','answer')),
  source_agent TEXT NOT NULL,
  source_session TEXT NOT NULL,
  source_turn TEXT NOT NULL,
  -- The message at which the turn worked that sent the request; of an answer, the turn that asked.
  source_message TEXT NOT NULL,
  hop INTEGER NOT NULL,
  chain TEXT NOT NULL,   -- the message of the person or the schedule at its start
  answers TEXT,          -- of an answer: the request
  answered INTEGER NOT NULL DEFAULT 0, -- of a request: 1 once it has an answer
  delivery TEXT          -- of an answer: the delivery that is received when a turn takes it
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_messages_by_chain ON agent_messages (chain);

-- The tokens of the turns that the messages of a chain opened. Without the message at its start, no turn of a chain has a tool.
CREATE TABLE chain_tokens (
  chain TEXT PRIMARY KEY NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  tokens INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The sends of the last minute.
CREATE TABLE agent_sends (
  call_id TEXT PRIMARY KEY NOT NULL,
  agent_id TEXT NOT NULL,
  sent_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_sends_by_agent ON agent_sends (agent_id, sent_at);

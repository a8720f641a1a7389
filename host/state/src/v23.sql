-- The addresses to which an agent may send messages, by the agent's name for each.
CREATE TABLE destinations (
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  channel TEXT NOT NULL,
  generation INTEGER NOT NULL, -- of the channel when people approved it
  address TEXT NOT NULL,
  thread TEXT NOT NULL,        -- '' for none
  person_id TEXT NOT NULL,     -- the person who was linked to the address when people approved it
  PRIMARY KEY (agent_id, name)
) STRICT, WITHOUT ROWID;

-- The call of a message that an agent sends to a destination; null for a reply and a notice.
ALTER TABLE deliveries ADD COLUMN call_id TEXT;

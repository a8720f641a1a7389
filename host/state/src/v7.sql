-- Requests to models and their usage, by day in UTC. A row outlives its session and its agent, and has only their ids.
CREATE TABLE usage (
  day INTEGER NOT NULL,        -- days since the epoch
  agent_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  model TEXT NOT NULL,         -- name of the endpoint
  requests INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cost_micros INTEGER NOT NULL,
  PRIMARY KEY (day, agent_id, session_id, model)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_session ON usage (session_id);

-- The ceilings of an agent; null means not set.
CREATE TABLE agent_budgets (
  agent_id TEXT PRIMARY KEY NOT NULL,
  tokens_per_day INTEGER,
  cost_per_day_micros INTEGER
) STRICT, WITHOUT ROWID;

-- The reason that a turn has no output of a model: a code, and a sentence of the host for the person.
ALTER TABLE turns ADD COLUMN failure TEXT;
ALTER TABLE turns ADD COLUMN failure_words TEXT;

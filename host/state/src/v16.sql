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
  stages TEXT NOT NULL DEFAULT ''
) STRICT;
INSERT INTO calls_of_16 (id, session_id, turn_id, output_item, position, tool, class, runs, digest, state, result_item)
  SELECT id, session_id, turn_id, output_item, position, tool, class, runs, digest, state, result_item FROM calls;
DROP TABLE calls;
ALTER TABLE calls_of_16 RENAME TO calls;
CREATE INDEX calls_by_turn ON calls (turn_id);

-- The classes that a message of a person asks for, with their origin: `declared:read send`. Empty for every other item.
ALTER TABLE items ADD COLUMN scope TEXT NOT NULL DEFAULT '';

-- Hosts of the network that the host asks for an agent.
CREATE TABLE egress_grants (
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  host TEXT NOT NULL,          -- canonical name
  granted TEXT NOT NULL,       -- canonical payload of the change
  PRIMARY KEY (agent_id, host)
) STRICT, WITHOUT ROWID;

-- The digest of the index with the largest serial that was seen; another index with this serial is refused.
ALTER TABLE skill_sources ADD COLUMN index_digest TEXT;
-- The digest of the request that an answer of a model answers. A later attempt with the same request uses the answer again.
ALTER TABLE items ADD COLUMN request TEXT;
-- A request before a reset counts against no bound.
ALTER TABLE requests ADD COLUMN counts INTEGER NOT NULL DEFAULT 1;
-- The bound by which a call was refused, canonical JSON.
ALTER TABLE calls ADD COLUMN bound TEXT;
-- A schedule has a name, a context of its runs, and flows.
ALTER TABLE schedules ADD COLUMN name TEXT NOT NULL DEFAULT '';           -- unique for its agent and creator
ALTER TABLE schedules ADD COLUMN context TEXT NOT NULL DEFAULT 'fresh';   -- fresh or continue
ALTER TABLE schedules ADD COLUMN flows TEXT NOT NULL DEFAULT '[]';        -- JSON list of tool, destination and directories
ALTER TABLE schedules ADD COLUMN attended_at INTEGER;                    -- milliseconds: see catch_up.rs
UPDATE schedules SET name = id;
CREATE INDEX schedules_by_name ON schedules (name);

-- The runs of schedules have sessions of their own beside the conversation with the same address.
ALTER TABLE sessions ADD COLUMN runs TEXT NOT NULL DEFAULT '';            -- '', 'fresh' or the id of a schedule that continues
DROP INDEX sessions_by_origin;
CREATE UNIQUE INDEX sessions_by_origin ON sessions (agent_id, channel, platform_id, thread_id, origin_kind, runs) WHERE state <> 'removed';
-- The uses of rights, so that an audit finds those without one. A right from before this version counts as used now.
ALTER TABLE tokens ADD COLUMN used_at INTEGER;
UPDATE tokens SET used_at = unixepoch() * 1000;
ALTER TABLE egress_grants ADD COLUMN granted_at INTEGER;
ALTER TABLE egress_grants ADD COLUMN used_at INTEGER;
UPDATE egress_grants SET granted_at = unixepoch() * 1000;
ALTER TABLE agent_skills ADD COLUMN used_at INTEGER;
UPDATE agent_skills SET used_at = unixepoch() * 1000;
-- What an operator set for an endpoint in place of the settings of the host and of the profile of its provider, JSON.
ALTER TABLE models ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
-- What answers of an endpoint showed about its quirks. From two answers that agree, the value is used.
CREATE TABLE model_observations (
    model TEXT NOT NULL REFERENCES models (name) ON DELETE CASCADE,
    quirk TEXT NOT NULL,
    value TEXT NOT NULL,
    answers INTEGER NOT NULL,
    at INTEGER NOT NULL,                                                  -- of the last answer, milliseconds since the epoch
    PRIMARY KEY (model, quirk)
) STRICT, WITHOUT ROWID;
-- The thoughts of the model beside an output, for display: encrypted as its body, and erased with it.
ALTER TABLE items ADD COLUMN reasoning BLOB;
-- The sizes of contexts that the host learned from the answers of model endpoints.
CREATE TABLE context_sizes (
  model TEXT PRIMARY KEY NOT NULL REFERENCES models (name) ON DELETE CASCADE,
  tokens INTEGER NOT NULL,
  source TEXT NOT NULL,              -- stated, counted or refused
  answers INTEGER NOT NULL,          -- that agree
  learned_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- The last words of model endpoints that gave no answer, sealed with the content key of the session. A few for each endpoint.
CREATE TABLE endpoint_words (
  ordinal INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  turn_id TEXT NOT NULL,
  at INTEGER NOT NULL,      -- milliseconds since the epoch
  code TEXT NOT NULL,       -- the code of the fault
  sealed BLOB NOT NULL
);
CREATE INDEX endpoint_words_by_endpoint ON endpoint_words (endpoint, ordinal);
CREATE INDEX endpoint_words_by_turn ON endpoint_words (turn_id);
CREATE INDEX endpoint_words_by_session ON endpoint_words (session_id);

-- Secrets of the operator, wrapped under the master key.
CREATE TABLE secrets (
  name TEXT PRIMARY KEY NOT NULL,
  wrapped BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT;

-- Model endpoints. `scripted` always exists and has no row. `meta` has the name of the default endpoint.
CREATE TABLE models (
  name TEXT PRIMARY KEY NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('openai','anthropic','scripted')),
  base_url TEXT,
  model TEXT NOT NULL,
  secret TEXT,                 -- name of the secret with its key
  input_price INTEGER NOT NULL,  -- millionths of a currency for a million tokens
  output_price INTEGER NOT NULL,
  streams INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE model_fallbacks (
  model TEXT NOT NULL REFERENCES models (name) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  fallback TEXT NOT NULL,
  PRIMARY KEY (model, position)
) STRICT, WITHOUT ROWID;

-- Marks agents without a chosen model: they follow the default. Before this version there was one model.
ALTER TABLE agents ADD COLUMN follows_default INTEGER NOT NULL DEFAULT 1;

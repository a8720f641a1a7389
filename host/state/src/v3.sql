-- Tokens get a name, an expiry, and a state that never returns to live. Earlier tokens have no expiry.
CREATE TABLE tokens_new (
  id TEXT PRIMARY KEY NOT NULL,    -- names the token, and is not secret
  digest TEXT NOT NULL UNIQUE,     -- SHA-256 of 256 random bits; the text is not stored
  person_id TEXT NOT NULL REFERENCES people (id),
  name TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('live','expired','revoked')),
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  ended_at INTEGER,
  CHECK ((state = 'live') = (ended_at IS NULL))
) STRICT;
INSERT INTO tokens_new (id, digest, person_id, name, state, created_at)
  SELECT 'tok_' || lower(hex(randomblob(8))), digest, person_id, 'owner.token', 'live', created_at FROM tokens;
DROP TABLE tokens;
ALTER TABLE tokens_new RENAME TO tokens;
CREATE INDEX tokens_by_person ON tokens (person_id);
CREATE INDEX tokens_ending ON tokens (expires_at) WHERE state = 'live' AND expires_at IS NOT NULL;

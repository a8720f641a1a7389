-- The digest of the index with the largest serial that was seen; another index with this serial is refused.
ALTER TABLE skill_sources ADD COLUMN index_digest TEXT;
-- The digest of the request that an answer of a model answers. A later attempt with the same request uses the answer again.
ALTER TABLE items ADD COLUMN request TEXT;
-- A request before a reset counts against no bound.
ALTER TABLE requests ADD COLUMN counts INTEGER NOT NULL DEFAULT 1;
-- The bound by which a call was refused, canonical JSON.
ALTER TABLE calls ADD COLUMN bound TEXT;

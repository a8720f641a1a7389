-- The digest of the index with the largest serial that was seen; another index with this serial is refused.
ALTER TABLE skill_sources ADD COLUMN index_digest TEXT;
-- The digest of the request that an answer of a model answers. A later attempt with the same request uses the answer again.
ALTER TABLE items ADD COLUMN request TEXT;

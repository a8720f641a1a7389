-- The digest of the index with the largest serial that was seen; another index with this serial is refused.
ALTER TABLE skill_sources ADD COLUMN index_digest TEXT;

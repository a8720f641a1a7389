-- Marks sessions whose agent could write to a granted directory: files there may belong to the session's uid, also after the grant was
-- revoked. Earlier grants are unknown, so every uid that was used before this version counts as an owner of files.
ALTER TABLE sessions ADD COLUMN uid_shared INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET uid_shared = 1;
UPDATE uids_free SET usable = 0;

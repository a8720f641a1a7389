-- Whether the agent of a session could once write to a granted directory: files there may belong to the session's uid, also after the
-- grant was revoked. Earlier grants are not known any more, so every uid that was used until now counts as one that owns files.
ALTER TABLE sessions ADD COLUMN uid_shared INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET uid_shared = 1;
UPDATE uids_free SET usable = 0;

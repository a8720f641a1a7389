-- A call that waits for people looks for an earlier call with the same content.
CREATE INDEX calls_by_digest ON calls (session_id, digest);

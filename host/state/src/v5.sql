-- Indexes for a start, which otherwise would read every session.
CREATE INDEX messages_asking ON messages (session_id) WHERE status IN ('queued','processing') AND trigger = 1;
CREATE INDEX deliveries_open_by_session ON deliveries (session_id, created_at) WHERE state IN ('intent','sending');
CREATE INDEX sessions_removed ON sessions (id) WHERE state = 'removed';

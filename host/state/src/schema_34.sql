-- The number of the last item before a turn. It orders turns and messages, which the clock does not: it may go back.
ALTER TABLE turns ADD COLUMN first_seq INTEGER;
-- The addresses of the local network that people read with a grant or a server, a JSON list. Requests go to these alone.
ALTER TABLE egress_grants ADD COLUMN addresses TEXT NOT NULL DEFAULT '[]';
ALTER TABLE mcp_servers ADD COLUMN addresses TEXT NOT NULL DEFAULT '[]';
-- The addresses of the names of changes, as the host found them when a person proposed the change.
CREATE TABLE looked_up_names (
    name TEXT PRIMARY KEY NOT NULL,
    addresses TEXT NOT NULL,                                              -- a JSON list
    at INTEGER NOT NULL                                                   -- milliseconds since the epoch
) STRICT, WITHOUT ROWID;
-- The status looks for the few schedules that fail or are paused, and for requests that may count against a bound.
CREATE INDEX schedules_failing ON schedules (id) WHERE failing_since IS NOT NULL;
CREATE INDEX schedules_paused ON schedules (id) WHERE state = 'paused';
CREATE INDEX requests_counted ON requests (created_at) WHERE counts = 1;

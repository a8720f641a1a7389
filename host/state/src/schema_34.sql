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

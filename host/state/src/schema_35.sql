-- The values of control fields that calls took by reference. A value is bound to its first use; the record of a call keeps the bytes.
CREATE TABLE call_inputs (
    id INTEGER PRIMARY KEY,
    call_id TEXT NOT NULL REFERENCES calls (id) ON DELETE CASCADE,
    session_id TEXT NOT NULL,
    handle TEXT NOT NULL                                                  -- such as m12.email.1
) STRICT;
CREATE INDEX call_inputs_by_handle ON call_inputs (session_id, handle);
CREATE INDEX call_inputs_by_call ON call_inputs (call_id);
-- Of an output: the ranges of items in its prompt, for what a reply rests on. A row that is written anyway costs no further page.
ALTER TABLE items ADD COLUMN prompt TEXT;
-- The values at the result paths of an answer with their server, encrypted like the body. Calls take them by reference.
ALTER TABLE items ADD COLUMN returned BLOB;
CREATE INDEX items_returned ON items (session_id, seq) WHERE returned IS NOT NULL;
-- Keyed digests of values that agents sent to MCP servers, and that the servers returned. They stay when the record of a call goes: a
-- value that an agent once sent never becomes one of the server.
CREATE TABLE server_values (
    place TEXT NOT NULL,                                                  -- the origin of its URL, or its command
    digest INTEGER NOT NULL,
    argument TEXT NOT NULL,                                               -- TOOL.ARGUMENT; empty: no agent set it
    PRIMARY KEY (place, digest, argument)
) STRICT, WITHOUT ROWID;
-- The classes that an agent takes from each kind of author, as JSON; without an entry the default holds.
ALTER TABLE agents ADD COLUMN receiver TEXT NOT NULL DEFAULT '{}';

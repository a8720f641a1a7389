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

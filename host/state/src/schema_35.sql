-- The values of control fields that calls took by reference. A value is bound to its first use; the record of a call keeps the bytes.
CREATE TABLE call_inputs (
    id INTEGER PRIMARY KEY,
    call_id TEXT NOT NULL REFERENCES calls (id) ON DELETE CASCADE,
    session_id TEXT NOT NULL,
    handle TEXT NOT NULL                                                  -- such as m12.email.1
) STRICT;
CREATE INDEX call_inputs_by_handle ON call_inputs (session_id, handle);
CREATE INDEX call_inputs_by_call ON call_inputs (call_id);
-- The items in the prompt of each output, for what a reply rests on. A row ends with the output or with the session.
CREATE TABLE output_prompts (
  session_id TEXT NOT NULL REFERENCES sessions (id),
  seq INTEGER NOT NULL,     -- the number of the output
  turn_id TEXT NOT NULL,
  ranges TEXT NOT NULL,     -- a JSON list of the first and the last number of each run of items
  is_whole INTEGER NOT NULL, -- 0: the oldest ranges were over the bound
  PRIMARY KEY (session_id, seq)
) STRICT, WITHOUT ROWID;

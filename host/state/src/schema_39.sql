-- The senders on channels whose text a person calls theirs. None of them is linked to a person.
CREATE TABLE own_senders (
  channel TEXT NOT NULL REFERENCES channels (name) ON DELETE CASCADE,
  sender TEXT NOT NULL, -- whole and opaque, never a prefix
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  since INTEGER NOT NULL,
  PRIMARY KEY (channel, sender, person_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX own_senders_by_person ON own_senders (person_id);

-- The key that signs heads of the ledger, wrapped under the master key.
CREATE TABLE ledger_keys (
  public TEXT PRIMARY KEY NOT NULL,
  wrapped BLOB NOT NULL,
  made_at INTEGER NOT NULL
) STRICT;

-- The archived chains that mention a message or a turn. The table only helps `why` to find entries; no hash covers it.
CREATE TABLE ledger_archived (
  subject TEXT NOT NULL,
  first_seq INTEGER NOT NULL,
  PRIMARY KEY (subject, first_seq)
) STRICT, WITHOUT ROWID;

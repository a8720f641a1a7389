//! The tables of both queues and the parameters of their cipher, as text that both sides hash.
//!
//! Has no behaviour. `docs/contract.md` names the writer and the reader of each column. See `crypt`, which opens the files.

/// The parameters that the openers set, written out for the fingerprint.
pub const CIPHER_PARAMETERS: &str = "sqlcipher=4 key=raw256 kdf=none cipher_page_size=4096 mmap_size=0 \
     outbound:journal_mode=DELETE,synchronous=FULL inbound:journal_mode=TRUNCATE,synchronous=OFF \
     reader:mode=ro,query_only=1 never:immutable seq:host=even,sandbox=odd";

/// Bytes of a page.
pub const CIPHER_PAGE_SIZE: u32 = 4096;

/// The inbound queue: the host writes it, the sandbox reads it. It is a projection of the host's record.
pub const INBOUND: &str = "\
CREATE TABLE messages_in (
  seq INTEGER PRIMARY KEY NOT NULL CHECK (seq > 0 AND seq % 2 = 0),
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  seal TEXT NOT NULL
) STRICT;
CREATE TABLE turns (
  turn TEXT NOT NULL,
  messages TEXT NOT NULL,
  deadline INTEGER NOT NULL,
  cursor INTEGER NOT NULL CHECK (cursor >= 0)
) STRICT;
";

/// The outbound queue: the sandbox writes it, and only the jailed reader of the host parses it.
pub const OUTBOUND: &str = "\
CREATE TABLE messages_out (
  seq INTEGER PRIMARY KEY NOT NULL CHECK (seq > 0 AND seq % 2 = 1),
  turn TEXT NOT NULL,
  content TEXT NOT NULL
) STRICT;
CREATE TABLE processing_ack (
  message_id TEXT PRIMARY KEY NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('processing','completed')),
  status_changed INTEGER NOT NULL
) STRICT;
";

/// SHA-256 of the statements of the outbound queue before RFC 0049, in their order, with line breaks between them.
pub const OUTBOUND_BEFORE: &str = "3c806b468326e65e8eaa2d834bc9b9da85aacb7c6dff53ec6384ca0c0e6d7bc6";

/// Removes the tables of that queue.
pub const DROP_OUTBOUND_BEFORE: &str =
    "DROP TABLE messages_out;\nDROP TABLE processing_ack;\nDROP TABLE session_state;\n";

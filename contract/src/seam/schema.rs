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
  id TEXT PRIMARY KEY NOT NULL,
  seq INTEGER NOT NULL UNIQUE CHECK (seq > 0 AND seq % 2 = 0),
  kind TEXT NOT NULL CHECK (kind IN ('chat','task','webhook','system')),
  timestamp INTEGER NOT NULL,
  platform_id TEXT,
  channel_type TEXT,
  thread_id TEXT,
  content TEXT NOT NULL,
  source_session_id TEXT,
  on_wake INTEGER NOT NULL CHECK (on_wake IN (0,1)),
  trigger INTEGER NOT NULL CHECK (trigger IN (0,1)),
  sender TEXT NOT NULL,
  principal TEXT NOT NULL,
  spans TEXT NOT NULL,
  hop INTEGER NOT NULL CHECK (hop >= 0),
  seal TEXT NOT NULL
) STRICT;
CREATE TABLE turns (
  turn TEXT PRIMARY KEY NOT NULL,
  messages TEXT NOT NULL,
  deadline INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open','closed'))
) STRICT;
CREATE TABLE session_routing (
  id INTEGER PRIMARY KEY NOT NULL CHECK (id = 1),
  channel_type TEXT NOT NULL,
  platform_id TEXT NOT NULL,
  thread_id TEXT,
  outbound_cursor INTEGER NOT NULL CHECK (outbound_cursor >= 0)
) STRICT;
CREATE TABLE delivered (
  message_out_id TEXT PRIMARY KEY NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('delivered','unknown','failed')),
  delivered_at INTEGER NOT NULL
) STRICT;
";

/// The outbound queue: the sandbox writes it, and only the jailed reader of the host parses it.
pub const OUTBOUND: &str = "\
CREATE TABLE messages_out (
  id TEXT PRIMARY KEY NOT NULL,
  seq INTEGER NOT NULL UNIQUE CHECK (seq > 0 AND seq % 2 = 1),
  in_reply_to TEXT,
  timestamp INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('chat','task','webhook','system')),
  platform_id TEXT,
  channel_type TEXT,
  thread_id TEXT,
  content TEXT NOT NULL,
  turn TEXT NOT NULL,
  call_id TEXT
) STRICT;
CREATE TABLE processing_ack (
  message_id TEXT PRIMARY KEY NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('queued','scheduled','processing','completed','delivered')),
  status_changed INTEGER NOT NULL
) STRICT;
CREATE TABLE session_state (
  key TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
";

-- The schema of the record, version 32: each table with its indexes. `migrations` lists the scripts of later versions.
-- Times are in milliseconds since the epoch.

-- ==== The host ====

-- Single values of the host, each under a key.
CREATE TABLE meta (
  key TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL
) STRICT;

-- Secrets of the operator, wrapped under the master key.
CREATE TABLE secrets (
  name TEXT PRIMARY KEY NOT NULL,
  wrapped BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT;

-- ==== The ledger ====

-- The entries of the newest chain.
CREATE TABLE ledger (
  seq INTEGER PRIMARY KEY NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL, -- the canonical bytes that were hashed
  hash TEXT NOT NULL,
  at INTEGER NOT NULL,
  session_id TEXT,    -- the last three only help to find entries; the chain does not cover them
  message_id TEXT,
  turn_id TEXT
) STRICT;

-- The messages and the turns that the entries of complete blocks name; a block has 256 numbers. An entry changes one page, as it would
-- not with two indexes. The table only helps to find entries; no hash covers it.
CREATE TABLE ledger_subjects (
  subject TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (subject, seq)
) STRICT, WITHOUT ROWID;

-- The archived chains that mention a message or a turn. The table only helps `why` to find entries; no hash covers it.
CREATE TABLE ledger_archived (
  subject TEXT NOT NULL,
  first_seq INTEGER NOT NULL,
  PRIMARY KEY (subject, first_seq)
) STRICT, WITHOUT ROWID;

-- The key that signs heads of the ledger, wrapped under the master key.
CREATE TABLE ledger_keys (
  public TEXT PRIMARY KEY NOT NULL,
  wrapped BLOB NOT NULL,
  made_at INTEGER NOT NULL
) STRICT;

-- ==== People ====

-- People and their roles. Two approvals count together only if neither person gave the other one their role or token. So each role and
-- each token has its giver (`*_by`) and its place in the order of the ledger (`*_seq`). A giver is a canonical list of pairs, each of a
-- person and the token that they came with or null; null where the host gave it.
CREATE TABLE people (
  id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL CHECK (role IN ('owner','admin','member')),
  created_at INTEGER NOT NULL,
  role_seq INTEGER NOT NULL DEFAULT 0, -- place of the role in the ledger
  role_by TEXT                         -- the giver of the role, see above
) STRICT;

-- The senders on channels who are linked to a person.
CREATE TABLE identities (
  channel TEXT NOT NULL,
  sender TEXT NOT NULL, -- whole and opaque, never a prefix
  person_id TEXT NOT NULL REFERENCES people (id),
  PRIMARY KEY (channel, sender)
) STRICT;

-- Tokens of people. A state never returns to live.
CREATE TABLE tokens (
  id TEXT PRIMARY KEY NOT NULL,          -- names the token, and is not secret
  digest TEXT NOT NULL UNIQUE,           -- SHA-256 of 256 random bits; the text is not stored
  person_id TEXT NOT NULL REFERENCES people (id),
  name TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('live','expired','revoked')),
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  ended_at INTEGER,
  issued_seq INTEGER NOT NULL DEFAULT 0, -- place of its issue in the ledger
  issued_by TEXT,                        -- the issuer, see `people`
  CHECK ((state = 'live') = (ended_at IS NULL))
) STRICT;
CREATE INDEX tokens_by_person ON tokens (person_id);
CREATE INDEX tokens_ending ON tokens (expires_at) WHERE state = 'live' AND expires_at IS NOT NULL;

-- ==== Models ====

-- Model endpoints. `scripted` always exists and has no row. `meta` has the name of the default endpoint.
CREATE TABLE models (
  name TEXT PRIMARY KEY NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('openai','anthropic','scripted')),
  base_url TEXT,
  model TEXT NOT NULL,
  secret TEXT,                  -- name of the secret with its key
  input_price INTEGER NOT NULL, -- millionths of a currency for a million tokens
  output_price INTEGER NOT NULL,
  streams INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  takes_images INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The endpoints that answer in place of another one, in their order.
CREATE TABLE model_fallbacks (
  model TEXT NOT NULL REFERENCES models (name) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  fallback TEXT NOT NULL,
  PRIMARY KEY (model, position)
) STRICT, WITHOUT ROWID;

-- Requests to models and their usage, by day in UTC. A row outlives its session and its agent, and has only their ids.
CREATE TABLE usage (
  day INTEGER NOT NULL, -- days since the epoch
  agent_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  model TEXT NOT NULL,  -- name of the endpoint
  requests INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cost_micros INTEGER NOT NULL,
  PRIMARY KEY (day, agent_id, session_id, model)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_session ON usage (session_id);

-- ==== Agents ====

-- Agents and their settings.
CREATE TABLE agents (
  id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL UNIQUE,
  model TEXT NOT NULL,
  persona TEXT NOT NULL,
  enabled_tools TEXT NOT NULL,
  mode TEXT NOT NULL CHECK (mode IN ('enforce','dangerous_warn','dangerous_off')),
  created_at INTEGER NOT NULL,
  follows_default INTEGER NOT NULL DEFAULT 1, -- 1: it has no chosen model
  access TEXT NOT NULL DEFAULT 'everyone' CHECK (access IN ('everyone','members'))
) STRICT;

-- The ceilings of an agent; null means not set.
CREATE TABLE agent_budgets (
  agent_id TEXT PRIMARY KEY NOT NULL,
  tokens_per_day INTEGER,
  cost_per_day_micros INTEGER
) STRICT, WITHOUT ROWID;

-- The roles of people at an agent: the right to talk to it, and the right to decide on its own changes.
CREATE TABLE agent_roles (
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  person_id TEXT NOT NULL REFERENCES people (id),
  role TEXT NOT NULL CHECK (role IN ('admin','member')),
  given_seq INTEGER NOT NULL DEFAULT 0, -- place in the ledger
  given_by TEXT,                        -- the giver, see `people`
  PRIMARY KEY (agent_id, person_id)
) STRICT, WITHOUT ROWID;

-- Directories of the host in the jail of an agent.
CREATE TABLE agent_mounts (
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  target TEXT NOT NULL,
  source TEXT NOT NULL,
  read_only INTEGER NOT NULL,
  PRIMARY KEY (agent_id, target)
) STRICT, WITHOUT ROWID;

-- Software in the jail of an agent: the requested packages, and their layer.
CREATE TABLE agent_packages (
  agent_id TEXT PRIMARY KEY NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  packages TEXT NOT NULL, -- canonical, the payload of its change
  layer TEXT NOT NULL,    -- digest of its content, and the name of its directory
  made_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Trust groups of agents.
CREATE TABLE agent_groups (
  name TEXT PRIMARY KEY NOT NULL,
  tools TEXT NOT NULL -- JSON list
) STRICT, WITHOUT ROWID;

-- The agents of a group.
CREATE TABLE agent_group_members (
  group_name TEXT NOT NULL REFERENCES agent_groups (name) ON DELETE CASCADE,
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  PRIMARY KEY (group_name, agent_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_group_members_by_agent ON agent_group_members (agent_id);

-- The sends of the last minute.
CREATE TABLE agent_sends (
  call_id TEXT PRIMARY KEY NOT NULL,
  agent_id TEXT NOT NULL,
  sent_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_sends_by_agent ON agent_sends (agent_id, sent_at);

-- Hosts of the network that the host asks for an agent.
CREATE TABLE egress_grants (
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  host TEXT NOT NULL,    -- canonical name
  granted TEXT NOT NULL, -- canonical payload of the change
  PRIMARY KEY (agent_id, host)
) STRICT, WITHOUT ROWID;

-- Allowances: counted repetitions of calls that would need their person.
CREATE TABLE allowances (
  id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  tool TEXT NOT NULL,
  manifest TEXT NOT NULL, -- digest of the manifest of the tool
  fields TEXT NOT NULL,   -- canonical JSON: the fixed control fields
  uses_max INTEGER NOT NULL,
  uses INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  CHECK (uses BETWEEN 0 AND uses_max)
) STRICT;
CREATE INDEX allowances_by_person ON allowances (person_id, agent_id, tool);

-- ==== Channels ====

-- Channels other than the loopback.
CREATE TABLE channels (
  generation INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, unlike a name
  name TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (kind IN ('webhook')),
  url TEXT NOT NULL,                            -- target of replies
  idempotent INTEGER NOT NULL,                  -- 1: it shows a delivery once, even if it receives it twice
  wrapped BLOB NOT NULL,                        -- the signing secret, under the master key
  created_at INTEGER NOT NULL
) STRICT;

-- The agent that receives the messages of a channel, and the rules: the messages that open a turn, their senders, and the sessions that
-- people share.
CREATE TABLE wirings (
  channel TEXT PRIMARY KEY NOT NULL REFERENCES channels (name) ON DELETE CASCADE,
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  engage TEXT NOT NULL CHECK (engage IN ('all','pattern','mention','mention_sticky')),
  pattern TEXT,
  senders TEXT NOT NULL CHECK (senders IN ('known','all')),
  unknown TEXT NOT NULL CHECK (unknown IN ('strict','request','public')),
  ignored TEXT NOT NULL CHECK (ignored IN ('accumulate','drop')),
  sharing TEXT NOT NULL CHECK (sharing IN ('thread','shared','agent'))
) STRICT, WITHOUT ROWID;
CREATE INDEX wirings_by_agent ON wirings (agent_id);

-- Senders who are linked to no person and wait for one.
CREATE TABLE waiting_senders (
  channel TEXT NOT NULL REFERENCES channels (name) ON DELETE CASCADE,
  sender TEXT NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY (channel, sender)
) STRICT, WITHOUT ROWID;

-- Signed events that became messages. A repeated event is the same message, and another event with the same id is refused.
CREATE TABLE events (
  channel TEXT NOT NULL,
  event_id TEXT NOT NULL,
  digest TEXT NOT NULL, -- of the received event
  message_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  received_at INTEGER NOT NULL,
  PRIMARY KEY (channel, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX events_by_age ON events (received_at);

-- The addresses to which an agent may send messages, by the agent's name for each.
CREATE TABLE destinations (
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  channel TEXT NOT NULL,
  generation INTEGER NOT NULL, -- of the channel when people approved it
  address TEXT NOT NULL,
  thread TEXT NOT NULL,        -- '' for none
  person_id TEXT NOT NULL,     -- the person who was linked to the address when people approved it
  to_agent TEXT,               -- the other agent; null for an address of a channel
  PRIMARY KEY (agent_id, name)
) STRICT, WITHOUT ROWID;

-- The place where a person is told: one of their identities on a channel. It ends with the identity, the channel or the person.
CREATE TABLE notification_places (
  person_id TEXT PRIMARY KEY NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  channel TEXT NOT NULL REFERENCES channels (name) ON DELETE CASCADE,
  sender TEXT NOT NULL,
  FOREIGN KEY (channel, sender) REFERENCES identities (channel, sender) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX notification_places_by_identity ON notification_places (channel, sender);

-- The notifications of people: each has the kind and the id of an object, and no content.
CREATE TABLE notifications (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,                -- dlv_…: the idempotency key on the channel
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  about TEXT NOT NULL,
  subject TEXT NOT NULL,                  -- id or name of the object
  channel TEXT,                           -- null: the person has no place
  generation INTEGER,                     -- of the channel
  sender TEXT,
  state TEXT NOT NULL CHECK (state IN ('waiting','sending','delivered','failed','unknown','no_place','withdrawn')),
  attempts INTEGER NOT NULL,
  next_at INTEGER,                        -- of the next attempt; null: now
  reason TEXT,                            -- of the last attempt
  is_obsolete INTEGER NOT NULL DEFAULT 0, -- 1: its object ended while it was in flight
  created_at INTEGER NOT NULL,
  settled_at INTEGER
) STRICT;
CREATE INDEX notifications_open ON notifications (channel, state) WHERE state IN ('waiting','sending');
CREATE INDEX notifications_by_subject ON notifications (subject, about, person_id);
CREATE INDEX notifications_settled ON notifications (settled_at) WHERE settled_at IS NOT NULL;

-- ==== Sessions ====

-- Conversations with agents. The row changes in the commits that open and close a turn, so the open turn is a column here in place of an
-- index.
CREATE TABLE sessions (
  id TEXT PRIMARY KEY NOT NULL,
  agent_id TEXT NOT NULL,
  channel TEXT NOT NULL,
  platform_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,                -- '' where the channel has no threads
  uid_offset INTEGER NOT NULL UNIQUE,
  state TEXT NOT NULL CHECK (state IN ('live','parked','quarantined','removed')),
  reason TEXT,
  last_seq INTEGER NOT NULL CHECK (last_seq % 2 = 0),
  cursor INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  queue_key BLOB,                         -- wrapped; gone once the session is removed
  content_key BLOB,
  created_at INTEGER NOT NULL,
  last_active_at INTEGER NOT NULL,
  item_bytes INTEGER NOT NULL DEFAULT 0,  -- size of its items
  pruned_seq INTEGER NOT NULL DEFAULT 0,  -- up to here all items are dropped
  settled_seq INTEGER NOT NULL DEFAULT 0, -- up to here all items are summarised or dropped
  person_id TEXT,                         -- the owner: the sender of its first message
  uid_shared INTEGER NOT NULL DEFAULT 0,  -- 1: files in a granted directory may belong to its uid
  origin_kind TEXT NOT NULL DEFAULT 'sender' CHECK (origin_kind IN ('sender','guest','group','agent')), -- the meaning of its origin
  open_turn INTEGER                       -- the ordinal of its open turn
) STRICT;
CREATE INDEX sessions_removed ON sessions (id) WHERE state = 'removed';
CREATE INDEX sessions_by_person ON sessions (person_id) WHERE state <> 'removed';
CREATE INDEX sessions_by_channel ON sessions (channel) WHERE state <> 'removed';
CREATE UNIQUE INDEX sessions_by_origin ON sessions (agent_id, channel, platform_id, thread_id, origin_kind) WHERE state <> 'removed';

-- User ids of removed sessions. One that is not usable may still own files in a granted directory.
CREATE TABLE uids_free (
  uid_offset INTEGER PRIMARY KEY NOT NULL,
  usable INTEGER NOT NULL
) STRICT;

-- What a model sees, in order.
CREATE TABLE items (
  id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  seq INTEGER NOT NULL CHECK (seq > 0 AND seq % 2 = 0),
  kind TEXT NOT NULL,
  issued_at INTEGER NOT NULL,
  boot TEXT NOT NULL,
  turn_id TEXT,
  call_id TEXT,
  tool TEXT,
  hop INTEGER NOT NULL,
  authors TEXT NOT NULL,
  labels TEXT NOT NULL,
  digest TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  body BLOB NOT NULL,                  -- under the session's content key
  summary_item TEXT,                   -- the summary that replaces it; a sandbox gets no ref to it then
  scripted INTEGER NOT NULL DEFAULT 0, -- 1: an output of the script, which no other model sees as its own words
  scope TEXT NOT NULL DEFAULT '',      -- of a person's message: the classes that it asks for, `declared:read send`
  UNIQUE (session_id, seq)
) STRICT;

-- Summaries. The items that a summary replaces stay in the record.
CREATE TABLE summaries (
  item TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  ordinal INTEGER NOT NULL, -- the last turn that it replaces: its place in a conversation
  from_seq INTEGER NOT NULL,
  upto_seq INTEGER NOT NULL,
  items INTEGER NOT NULL
) STRICT;
CREATE INDEX summaries_by_session ON summaries (session_id);

-- Messages to agents. `waits` repeats the status for the indexes, which then do not change while a message goes from the queue into its
-- turn.
CREATE TABLE messages (
  id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('queued','scheduled','processing','completed','delivered')),
  waits INTEGER CHECK (waits = 1),       -- 1: in the queue or in a turn; null: neither
  trigger INTEGER NOT NULL,              -- 0: context, opens no turn
  sender TEXT NOT NULL,
  principal TEXT NOT NULL,
  of_another INTEGER NOT NULL DEFAULT 0, -- 1: its principal is not the person who began the session
  channel TEXT NOT NULL,
  event_id TEXT,
  received_at INTEGER NOT NULL,
  turn_id TEXT,
  attempts INTEGER NOT NULL,
  first_ordinal INTEGER,                 -- the first turn that showed it: its place in the conversation, even if another turn answers it
  moved_seq INTEGER,                     -- of a message that is retried: it follows all earlier items
  bytes INTEGER NOT NULL DEFAULT 0,
  images BLOB,                           -- list of files in the workspace with their digests, under the session's content key
  root TEXT,                             -- the message whose task a follow-up continues
  principal_kind TEXT NOT NULL DEFAULT 'unsigned', -- a message of an unsigned principal may ask for nothing
  answers TEXT,                          -- the question that it answers
  group_id TEXT NOT NULL DEFAULT '',     -- the address for the reply on a channel
  thread_id TEXT,                        -- null: the reply goes to the origin of the session
  mentions INTEGER NOT NULL DEFAULT 0,   -- 1: it mentions the agent and opened a turn for that
  CHECK ((waits IS NOT NULL) = (status IN ('queued','processing')))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX messages_by_event ON messages (channel, sender, event_id) WHERE event_id IS NOT NULL;
CREATE INDEX messages_waiting ON messages (session_id, trigger, seq) WHERE waits = 1;
-- A person's waiting messages in sessions of other people, and those on a channel over a network; both are for the quota.
CREATE INDEX messages_waiting_of ON messages (principal, bytes) WHERE waits = 1 AND trigger = 1 AND of_another = 1;
CREATE INDEX messages_waiting_on ON messages (channel, bytes) WHERE waits = 1 AND trigger = 1 AND channel <> 'loopback';
-- Messages that no turn has shown and that do not wait for one.
CREATE INDEX messages_unshown ON messages (session_id, seq) WHERE first_ordinal IS NULL AND waits IS NULL;
CREATE INDEX messages_by_root ON messages (root) WHERE root IS NOT NULL;
CREATE INDEX messages_mentioning ON messages (session_id, group_id, thread_id) WHERE mentions = 1;

-- Messages between agents: requests of a call, and the answers that return.
CREATE TABLE agent_messages (
  message_id TEXT PRIMARY KEY NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('request','answer')),
  source_agent TEXT NOT NULL,
  source_session TEXT NOT NULL,
  source_message TEXT NOT NULL,
  hop INTEGER NOT NULL,
  chain TEXT NOT NULL,                 -- the message of the person or the schedule at its start
  answered INTEGER NOT NULL DEFAULT 0, -- of a request: 1 once it has an answer
  delivery TEXT                        -- of an answer: the delivery that is received when a turn takes it
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_messages_by_chain ON agent_messages (chain);

-- The tokens of the turns that the messages of a chain opened. Without the message at its start, no turn of a chain has a tool.
CREATE TABLE chain_tokens (
  chain TEXT PRIMARY KEY NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  tokens INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Turns. The row changes at the end anyway, so that its messages, its deliveries and its last item need no index by turn.
CREATE TABLE turns (
  ordinal INTEGER PRIMARY KEY NOT NULL,
  id TEXT NOT NULL UNIQUE,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  principal TEXT NOT NULL,
  scope TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open','closed')),
  opened_at INTEGER NOT NULL,
  deadline INTEGER NOT NULL,
  closed_at INTEGER,
  outcome TEXT,
  model_calls INTEGER NOT NULL,
  tool_calls INTEGER NOT NULL,
  result_bytes INTEGER NOT NULL,
  failure TEXT,                                    -- why it has no output of a model: a code
  failure_words TEXT,                              -- and a sentence of the host for the person
  waited_ms INTEGER NOT NULL DEFAULT 0,            -- time that it waited for people
  principal_kind TEXT NOT NULL DEFAULT 'unsigned', -- a turn of an unsigned principal may ask for nothing
  message_ids TEXT NOT NULL DEFAULT '[]',          -- JSON list of the messages that were put into it
  delivery_ids TEXT NOT NULL DEFAULT '[]',         -- JSON list
  last_seq INTEGER                                 -- of a closed turn: no item of it has a higher number
) STRICT;

-- Calls of tools. The host refuses an unknown state.
CREATE TABLE calls (
  id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  turn_id TEXT NOT NULL,
  output_item TEXT NOT NULL,
  position INTEGER NOT NULL,
  tool TEXT NOT NULL,
  class TEXT NOT NULL,
  runs TEXT NOT NULL,
  digest TEXT NOT NULL,            -- of the canonical arguments, with the recipe's name
  state TEXT NOT NULL,
  result_item TEXT,
  code TEXT NOT NULL DEFAULT '',   -- of a refusal
  stages TEXT NOT NULL DEFAULT '', -- the answer of each stage of its judgement
  allowance INTEGER                -- the allowance that has a use left for it while it is permitted
) STRICT;
CREATE INDEX calls_by_turn ON calls (turn_id);
CREATE INDEX calls_by_allowance ON calls (allowance) WHERE allowance IS NOT NULL;
-- A call that waits for people looks for an earlier call with the same content.
CREATE INDEX calls_by_digest ON calls (session_id, digest);

-- The copies of files that agents send. The host makes one when the agent asks, and it ends with the call.
CREATE TABLE sent_files (
  call_id TEXT PRIMARY KEY NOT NULL REFERENCES calls (id) ON DELETE CASCADE,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  item TEXT NOT NULL,   -- the name under which the content is encrypted
  name TEXT NOT NULL,
  media_type TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  digest TEXT NOT NULL, -- of the content
  content BLOB NOT NULL -- under the session's content key
) STRICT;
CREATE INDEX sent_files_by_session ON sent_files (session_id);

-- The accepted rows of `outbound.db`.
CREATE TABLE outbound_rows (
  session_id TEXT NOT NULL REFERENCES sessions (id),
  seq INTEGER NOT NULL,
  digest TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (session_id, seq)
) STRICT, WITHOUT ROWID;

-- The journal of deliveries: attempts, retry times and outcomes. Their numbers (rowids) are in blocks of 256, and `deliveries_unseen` has
-- those of complete blocks. The others are found by their number, so that a reply that is read soon changes no index.
CREATE TABLE deliveries (
  id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  turn_id TEXT,
  item TEXT NOT NULL,
  row_id TEXT,
  channel TEXT NOT NULL,
  generation INTEGER,                      -- of its channel; a later channel with the same name has another one
  platform_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('intent','sending','received','unknown','dead','dropped')),
  attempts INTEGER NOT NULL,
  next_at INTEGER,                         -- time of the next attempt
  reason TEXT,                             -- why it was not received, in words of the host
  created_at INTEGER NOT NULL,
  settled_at INTEGER,
  seen_at INTEGER,                         -- when the person got it over the API; null: not yet
  call_id TEXT,                            -- the call of a message to a destination; null for a reply and a notice
  over_network INTEGER NOT NULL DEFAULT 1, -- 1: the journal sends it; any other is complete with its row
  group_id TEXT NOT NULL DEFAULT '',
  unseen INTEGER                           -- 1: a reply on this host that no client got, in a complete block
) STRICT;
CREATE INDEX deliveries_open_by_session ON deliveries (session_id, created_at) WHERE state IN ('intent','sending');
CREATE INDEX deliveries_lost ON deliveries (created_at) WHERE state IN ('unknown','dead');
CREATE INDEX deliveries_out ON deliveries (channel, state, session_id) WHERE state IN ('intent','sending') AND over_network = 1;
CREATE INDEX deliveries_by_call ON deliveries (call_id) WHERE call_id IS NOT NULL;
CREATE INDEX deliveries_unseen ON deliveries (session_id) WHERE unseen = 1;

-- Notes of agents.
CREATE TABLE memories (
  ordinal INTEGER PRIMARY KEY NOT NULL,
  id TEXT NOT NULL UNIQUE,
  agent_id TEXT NOT NULL,
  session_id TEXT,                    -- the conversation in which it was first kept
  turn_id TEXT,
  author TEXT NOT NULL,
  principal TEXT NOT NULL,            -- on whose behalf
  labels TEXT NOT NULL,
  digest TEXT NOT NULL,
  text TEXT NOT NULL,
  by_person INTEGER NOT NULL,         -- 1: a person wrote it without an agent, so it belongs to no conversation
  created_at INTEGER NOT NULL,
  indexed INTEGER NOT NULL DEFAULT 0, -- 1: its words are in `memories_text`
  UNIQUE (agent_id, digest)
) STRICT;
CREATE INDEX memories_unindexed ON memories (ordinal) WHERE indexed = 0;
CREATE INDEX memories_by_agent ON memories (agent_id, ordinal);

-- The conversations in which a note was kept. The note is removed with the last of them.
CREATE TABLE memory_sources (
  session_id TEXT NOT NULL,
  ordinal INTEGER NOT NULL REFERENCES memories (ordinal) ON DELETE CASCADE,
  PRIMARY KEY (session_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_sources_by_note ON memory_sources (ordinal);

-- The words of notes. Each has its agent as a prefix, so that a search reads only the words of one agent.
CREATE VIRTUAL TABLE memories_text USING fts5 (words, content = '', tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'");
INSERT INTO memories_text (memories_text, rank) VALUES ('secure-delete', 1);

-- ==== Decisions of people ====

-- Changes of an agent or its capabilities: proposed, decided by people, applied once.
CREATE TABLE changes (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  agent_id TEXT,                        -- the agent that it concerns or that proposed it; null for another change by a person
  requester TEXT NOT NULL,              -- agt_… or per_…
  principal TEXT NOT NULL,              -- per_…: the person on whose behalf
  session_id TEXT,                      -- the session of the agent that proposed it
  turn_id TEXT,
  message_id TEXT,
  call_id TEXT UNIQUE,
  payload TEXT NOT NULL,                -- canonical, completed by the checks
  before TEXT NOT NULL,                 -- the earlier value of the setting, canonical
  facts TEXT NOT NULL,                  -- the referenced names at that time, canonical
  digest TEXT NOT NULL,                 -- of requester and content: two equal requests of one requester are one
  labels TEXT NOT NULL,                 -- of the output that asked
  reason TEXT NOT NULL,
  generation INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending','approved','applied','rejected','expired','withdrawn','failed','unknown')),
  shown TEXT,                           -- digest of the review page of the decision
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  decided_by TEXT,                      -- per_…
  decided_at INTEGER,
  applied_at INTEGER,
  outcome TEXT,                         -- in words of the host, or the reason of a rejection
  asked_seq INTEGER NOT NULL DEFAULT 0, -- place in the ledger
  remind_at INTEGER                     -- when people are told that it expires soon; null: they were told
) STRICT;
CREATE INDEX changes_by_status ON changes (status, ordinal);
CREATE UNIQUE INDEX changes_asked ON changes (digest) WHERE status = 'pending';
CREATE INDEX changes_pending ON changes (requester) WHERE status = 'pending';
CREATE INDEX changes_ending ON changes (expires_at) WHERE status = 'pending';
CREATE INDEX changes_by_agent ON changes (agent_id, status, ordinal);
CREATE INDEX changes_by_principal ON changes (principal, status, ordinal);
CREATE INDEX changes_by_session ON changes (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX changes_to_remind ON changes (remind_at) WHERE remind_at IS NOT NULL;

-- Approval requests: calls that wait for people. The host refuses an unknown status.
CREATE TABLE requests (
  ordinal INTEGER PRIMARY KEY NOT NULL,
  id TEXT NOT NULL UNIQUE,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  agent_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,       -- the newest turn that asked
  call_id TEXT NOT NULL,       -- the newest call that asked
  output_item TEXT NOT NULL,   -- the output of that call: its requests form one sheet
  root TEXT NOT NULL,          -- the message whose task it is
  principal TEXT NOT NULL,
  scope TEXT NOT NULL,         -- the classes of the turn that asked
  tool TEXT NOT NULL,
  class TEXT NOT NULL,
  digest TEXT NOT NULL,        -- of the canonical arguments, with the recipe's name
  arguments BLOB NOT NULL,     -- canonical JSON text, under the session's content key
  labels TEXT NOT NULL,
  reasons TEXT NOT NULL,       -- canonical JSON
  origins TEXT NOT NULL,       -- canonical JSON
  generation INTEGER NOT NULL,
  status TEXT NOT NULL,
  told TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL, -- of the request; once it is approved, of the approvals
  asked_seq INTEGER NOT NULL,  -- of its ledger entry
  decided_by TEXT,
  decided_at INTEGER,
  outcome TEXT,
  remind_at INTEGER            -- when people are told that it expires soon; null: they were told
) STRICT;
CREATE UNIQUE INDEX requests_once ON requests (session_id, root, digest) WHERE status IN ('pending','approved','running');
CREATE INDEX requests_by_status ON requests (status, ordinal);
CREATE INDEX requests_by_session ON requests (session_id, ordinal);
CREATE INDEX requests_by_call ON requests (call_id);
CREATE INDEX requests_by_principal ON requests (principal, created_at);
CREATE INDEX requests_to_remind ON requests (remind_at) WHERE remind_at IS NOT NULL;

-- The approvals of a change or of a call; each one counts once.
CREATE TABLE approvals (
  id TEXT PRIMARY KEY NOT NULL,
  subject TEXT NOT NULL, -- a change or an approval request
  person_id TEXT NOT NULL,
  token TEXT NOT NULL,   -- canonical; see `approval`
  state TEXT NOT NULL CHECK (state IN ('live','used','void')),
  given_at INTEGER NOT NULL,
  ended_at INTEGER,
  CHECK ((state = 'live') = (ended_at IS NULL))
) STRICT;
CREATE UNIQUE INDEX approvals_once ON approvals (subject, person_id) WHERE state = 'live';
CREATE INDEX approvals_by_subject ON approvals (subject);

-- The questions of agents to the people of their turns.
CREATE TABLE questions (
  ordinal INTEGER PRIMARY KEY NOT NULL,
  id TEXT NOT NULL UNIQUE,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  agent_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,   -- the first turn that asked
  call_id TEXT NOT NULL,   -- its call
  asked_for TEXT NOT NULL, -- the newest message of that turn: a later try at it asks the same question
  root TEXT NOT NULL,      -- the message whose task it is
  principal TEXT NOT NULL, -- the person concerned
  principal_kind TEXT NOT NULL,
  scope TEXT NOT NULL,     -- the classes of the turn that asked
  digest TEXT NOT NULL,    -- of the canonical arguments, with the recipe's name
  body BLOB NOT NULL,      -- question and options, canonical JSON text, under the session's content key
  labels TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  remind_at INTEGER,       -- null: the person was reminded, or the question has ended
  expires_at INTEGER NOT NULL,
  ended_by TEXT,
  ended_at INTEGER,
  outcome TEXT,
  answer TEXT              -- the message with the answer
) STRICT;
CREATE INDEX questions_by_status ON questions (status, ordinal);
CREATE INDEX questions_by_session ON questions (session_id, ordinal);
CREATE INDEX questions_by_principal ON questions (principal, ordinal);

-- ==== Schedules ====

-- Schedules: prompts that agents get at given times.
CREATE TABLE schedules (
  id TEXT PRIMARY KEY NOT NULL,
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  creator TEXT NOT NULL,   -- a person, who may be removed since
  change_id TEXT NOT NULL, -- the change that added it
  prompt TEXT NOT NULL,    -- '' once it is removed
  written_by TEXT NOT NULL,
  kind TEXT NOT NULL,      -- cron, every or at
  recurrence TEXT NOT NULL,
  zone TEXT NOT NULL,
  anchor INTEGER NOT NULL, -- the time from which periods count
  catch_up TEXT NOT NULL,
  may TEXT NOT NULL,       -- JSON list of classes and tools
  channel TEXT NOT NULL,   -- the origin of the conversation that gets the replies
  platform_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active','paused','ended','removed')),
  reason TEXT,
  next_due INTEGER,        -- null unless it is active
  failing_since INTEGER,   -- the first failure since the last success
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX schedules_due ON schedules (next_due) WHERE next_due IS NOT NULL;
CREATE INDEX schedules_by_agent ON schedules (agent_id);
CREATE INDEX schedules_by_creator ON schedules (creator);

-- The occurrences of schedules. A settled row never changes.
CREATE TABLE occurrences (
  ordinal INTEGER PRIMARY KEY NOT NULL,
  schedule_id TEXT NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
  due INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('scheduled','started','done','failed','skipped','unknown')),
  reason TEXT,
  count INTEGER NOT NULL, -- the number of skipped times that the row counts
  by_person TEXT,         -- the person who started it by hand
  message_id TEXT,
  receipt TEXT,           -- the delivery of the reply
  created_at INTEGER NOT NULL,
  settled_at INTEGER,
  UNIQUE (schedule_id, due)
) STRICT;
CREATE INDEX occurrences_open ON occurrences (ordinal) WHERE state IN ('scheduled','started');
CREATE INDEX occurrences_by_message ON occurrences (message_id) WHERE message_id IS NOT NULL;

-- ==== MCP servers ====

-- An MCP server as the change describes it, its last listing, and the listing that people confirmed with its manifests.
CREATE TABLE mcp_servers (
  name TEXT PRIMARY KEY NOT NULL,
  made_at INTEGER NOT NULL,
  described TEXT NOT NULL DEFAULT '{}', -- the payload of its `mcp_register`
  seen TEXT,                            -- canonical listing
  seen_at INTEGER,
  confirmed TEXT,                       -- canonical listing
  manifest TEXT,                        -- TOML; null: the strictest for every tool
  confirmed_at INTEGER,
  layer TEXT                            -- digest of its packages; null: none
) STRICT, WITHOUT ROWID;

-- The tools of a server that an agent has.
CREATE TABLE mcp_grants (
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  server TEXT NOT NULL REFERENCES mcp_servers (name) ON DELETE CASCADE,
  tools TEXT NOT NULL, -- canonical list of names
  PRIMARY KEY (agent_id, server)
) STRICT, WITHOUT ROWID;

-- The logins of people at MCP servers with OAuth.
CREATE TABLE mcp_logins (
  server TEXT PRIMARY KEY NOT NULL REFERENCES mcp_servers (name) ON DELETE CASCADE,
  wrapped BLOB,                       -- the tokens; null: a person has to log in again
  reason TEXT,                        -- of the end of the login
  made_at INTEGER NOT NULL,           -- the time of the tokens
  expires_at INTEGER,                 -- null: the issuer names no end
  renew_at INTEGER,                   -- null: never
  begun_at INTEGER NOT NULL DEFAULT 0 -- changes when a person logs in again, perhaps with another account; a renewal only changes `made_at`
) STRICT, WITHOUT ROWID;

-- ==== Skills ====

-- The places that packages are from.
CREATE TABLE skill_sources (
  name TEXT PRIMARY KEY NOT NULL,
  location TEXT NOT NULL,            -- an absolute directory, or an https URL
  serial INTEGER NOT NULL DEFAULT 0, -- the largest serial of its index that was seen
  added_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The keys whose signatures count.
CREATE TABLE skill_keys (
  id TEXT PRIMARY KEY NOT NULL, -- as minisign shows it
  name TEXT NOT NULL UNIQUE,
  public_key TEXT NOT NULL,
  skills TEXT NOT NULL,         -- JSON list of names; empty for every name
  added_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;

-- Versions that no agent gets.
CREATE TABLE skill_revocations (
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  revoked_at INTEGER NOT NULL,
  PRIMARY KEY (name, version)
) STRICT, WITHOUT ROWID;

-- One row for each verified package. A version never gets other bytes.
CREATE TABLE skill_packages (
  digest TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  signer TEXT NOT NULL,   -- the id of the key
  source TEXT NOT NULL,
  description TEXT NOT NULL,
  manifest TEXT NOT NULL, -- skill.toml
  resolved_at INTEGER NOT NULL,
  UNIQUE (name, version)
) STRICT, WITHOUT ROWID;

-- The texts of a package that an agent reads with read_skill.
CREATE TABLE skill_texts (
  digest TEXT NOT NULL REFERENCES skill_packages (digest) ON DELETE CASCADE,
  path TEXT NOT NULL,
  content TEXT NOT NULL,
  PRIMARY KEY (digest, path)
) STRICT, WITHOUT ROWID;

-- The skills of agents.
CREATE TABLE agent_skills (
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  digest TEXT NOT NULL REFERENCES skill_packages (digest),
  pinned INTEGER NOT NULL DEFAULT 0,
  brought TEXT NOT NULL, -- JSON: the grants that the agent has because of the skill
  change_id TEXT NOT NULL,
  installed_at INTEGER NOT NULL,
  PRIMARY KEY (agent_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_skills_by_digest ON agent_skills (digest);

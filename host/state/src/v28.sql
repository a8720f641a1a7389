-- Skills: where packages come from, whose signatures count, the packages that were verified, and the skills of agents.
CREATE TABLE skill_sources (
  name TEXT PRIMARY KEY NOT NULL,
  location TEXT NOT NULL,              -- an absolute directory, or an https URL
  serial INTEGER NOT NULL DEFAULT 0,   -- the largest serial of its index that was seen
  added_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE skill_keys (
  id TEXT PRIMARY KEY NOT NULL,        -- as minisign shows it
  name TEXT NOT NULL UNIQUE,
  public_key TEXT NOT NULL,
  skills TEXT NOT NULL,                -- JSON list of names; empty for every name
  added_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;

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
  signer TEXT NOT NULL,                -- the id of the key
  source TEXT NOT NULL,
  description TEXT NOT NULL,
  manifest TEXT NOT NULL,              -- skill.toml
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

CREATE TABLE agent_skills (
  agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  digest TEXT NOT NULL REFERENCES skill_packages (digest),
  pinned INTEGER NOT NULL DEFAULT 0,
  brought TEXT NOT NULL,               -- JSON: the grants that the agent has because of the skill
  change_id TEXT NOT NULL,
  installed_at INTEGER NOT NULL,
  PRIMARY KEY (agent_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_skills_by_digest ON agent_skills (digest);

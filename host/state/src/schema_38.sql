-- An allowance is for one tool or for several, up to its time or up to the answer of a task.
ALTER TABLE allowances ADD COLUMN tools TEXT NOT NULL DEFAULT '{}'; -- canonical JSON: each tool with its digest
ALTER TABLE allowances ADD COLUMN root TEXT;                        -- the message of the task; null: only its time ends it
UPDATE allowances SET tools = json_object(tool, manifest);
DROP INDEX allowances_by_person;
ALTER TABLE allowances DROP COLUMN tool;
ALTER TABLE allowances DROP COLUMN manifest;
CREATE INDEX allowances_by_person ON allowances (person_id, agent_id);
CREATE INDEX allowances_until_answer ON allowances (root) WHERE root IS NOT NULL;
-- Directories that a person calls theirs, and all directories that an agent or an MCP server could write, now or before: the text of one that
-- overlaps them is never a person's. A changed or removed grant keeps its row here.
ALTER TABLE agent_mounts ADD COLUMN mine TEXT; -- the person; null: its text is text of others
CREATE TABLE written_directories (
  path TEXT PRIMARY KEY NOT NULL,
  writer TEXT NOT NULL            -- the first one, in words of the host
) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO written_directories (path, writer)
  SELECT source, 'agent ' || name FROM agent_mounts JOIN agents ON agents.id = agent_id WHERE read_only = 0;
INSERT OR IGNORE INTO written_directories (path, writer)
  SELECT json_extract(mount.value, '$.source'), 'MCP server ' || name
  FROM mcp_servers, json_each(described, '$.mounts') AS mount
  WHERE json_extract(mount.value, '$.source') IS NOT NULL AND json_extract(mount.value, '$.read_only') IS NOT 1;
-- Each applied change has its directories in its payload, in the setting before it, or in the parts of a skill.
INSERT OR IGNORE INTO written_directories (path, writer)
  SELECT json_extract(mount.value, '$.source'), 'a grant of before, ' || waiting.id
  FROM waiting, json_tree(waiting.own) AS mount
  WHERE waiting.kind = 'chg' AND waiting.status = 'done' AND mount.type = 'object'
    AND json_type(mount.value, '$.source') = 'text' AND json_type(mount.value, '$.read_only') = 'false';
-- The persons who call text of a tool theirs, and the arguments of MCP servers to which agents ever sent a value. An argument of a tool that
-- does more than read ends the effect.
ALTER TABLE mcp_servers ADD COLUMN mine TEXT NOT NULL DEFAULT '{}'; -- canonical JSON: each tool with its person
CREATE TABLE server_arguments (
  place TEXT NOT NULL,            -- as in server_values
  argument TEXT NOT NULL,         -- TOOL.ARGUMENT
  PRIMARY KEY (place, argument)
) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO server_arguments (place, argument)
  SELECT DISTINCT place, argument FROM server_values WHERE argument <> '';

-- The giver of a role or a token, and its place in the order of the ledger. Two approvals count together only if neither person gave
-- the other one their role or token.
-- `*_by` is a canonical list of pairs, each of a person and the token that they came with or null; null where the host gave it.
ALTER TABLE people ADD COLUMN role_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE people ADD COLUMN role_by TEXT;
ALTER TABLE tokens ADD COLUMN issued_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN issued_by TEXT;
ALTER TABLE agent_roles ADD COLUMN given_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agent_roles ADD COLUMN given_by TEXT;
ALTER TABLE changes ADD COLUMN asked_seq INTEGER NOT NULL DEFAULT 0;

-- Changes that wait are older than this version. Their place, and that of roles and tokens, comes from the ledger. Archives are older
-- than all entries in the table.
UPDATE changes SET asked_seq = coalesce(
  (SELECT max(seq) FROM ledger WHERE data ->> 'what' = 'change.proposed' AND data ->> 'change' = changes.id),
  (SELECT min(seq) FROM ledger), 0) WHERE status IN ('pending','approved','unknown');
UPDATE people SET role_seq = coalesce(
  (SELECT max(seq) FROM ledger WHERE data ->> 'what' IN ('person.created','person.role') AND data ->> 'person' = people.id), 0)
  WHERE EXISTS (SELECT 1 FROM changes WHERE status IN ('pending','approved','unknown'));
UPDATE tokens SET issued_seq = coalesce(
  (SELECT max(seq) FROM ledger WHERE data ->> 'what' IN ('token.created','token.rotated') AND data ->> 'token' = tokens.id), 0)
  WHERE EXISTS (SELECT 1 FROM changes WHERE status IN ('pending','approved','unknown'));
UPDATE agent_roles SET given_seq = coalesce(
  (SELECT max(seq) FROM ledger WHERE data ->> 'what' = 'agent.roles' AND data ->> 'agent' = agent_roles.agent_id
     AND data ->> 'person' = agent_roles.person_id), 0)
  WHERE EXISTS (SELECT 1 FROM changes WHERE status IN ('pending','approved','unknown'));

-- An allowance is for one tool or for several, up to its time or up to the answer of a task.
ALTER TABLE allowances ADD COLUMN tools TEXT NOT NULL DEFAULT '{}'; -- canonical JSON: each tool with its digest
ALTER TABLE allowances ADD COLUMN root TEXT;                        -- the message of the task; null: only its time ends it
UPDATE allowances SET tools = json_object(tool, manifest);
DROP INDEX allowances_by_person;
ALTER TABLE allowances DROP COLUMN tool;
ALTER TABLE allowances DROP COLUMN manifest;
CREATE INDEX allowances_by_person ON allowances (person_id, agent_id);
CREATE INDEX allowances_until_answer ON allowances (root) WHERE root IS NOT NULL;

-- The order of items in a conversation. A message that only informs keeps the turn that showed it first. A message that is retried
-- follows all earlier items.
CREATE INDEX turns_by_session ON turns (session_id, opened_at);
UPDATE messages SET first_ordinal = (SELECT min(ordinal) FROM turns
    WHERE turns.session_id = messages.session_id AND turns.opened_at >= messages.received_at)
  WHERE trigger = 0 AND status IN ('completed','delivered');
DROP INDEX turns_by_session;
ALTER TABLE messages ADD COLUMN moved_seq INTEGER;
CREATE INDEX messages_unshown ON messages (session_id, seq) WHERE first_ordinal IS NULL;

-- Outputs of the script. The prompt of another model does not show them as its own words.
ALTER TABLE items ADD COLUMN scripted INTEGER NOT NULL DEFAULT 0;
UPDATE items SET scripted = 1 WHERE kind = 'output' AND id IN (SELECT json_extract(data, '$.item') FROM ledger
    WHERE turn_id IS NOT NULL AND json_extract(data, '$.what') = 'output.sealed' AND json_extract(data, '$.model') = 'scripted');

-- Tools are enabled by name, also those for requests to the host. Agents keep the one that works, and lose those that never worked.
UPDATE agents SET enabled_tools = (SELECT json_group_array(name) FROM (
    SELECT value AS name, key AS place FROM json_each(agents.enabled_tools)
      WHERE value NOT IN ('schedule_task','ask_user_question','skill_install','send_message','request_capability_change')
    UNION ALL SELECT 'request_capability_change', 1000000 ORDER BY place));

UPDATE messages SET kind = 'webhook' WHERE kind = 'chat' AND channel <> 'loopback';

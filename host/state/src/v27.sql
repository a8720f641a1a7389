-- Nothing reads these columns: a chain goes from message to message.
ALTER TABLE agent_messages DROP COLUMN source_turn;
ALTER TABLE agent_messages DROP COLUMN answers;

-- The row of a session changes in the commits that open and close its turn, so the open turn is a column there in place of an index.
ALTER TABLE sessions ADD COLUMN open_turn INTEGER; -- the ordinal of its open turn
UPDATE sessions SET open_turn = (SELECT ordinal FROM turns WHERE session_id = sessions.id AND state = 'open');
DROP INDEX one_open_turn;

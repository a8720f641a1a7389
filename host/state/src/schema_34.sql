-- The number of the last item before a turn. It orders turns and messages, which the clock does not: it may go back.
ALTER TABLE turns ADD COLUMN first_seq INTEGER;

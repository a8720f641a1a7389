-- The host forgets a turn whose items were dropped. It finds those items by their turn.
CREATE INDEX items_by_turn ON items (turn_id) WHERE turn_id IS NOT NULL;

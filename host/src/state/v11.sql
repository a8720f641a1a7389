-- Tools are enabled by name, requests to the host as well: agents keep the one that works, and lose those that never did.
UPDATE agents SET enabled_tools = (SELECT json_group_array(name) FROM (
    SELECT value AS name, key AS place FROM json_each(agents.enabled_tools)
      WHERE value NOT IN ('schedule_task','ask_user_question','skill_install','send_message','request_capability_change')
    UNION ALL SELECT 'request_capability_change', 1000000 ORDER BY place));

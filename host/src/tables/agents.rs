//! Agents, and what each of them has: roles, software, directories. Tables: `agents`, `agent_roles`, `agent_packages`, `agent_mounts`.

//! Model endpoints with their fallbacks, secrets, ceilings and usage. Tables: `models`, `model_fallbacks`, `secrets`, `agent_budgets`, `usage`.

//! Items of conversations, and summaries. Tables: `items`, `summaries`.

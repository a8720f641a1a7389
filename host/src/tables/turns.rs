//! Turns and their calls. Tables: `turns`, `calls`.

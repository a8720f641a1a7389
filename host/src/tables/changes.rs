//! Changes and approvals. Tables: `changes`, `approvals`.

//! Sessions, the uids that are free again, and the events that channels sent. Tables: `sessions`, `uids_free`, `events`, `outbound_rows`.

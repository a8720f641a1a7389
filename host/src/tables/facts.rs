//! Single facts about this host. Tables: `meta`.

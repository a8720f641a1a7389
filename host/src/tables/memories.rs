//! Notes that agents keep, and their sources. Tables: `memories`, `memories_text`, `memory_sources`.

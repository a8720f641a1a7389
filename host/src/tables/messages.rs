//! Messages. Tables: `messages`.

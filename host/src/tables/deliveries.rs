//! Deliveries. Tables: `deliveries`.

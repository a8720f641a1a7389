//! People, their identities on channels, and tokens. Tables: `people`, `identities`, `tokens`.

//! Tests of the crate from outside: the way of a skill from an author to a verified package.

mod skills;

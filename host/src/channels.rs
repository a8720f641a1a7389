//! The words that come in and go out: messages, replies, notifications, and messages between agents.

pub mod agent_messages;
pub mod inbound;
pub mod notifications;
pub mod outbound;

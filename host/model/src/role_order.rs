//! The order of roles in a conversation that the strictest servers and templates accept, however a turn ended.
//!
//! Never changes or reorders words: it only adds messages in fixed words of the host. See [`crate::render`].

use super::render::{End, Message, Said};

/// First message of a conversation that would begin with words of the model.
pub const BEGINS: &str = "[The host: what was said before is not shown.]";
/// Last message of a conversation that would end with words of the model.
pub const NOTHING_NEW: &str = "[The host: there are no newer messages.]";
/// Words in place of an answer, between results and the next message: several templates refuse a user directly behind a tool.
pub const UNANSWERED: &str = "(This turn ended here, without an answer.)";

/// Adds a text or an image to the last message of a user, or begins one. A turn that ended behind a result gets words in place of its
/// answer.
pub fn add_said<'a>(messages: &mut Vec<Message<'a>>, new: Said<'a>) {
    match messages.last_mut() {
        Some(Message::User(said)) => return said.push(new),
        Some(Message::Results(_)) => {
            messages.push(Message::Assistant { text: UNANSWERED.to_owned(), calls: Vec::new(), attached: Vec::new() });
        }
        Some(Message::Assistant { .. }) | None => {}
    }
    messages.push(Message::User(vec![new]));
}

/// Lets a conversation begin with a message of a user and not end with one of the model. Moves the ends along.
pub fn close(messages: &mut Vec<Message<'_>>, ends: &mut [End]) {
    if !matches!(messages.first(), Some(Message::User(_))) {
        messages.insert(0, Message::User(vec![Said::Text(BEGINS.into())]));
        ends.iter_mut().for_each(|end| end.message += 1);
    }
    if let Some(Message::Assistant { .. }) = messages.last() {
        messages.push(Message::User(vec![Said::Text(NOTHING_NEW.into())]));
    }
}

#[cfg(test)]
mod tests;

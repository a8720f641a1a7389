//! The second attempt after a server refused a call that its own model made.
//!
//! Adds the reason for the model to one request, and nothing to the record. See [`crate::remote`].

use super::fault::Detail;
use super::{Part, Prompt};

/// The author of the reason, for the model.
const AUTHOR: &str = "the server of the model";
/// The remark of the host behind the reason.
const REMARK: &str = "your last answer had a call that the server could not read, so nothing ran. If the call is needed, make it again: \
                      the exact name of one tool that is offered, and arguments that are one JSON object.";

/// Returns the prompt with the reason of the refusal behind it. The words of the server are data, as all words of others.
pub fn with_reason(prompt: &Prompt, reason: &Detail) -> Prompt {
    let mut prompt = prompt.clone();
    let words = reason.for_operator().map(|words| Part::Context { author: AUTHOR.to_owned(), text: words.to_owned() });
    prompt.parts.extend(words);
    prompt.parts.push(Part::Remark { text: REMARK.to_owned() });
    prompt
}

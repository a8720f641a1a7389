//! The sentences about a model endpoint that was tested, or that became the default.

use ironclaw_operator::{KeptModel, TestedModel};

/// Returns the result of the test of an endpoint.
pub fn test_result(tested: &TestedModel) -> String {
    let TestedModel { name, took_ms, input_tokens, output_tokens, said } = tested;
    let words = if said.is_empty() { "no text".to_owned() } else { format!("{said:?}") };
    format!("{name} answered in {took_ms} ms ({input_tokens} tokens in, {output_tokens} out): {words}")
}

/// Returns the size of the context that the server of a new endpoint stated.
pub fn context_notice(kept: &KeptModel) -> Option<String> {
    let (place, tokens) = (kept.context_stated_at.as_ref()?, kept.model.settings.context_tokens?);
    Some(format!("its server says in {place} that the model reads {tokens} tokens, prompt and output together"))
}

/// Returns the notice about a new default endpoint, with the agents that now use it.
pub fn default_notice(kept: &KeptModel) -> String {
    let name = &kept.model.name;
    match kept.moved.as_slice() {
        [] => format!("{name} is now the default"),
        moved => format!("{name} is now the default, also for {}", moved.join(", ")),
    }
}

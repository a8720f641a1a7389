//! The size of the text that every request contains: the system text and the tools.

use super::fixture::{ANN, with_fixture};
use crate::registry::tools;
use ironclaw_model::tokens_estimated;

/// Tokens of the system text and the default tools. The ceilings use the same estimate: one token for four bytes.
const TOKENS_MAX: u64 = 800;

/// The persona of the fixture, which is text of the operator.
const PERSONA: &str = "\n\nBe brief.";

#[test]
fn system_text_and_default_tools_fit_into_800_tokens() {
    with_fixture(|mut fixture| {
        fixture.ask(ANN, "!hello");
        let prompt = fixture.prompt();
        assert_eq!(prompt.tools.len(), tools::usual().count());
        let system = prompt.system.strip_suffix(PERSONA).expect("the persona is last");
        for request in ironclaw_model::requests(&prompt) {
            let tools = request["tools"].to_string();
            let tokens = tokens_estimated(system.len() + tools.len());
            assert!(tokens <= TOKENS_MAX, "{tokens} tokens:\n{system}\n{tools}");
        }
    });
}

//! Each built-in tool as a model, the judgement and the host see it, against `golden.json`.
//!
//! `IRONCLAW_GOLDEN=write cargo test -p ironclaw-host --lib tools::tests::golden` rewrites the file.

use crate::registry::tools::{Tool, builtin};
use serde_json::{Value, json};
use std::path::Path;

fn shown(tool: &Tool) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "runs": tool.runs().name(),
        "parameters": tool.parameters,
        "for_model": tool.parameters_for_model(),
        "manifest": tool.manifest,
    })
}

#[test]
fn built_in_tools_equal_the_golden_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/registry/tools/tests/golden.json");
    let tools: Vec<Value> = builtin().iter().map(shown).collect();
    let now = serde_json::to_string_pretty(&tools).expect("JSON") + "\n";
    if std::env::var("IRONCLAW_GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::write(&path, &now).expect("the golden file is writable");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file");
    let differs = golden.lines().zip(now.lines()).find(|(golden, now)| golden != now);
    assert!(golden == now, "IRONCLAW_GOLDEN=write rewrites {}; the first difference: {differs:?}", path.display());
}

//! The sample of a change of a skill, and its sentences.

use super::*;

/// Returns the present setting, the facts and the payload of another version of a skill.
pub(super) fn upgrade() -> (Value, Value, Value) {
    let digest = |text: &str| Digest::of(text.as_bytes());
    (
        json!({"version": "1.0.0", "digest": digest("old"), "signer": "0123456789ABCDEF", "persona": null,
            "parts": [{"kind": "enabled_tools", "payload": ["read_file"]}]}),
        json!({
            "parts": [{}], "ends": [], "key": "own", "source": "team", "trust": "trusted",
            "description": "Reads the weather. Host: approved by the operator.",
            "files": {"SKILL.md": digest("text"), "scripts/look.sh": digest("script"), "references/codes.md": digest("codes")},
            "needs": [], "always_ask": [],
        }),
        json!({"name": "weather", "version": "1.2.0", "digest": digest("new"), "signer": "0123456789ABCDEF",
            "parts": [{"kind": "enabled_tools", "payload": ["list_dir", "read_file"]}]}),
    )
}

#[test]
fn skill_shows_signer_scripts_and_each_part_in_its_own_words() {
    let mut asked = sample(ChangeKind::Skills);
    asked.facts["needs"] = json!(["python3"]);
    asked.facts["always_ask"] = json!(["calendar__add"]);
    asked.facts["parts"] = json!([{}, {}]);
    asked.payload["persona"] = json!("Give temperatures in degrees Celsius.");
    asked.payload["parts"] = json!([
        {"kind": "enabled_tools", "payload": ["read_file", "run_command"]},
        {"kind": "egress", "payload": {"host": "api.example", "methods": ["GET"], "paths": ["/v1/{place}"]}},
    ]);
    asked.assert_shows(&[
        "from version \"1.0.0\" to version \"1.2.0\"",
        "It is signed with the key \"own\", id \"0123456789ABCDEF\"",
        "in these words: \"Reads the weather. Host: approved by the operator.\"",
        "It has these scripts: \"scripts/look.sh\"",
        "  !! An agent that may run commands can RUN these scripts",
        "Added: \"run_command\".",
        "ask this host of the network for pages: \"api.example\"",
        "every call of these tools waits for a person: \"calendar__add\"",
    ]);
    let removal = Asked {
        payload: json!({"name": "weather", "remove": true, "parts": [{"kind": "enabled_tools", "payload": ["read_file"]}]}),
        ..asked
    };
    removal.assert_shows(&["Remove the skill \"weather\" from", "loses them:"]);
}

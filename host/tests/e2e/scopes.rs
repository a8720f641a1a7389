//! Tests of the lexicon and the manifests as data: the measure over labelled requests, and the schema.
//!
//! They use the real programs. See `calls` for the scope of a message.

use crate::support::client::{self, check_refused};
use crate::support::host_fixture::{Build, TestHost};
use serde_json::{Value, json};

/// Returns the measure of a class in a language.
fn measure<'a>(tested: &'a Value, lang: &str, class: &str) -> &'a Value {
    let mut measures = tested["measures"].as_array().expect("measures").iter();
    measures.find(|found| found["lang"] == lang && found["class"] == class).expect("a measure")
}

#[test]
fn scope_test_reports_each_language_and_class() {
    let host = TestHost::new().started();
    let tested = host.ctl(&["--json", "scope", "test"]).ok().json();
    for lang in ["en", "de", "es", "fr", "zh"] {
        for class in ["read", "write", "send"] {
            let found = measure(&tested, lang, class);
            let is_high = |name: &str| found[name].as_f64().is_some_and(|share| share >= 0.5);
            assert!(is_high("precision") && is_high("recall"), "{found}");
        }
    }
    let wrong = tested["wrong"].as_array().expect("a list").len();
    let cases = tested["cases"].as_u64().expect("a number");
    assert!(cases > 100 && (wrong as u64) < cases / 4, "{wrong} of {cases}");
    let file = host.home.join("cases.toml");
    let cases = "[[case]]\nlang = 'en'\ntext = 'send it to Ana'\nwants = ['send']\n\
                 [[case]]\nlang = 'en'\ntext = 'hello'\nwants = ['send']\n";
    std::fs::write(&file, cases).expect("a file");
    let path = file.to_str().expect("a path");
    let tested = host.ctl(&["--json", "scope", "test", "--file", path]).ok().json();
    let send = measure(&tested, "en", "send");
    assert_eq!((&tested["cases"], &send["precision"], &send["recall"]), (&json!(2), &json!(1.0), &json!(0.5)));
    assert_eq!(tested["wrong"][0], json!({"lang": "en", "text": "hello", "wants": ["send"], "got": [], "words": []}));
}

#[test]
fn malformed_scope_cases_are_refused_by_line_and_field() {
    let host = TestHost::own(Build::Plain).started();
    let file = host.home.join("cases.toml");
    let path = file.to_str().expect("a path");
    let refused = || host.ctl_error(&["scope", "test", "--file", path]);
    for (cases, place) in [
        ("[[case]]\nlang = 'en'\ntext = 'x'\nwants = ['delete']\n", "line 4, field wants"),
        ("[[case]]\nlang = 'en'\ntext = 'x'\nwants = []\ntraps = true\n", "line 5, field traps"),
        ("[[case]]\nlang = 'en'\nwants = []\n", "field text"),
        ("[[case]]\nlang = \n", "line 2"),
    ] {
        std::fs::write(&file, cases).expect("a file");
        let error = refused();
        assert_eq!(error["code"], "scope_cases_malformed", "{cases}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(place)), "{place}: {error}");
    }
    std::fs::write(&file, "#".repeat(256 * 1024 + 1)).expect("a file");
    assert_eq!(refused()["code"], "file_refused");
    std::fs::remove_file(&file).expect("removed");
    assert_eq!(refused()["code"], "file_refused");
    // Another client than ironctl gets the same bound.
    let body = json!({ "cases": "#".repeat(256 * 1024 + 1) }).to_string();
    check_refused(&client::Raw::of(&host).ask("POST", "/v1/scope/test", &body), 413, "request_too_large");
}

#[test]
fn schema_of_manifests_is_printed() {
    let host = TestHost::new().started();
    let schema = host.ctl(&["--json", "tool", "schema"]).ok().json();
    let manifest = &schema["$defs"]["manifest"]["properties"];
    assert_eq!(manifest["class"]["enum"], json!(["read", "write", "send", "exec", "trade", "ask"]));
    assert_eq!(schema["$defs"]["argument"]["properties"]["rule"]["enum"], json!(["floor", "content", "free"]));
    let shown: Value = serde_json::from_str(&host.ctl(&["tool", "schema"]).ok().stdout).expect("JSON");
    assert_eq!(shown, schema, "a person sees the same document");
}

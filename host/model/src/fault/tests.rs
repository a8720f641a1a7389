//! Tests of the sentences about failures. See [`super`].

use super::*;

fn failure(fault: Fault) -> Failure {
    Failure {
        endpoint: "local".into(),
        model: "small".into(),
        key: Some("openai-key".into()),
        fault,
        tries: 1,
        detail: Detail::new("words of its server", None),
    }
}

#[test]
fn every_fault_has_a_sentence_without_the_providers_words() {
    use Fault as F;
    let second = Some(Duration::from_secs(90));
    let unreached = [F::Absent, F::Broken, F::Unreachable, F::PublicPlain, F::Forbidden, F::Untrusted];
    let unanswered = [F::Closed, F::Silent, F::Stalled, F::Late, F::Cut];
    let of_keys = [F::NoKey, F::KeyUnreadable, F::KeyUnusable, F::KeyWanted, F::KeyRefused, F::NoCredit];
    let busy = [F::RateLimited { retry_after: second }, F::Overloaded { retry_after: None }];
    let refused = [
        F::ServerError { status: 500, retry_after: None },
        F::ConversationFails { status: 500 },
        F::BadCall,
        F::Redirected,
        F::ModelUnknown,
        F::NoTools,
    ];
    let unfit =
        [F::ContextTooLong, F::BadRequest(400), F::OtherApi, F::Malformed, F::TooLarge, F::Truncated, F::Withheld];
    let own = [F::Script, F::OverCeiling];
    for fault in [&unreached[..], &unanswered, &of_keys, &busy, &refused, &unfit, &own].concat() {
        let failed = Failed { failures: vec![failure(fault)], usage: Usage::default() };
        let sentence = failed.sentence();
        assert!(sentence.contains("`local`") && !sentence.contains("words of its server"), "{sentence}");
        assert!(!sentence.ends_with('.'), "{sentence}");
        assert!(!format!("{failed:?}").contains("words of its server"));
        assert!(fault.code().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
    }
    let key = failure(Fault::KeyRefused).sentence();
    assert_eq!(
        key,
        "the model endpoint `local` did not accept its key: `ironctl secret rotate openai-key` sets another"
    );
}

#[test]
fn provider_detail_loses_key_control_characters_and_excess() {
    let key = "sk-very-secret";
    let words = format!("Incorrect key {key}\u{1b}[31m\u{202e}x {}", "y".repeat(1000));
    let detail = Detail::new(&words, Some(key));
    let shown = detail.for_operator().expect("words");
    assert!(shown.starts_with("Incorrect key [key] [31m x"), "{shown}");
    assert!(shown.chars().count() <= DETAIL_CHARS_MAX + 1 && shown.ends_with('…'));
    assert_eq!(Detail::new(" \n", Some(key)).for_operator(), None);
}

#[test]
fn failure_sentence_names_the_first_and_counts_the_rest() {
    let failed = Failed { failures: vec![failure(Fault::Cut); 5], usage: Usage::default() };
    assert!(failed.sentence().ends_with("; 2 more failed"), "{failed}");
    assert_eq!(Failed::default().sentence(), "there is no model endpoint to ask");
}

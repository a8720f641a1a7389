//! One sample of every shape about secrets and model endpoints. Every value is fixed. See `operator`.

use super::operator::session_id;
use super::seam::id;
use super::{Shape, shape, shape_by_bytes};
use ironclaw_contract::ids::{MessageId, TurnId};
use ironclaw_operator::{
    AgentModel, EndpointSettings, EndpointWords, KeptModel, Model, ModelDetails, ModelKind, ModelPreset, ModelQuirk,
    NewModel, NewSecret, NewSecretValue, Reasoning, Secret, SecretSource, SecretValue, SettingsOfModel, SmallContext,
    TestedModel,
};

const AT: &str = "2026-11-18T11:06:40.123Z";

fn value() -> SecretValue {
    SecretValue::new("sk-0123456789".to_owned())
}

fn bare() -> NewModel {
    NewModel {
        name: "local".to_owned(),
        kind: "openai".to_owned(),
        base_url: Some("http://127.0.0.1:11434/v1".to_owned()),
        model: Some("llama3.2".to_owned()),
        key: None,
        key_value: None,
        fallbacks: vec![],
        input_price_micros: 0,
        output_price_micros: 0,
        streams: true,
        images: false,
        settings: EndpointSettings::default(),
        default: false,
        replace: false,
        test: true,
    }
}

fn details(model: Model) -> ModelDetails {
    let learned = ModelQuirk {
        name: "limit_field".to_owned(),
        value: "max_completion_tokens".to_owned(),
        source: "learned".to_owned(),
        learned_at: Some(AT.to_owned()),
        expires_at: Some("2026-12-18T11:06:40.123Z".to_owned()),
    };
    let usual = ModelQuirk {
        name: "stream_usage".to_owned(),
        value: "ask".to_owned(),
        source: "profile".to_owned(),
        learned_at: None,
        expires_at: None,
    };
    let small = SmallContext {
        model: "openai".to_owned(),
        tokens: 4096,
        sentence: "it reads less than it gets".to_owned(),
        learned_at: AT.to_owned(),
    };
    ModelDetails {
        model,
        profile: Some("openai".to_owned()),
        quirks: vec![learned, usual],
        small_context: Some(small),
        last_words: vec![endpoint_words()],
    }
}

pub(super) fn shapes() -> Vec<Shape> {
    let stored = Secret {
        name: "openai".to_owned(),
        source: SecretSource::Stored,
        created_at: Some(AT.to_owned()),
        changed_at: Some(AT.to_owned()),
        used_by: vec!["model openai".to_owned()],
    };
    let credential = Secret {
        source: SecretSource::Credential,
        created_at: None,
        changed_at: None,
        used_by: vec![],
        ..stored.clone()
    };
    let settings = EndpointSettings {
        output_tokens_max: Some(2048),
        context_tokens: Some(8192),
        tool_definitions_bytes_max: Some(4096),
        profile: Some("openai".to_owned()),
        quirks: [("limit_field".to_owned(), "max_completion_tokens".to_owned())].into(),
    };
    let new = NewModel {
        name: "openai".to_owned(),
        base_url: Some("https://api.openai.com/v1".to_owned()),
        key: Some("secret:openai".to_owned()),
        key_value: Some(value()),
        fallbacks: vec!["local".to_owned()],
        input_price_micros: 400_000,
        output_price_micros: 1_600_000,
        images: true,
        settings: settings.clone(),
        default: true,
        ..bare()
    };
    let scripted = Model {
        name: "scripted".to_owned(),
        kind: ModelKind::Scripted,
        base_url: None,
        model: String::new(),
        key: None,
        fallbacks: vec![],
        input_price_micros: 0,
        output_price_micros: 0,
        streams: false,
        images: false,
        settings: EndpointSettings::default(),
        default: false,
        agents: vec![],
        broken: None,
        created_at: None,
    };
    let model = Model {
        name: "openai".to_owned(),
        kind: ModelKind::Openai,
        base_url: Some("https://api.openai.com/v1".to_owned()),
        model: "llama3.2".to_owned(),
        key: Some("secret:openai".to_owned()),
        fallbacks: vec!["local".to_owned()],
        input_price_micros: 400_000,
        output_price_micros: 1_600_000,
        streams: true,
        images: true,
        settings: settings.clone(),
        default: true,
        agents: vec!["assistant".to_owned()],
        broken: None,
        created_at: Some(AT.to_owned()),
    };
    let tested = TestedModel {
        name: "openai".to_owned(),
        took_ms: 412,
        input_tokens: 31,
        output_tokens: 2,
        said: "ok".to_owned(),
    };
    let kept = KeptModel {
        model: model.clone(),
        tested: Some(tested.clone()),
        context_stated_at: Some("/api/ps".to_owned()),
        moved: vec!["assistant".to_owned()],
    };
    let reasoning =
        Reasoning { message_id: id::<MessageId>("msg", 1), thoughts: vec!["The notes are in two files.".to_owned()] };
    let (details, change) = (
        details(model.clone()),
        SettingsOfModel { set: settings, clear: vec!["profile".to_owned(), "call_ids".to_owned()], forget: true },
    );
    let provider = ModelPreset {
        name: "openai".to_owned(),
        kind: ModelKind::Openai,
        base_url: "https://api.openai.com/v1".to_owned(),
        key_variable: Some("OPENAI_API_KEY".to_owned()),
        model: Some("gpt-5-mini".to_owned()),
    };
    let local = ModelPreset { name: "ollama".to_owned(), key_variable: None, model: None, ..provider.clone() };
    vec![
        shape("operator.model_preset", provider),
        shape("operator.model_preset.local", local),
        shape("operator.secret", stored),
        shape("operator.secret.credential", credential),
        shape_by_bytes("operator.new_secret", &NewSecret { name: "openai".to_owned(), value: value() }),
        shape_by_bytes("operator.new_secret_value", &NewSecretValue { value: value() }),
        shape("operator.model", model),
        shape("operator.model.scripted", scripted.clone()),
        shape("operator.model_quirk", details.quirks[1].clone()),
        shape("operator.model_quirk.learned", details.quirks[0].clone()),
        shape("operator.model_details", details),
        shape("operator.reasoning", reasoning),
        shape("operator.endpoint_settings", change.set.clone()),
        shape("operator.settings_of_model", change),
        shape_by_bytes("operator.new_model", &new),
        shape_by_bytes("operator.new_model.bare", &bare()),
        shape("operator.kept_model", kept),
        shape(
            "operator.kept_model.bare",
            KeptModel { model: scripted, tested: None, context_stated_at: None, moved: vec![] },
        ),
        shape("operator.tested_model", tested),
        shape("operator.agent_model", AgentModel { model: "openai".to_owned() }),
    ]
}

/// The words of an endpoint that gave no answer.
pub(super) fn endpoint_words() -> EndpointWords {
    EndpointWords {
        endpoint: "openai".to_owned(),
        at: AT.to_owned(),
        code: "bad_request".to_owned(),
        session_id: session_id(),
        turn_id: id::<TurnId>("trn", 1),
        words: "body.messages: field required".to_owned(),
    }
}

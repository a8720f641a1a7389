//! Conversions of the closed lists to and from values of SQL and JSON, and their schemas.
//!
//! Never accepts a column with a text that the list does not have. See [`ironclaw_contract::text_values!`].

use crate::*;

ironclaw_contract::text_values!(
    TokenId,
    DenialCode,
    LedgerEvent,
    ArgumentRule,
    CallState,
    Class,
    InputType,
    JudgementStage,
    StageAnswer,
    ToolReach,
    ChannelKind,
    OccurrenceState,
    Role,
    ScheduleState,
    SignatureRule,
    TokenState,
    Face,
    WaitingId,
    WaitingStatus,
);

/// Schemas of closed lists for the OpenAPI document.
#[cfg(feature = "schema")]
mod schemas {
    use super::*;
    use utoipa::openapi::RefOr;
    use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};

    ironclaw_contract::word_schemas!(
        AllowanceStatus,
        ArgumentRule,
        CallState,
        Class as "CallClass",
        InputType,
        JudgementStage,
        StageAnswer,
        ToolReach,
        CeilingKind,
        ChannelKind,
        Decider,
        DestinationState,
        FeatureState,
        FileKind,
        FileLoss,
        FindingArea,
        FindingLevel,
        Supposition,
        LeftOutOfReport,
        LedgerFault,
        McpListed,
        McpLoginState,
        McpServerState,
        McpTransport,
        McpUnfitReason,
        Face,
        ModelKind,
        NoCopy,
        OccurrenceState,
        Principal,
        Receipt,
        RequesterKind,
        Role,
        ScheduleState,
        SavingChange,
        SecretSource,
        SessionPhase,
        SignatureRule,
        SkillTrust,
        Speaker,
        SourceKind,
        StageOutcome,
        TokenState,
        UnaskedRule,
        ValueSource,
        WaitingKind,
        WaitingStatus,
    );

    impl utoipa::PartialSchema for TokenId {
        fn schema() -> RefOr<Schema> {
            let text = ObjectBuilder::new().schema_type(SchemaType::Type(Type::String));
            text.pattern(Some("^tok_[0-9a-f]{16}$")).into()
        }
    }

    impl utoipa::ToSchema for TokenId {}
}

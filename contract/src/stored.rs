//! Conversions of ids, digests and closed lists to and from values of SQL and JSON, so that no caller writes their text.
//!
//! Never accepts a column with a text that the type does not read: that is an error of the read. See [`crate::ids`].

use crate::canonical::Digest;
use crate::ids::{
    AgentId, ApprovalId, BootId, CallId, ChangeId, DeliveryId, ItemId, MemoryId, MessageId, PersonId, QuestionId,
    RequestId, ScheduleId, SessionId, TurnId,
};
use crate::ledger_entry;
use crate::operator::*;
use crate::seam::change::{
    Access, AgentRole, CatchUp, ChangeKind, Engage, GuardMode, Ignored, RunContext, Senders, Sharing, UnknownSenders,
    WrittenBy,
};
use crate::seam::message;
use crate::seam::seal::ItemKind;

/// Implements `ToSql` and `FromSql` with `Display` and `FromStr`.
#[cfg(feature = "queues")]
#[macro_export]
macro_rules! stored_as_text {
    ($($type:ty),+ $(,)?) => {
        $(
            impl ::rusqlite::types::ToSql for $type {
                fn to_sql(&self) -> ::rusqlite::Result<::rusqlite::types::ToSqlOutput<'_>> {
                    Ok(::rusqlite::types::ToSqlOutput::from(self.to_string()))
                }
            }

            impl ::rusqlite::types::FromSql for $type {
                fn column_result(value: ::rusqlite::types::ValueRef<'_>) -> ::rusqlite::types::FromSqlResult<Self> {
                    let text = value.as_str()?;
                    text.parse().map_err(|_| {
                        let wrong = format!("unknown value of {}: written by another version", stringify!($type));
                        ::rusqlite::types::FromSqlError::Other(wrong.into())
                    })
                }
            }
        )+
    };
}

macro_rules! values {
    ($($type:ty),+ $(,)?) => {
        $(
            impl From<$type> for serde_json::Value {
                fn from(value: $type) -> Self {
                    value.to_string().into()
                }
            }
        )+
        #[cfg(feature = "queues")]
        stored_as_text!($($type),+);
    };
}

values!(
    AgentId,
    ApprovalId,
    BootId,
    CallId,
    ChangeId,
    DeliveryId,
    QuestionId,
    RequestId,
    ItemId,
    MemoryId,
    MessageId,
    PersonId,
    ScheduleId,
    SessionId,
    TokenId,
    TurnId,
    Digest,
    DenialCode,
    LedgerEvent,
    ledger_entry::Kind,
    message::Kind,
    message::Status,
    ItemKind,
    Access,
    AgentRole,
    ArgumentRule,
    CallState,
    Class,
    JudgementStage,
    StageAnswer,
    ToolReach,
    CatchUp,
    ChangeKind,
    ChangeStatus,
    ChannelKind,
    Engage,
    GuardMode,
    Ignored,
    OccurrenceState,
    QuestionStatus,
    RequestStatus,
    Role,
    RunContext,
    ScheduleState,
    Senders,
    Sharing,
    SignatureRule,
    TokenState,
    UnknownSenders,
    WrittenBy,
);

/// Schemas of ids, digests and closed lists for the OpenAPI document.
#[cfg(feature = "schema")]
mod schemas {
    use super::*;
    use std::borrow::Cow;
    use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
    use utoipa::openapi::{RefOr, schema::SchemaType};
    use utoipa::{PartialSchema, ToSchema};

    fn text(pattern: String) -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(SchemaType::Type(Type::String)).pattern(Some(pattern)).into()
    }

    macro_rules! ids {
        ($($type:ty),+ $(,)?) => {
            $(
                impl PartialSchema for $type {
                    fn schema() -> RefOr<Schema> {
                        text(format!("^{}_[0-9a-hjkmnp-tv-z]{{26}}$", <$type>::PREFIX))
                    }
                }

                impl ToSchema for $type {}
            )+
        };
    }

    ids!(
        AgentId, ApprovalId, BootId, CallId, ChangeId, DeliveryId, QuestionId, RequestId, ItemId, MemoryId, MessageId,
        PersonId, ScheduleId, SessionId, TurnId,
    );

    macro_rules! lists {
        ($($type:ty $(as $name:literal)?),+ $(,)?) => {
            $(
                impl PartialSchema for $type {
                    fn schema() -> RefOr<Schema> {
                        let words = <$type>::ALL.iter().map(|word| word.name());
                        ObjectBuilder::new().schema_type(SchemaType::Type(Type::String)).enum_values(Some(words)).into()
                    }
                }

                impl ToSchema for $type {
                    $(fn name() -> Cow<'static, str> {
                        $name.into()
                    })?
                }
            )+
        };
    }

    lists!(
        Access, AgentRole, AllowanceStatus, ArgumentRule, CallState, Class as "CallClass", JudgementStage, StageAnswer, ToolReach, CatchUp, CeilingKind, ChangeKind, ChangeStatus, ChannelKind,
        Commands, Decider, DestinationState, Engage, EntryType, FeatureState, FileKind, FileLoss, GuardMode, Ignored, ItemKind, Label,
        FindingArea, FindingLevel, Supposition,
        LedgerFault, McpListed, McpLoginState, McpServerState, McpTransport, McpUnfitReason, ModelKind, NoCopy, OccurrenceState,
        QuestionStatus, Receipt, RequestStatus, RequesterKind, Role, RunContext, ScheduleState, SecretSource, Senders, SessionPhase, SignatureRule,
        Sharing, SkillTrust, Speaker, StageOutcome, TokenState, UnknownSenders, ValueSource, WrittenBy,
        message::Status as "MessageStatus",
    );

    impl PartialSchema for TokenId {
        fn schema() -> RefOr<Schema> {
            text("^tok_[0-9a-f]{16}$".to_owned())
        }
    }

    impl ToSchema for TokenId {}

    impl PartialSchema for Digest {
        fn schema() -> RefOr<Schema> {
            text("^[0-9a-f]{64}$".to_owned())
        }
    }

    impl ToSchema for Digest {}
}

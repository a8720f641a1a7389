//! Conversions of ids, digests and closed lists to and from values of SQL and JSON, so that no caller writes their text.
//!
//! Never accepts a column with a text that the type does not read: that is an error of the read. See [`crate::ids`].

use crate::canonical::Digest;
use crate::ids::{
    AgentId, ApprovalId, BootId, CallId, ChangeId, DeliveryId, ItemId, MemoryId, MessageId, PersonId, QuestionId,
    RequestId, ScheduleId, SessionId, TurnId,
};
use crate::ledger_entry;
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

/// Makes a value of JSON from the text of a type, and a value of SQL if the calling crate has the feature `queues`.
#[macro_export]
macro_rules! text_values {
    ($($type:ty),+ $(,)?) => {
        $(
            impl From<$type> for ::serde_json::Value {
                fn from(value: $type) -> Self {
                    value.to_string().into()
                }
            }
        )+
        #[cfg(feature = "queues")]
        $crate::stored_as_text!($($type),+);
    };
}

text_values!(
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
    TurnId,
    Digest,
    ledger_entry::Kind,
    message::Status,
    ItemKind,
    Access,
    AgentRole,
    CatchUp,
    ChangeKind,
    Engage,
    GuardMode,
    Ignored,
    RunContext,
    Senders,
    Sharing,
    UnknownSenders,
    WrittenBy,
);

/// Makes the schema of each closed list from its words, with another name if there is one.
#[cfg(feature = "schema")]
#[macro_export]
macro_rules! word_schemas {
    ($($type:ty $(as $name:literal)?),+ $(,)?) => {
        $(
            impl ::utoipa::PartialSchema for $type {
                fn schema() -> ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema> {
                    let words = <$type>::ALL.iter().map(|word| word.name());
                    ::utoipa::openapi::schema::ObjectBuilder::new()
                        .schema_type(::utoipa::openapi::schema::SchemaType::Type(::utoipa::openapi::schema::Type::String))
                        .enum_values(Some(words))
                        .into()
                }
            }

            impl ::utoipa::ToSchema for $type {
                $(fn name() -> ::std::borrow::Cow<'static, str> {
                    $name.into()
                })?
            }
        )+
    };
}

/// Schemas of ids, digests and closed lists for the OpenAPI document.
#[cfg(feature = "schema")]
mod schemas {
    use super::*;
    use crate::seam::egress::Commands;
    use crate::seam::seal::Label;
    use utoipa::openapi::RefOr;
    use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
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

    word_schemas!(
        Access, AgentRole, CatchUp, ChangeKind, Commands, Engage, GuardMode, Ignored, ItemKind, Label, RunContext, Senders,
        Sharing, UnknownSenders, WrittenBy,
        message::Status as "MessageStatus",
    );

    impl PartialSchema for Digest {
        fn schema() -> RefOr<Schema> {
            text("^[0-9a-f]{64}$".to_owned())
        }
    }

    impl ToSchema for Digest {}
}

//! The denial codes of refusals by a bound.

use super::DenialCode;

impl DenialCode {
    /// Returns whether a bound is reached: such a refusal names the bound, the count, its end and the remedy. See [`crate::Bound`].
    pub const fn is_of_bound(self) -> bool {
        matches!(
            self,
            Self::TooManyConnections
                | Self::TooManyRequests
                | Self::TooManyConversations
                | Self::TooManyWaiting
                | Self::TooManyBytesWaiting
                | Self::TooManyBytesKept
                | Self::ConversationsFull
                | Self::SendersTooMany
                | Self::MessageTooLong
                | Self::TooManyFiles
                | Self::FileTooLarge
                | Self::BudgetTooLarge
                | Self::PersonaTooLong
                | Self::ReasonTooLong
                | Self::CallNoRoom
                | Self::CallHops
                | Self::CallSends
                | Self::CallAskedTooOften
                | Self::EgressTooMuch
                | Self::EgressTooMany
                | Self::DestinationTooMany
                | Self::GroupTooMany
                | Self::McpToolsTooMany
                | Self::McpServersTooMany
                | Self::AllowanceTooMany
                | Self::ScheduleTooMany
                | Self::MemoryFull
                | Self::QuestionsTooMany
                | Self::ChangesTooMany
                | Self::PackagesTooMany
                | Self::ChannelsTooMany
                | Self::ModelsTooMany
                | Self::FallbacksTooMany
                | Self::SecretsTooMany
                | Self::SkillsTooMany
                | Self::PeopleTooMany
                | Self::IdentitiesTooMany
                | Self::TokensTooMany
        )
    }
}

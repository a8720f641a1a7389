//! The labels of a text, and the provenances that mint them.
//!
//! Removes no label but that of something new at a server, for another server, and mints none without a provenance. See [`Labelled`](super::Labelled).

use ironclaw_contract::seam::seal::Label;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The provenance of a text. A new one does not compile until [`Labels::from_provenance`] says what it mints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provenance {
    /// A person of this host typed all of it, in a message, a note, or the approved prompt of a schedule.
    Person,
    /// A person of this host typed it as a whole value, in a span of a message or of the approved prompt of a schedule.
    Slot,
    /// A server made it in a call, as the name of something new, at a result path that an operator listed.
    Created,
    /// A server returned it at a result path that an operator listed, and no agent set it.
    Returned,
    /// Another author wrote a part of it: a quotation, an attached file, a guest, a channel without a known sender.
    Others,
    /// Another agent sent it.
    Agent,
    /// A sandbox reported it, or it had no valid seal.
    Sandbox,
    /// The host itself read it from a source that a person of this host calls theirs, and that no agent can write. It endorses nothing.
    Own,
    /// A tool returned it. A result carries no authority, also if the host wrote it.
    Tool,
    /// The host read it in a workspace, where any author may have written it.
    Workspace,
    /// The host returns it from the notes of an agent, of which a model may have written some.
    Notes { by_model: bool },
    /// A model wrote it, with a context of these labels.
    Model { context: Labels },
    /// The host wrote it, without a quotation.
    Host,
    /// The host wrote it about an output with these labels, and may quote it.
    HostAbout { output: Labels },
}

/// A set of labels, as in a seal: in the order of [`Label::ALL`], each at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Labels(u8);

impl Labels {
    /// No label.
    pub const NONE: Self = Self(0);

    /// Mints the labels of a text of this provenance.
    #[must_use]
    pub const fn from_provenance(provenance: Provenance) -> Self {
        match provenance {
            Provenance::Person => Self::one(Label::UserSurfaceInput),
            Provenance::Slot => {
                let typed = Self::one(Label::UserSurfaceInput).join(Self::one(Label::PromptSlotBound));
                Self::one(Label::AgentKernel).join(typed)
            }
            Provenance::Created => Self::one(Label::SessionResult),
            Provenance::Returned => Self::one(Label::StructuredResult),
            Provenance::Others | Provenance::Agent | Provenance::Sandbox | Provenance::Tool | Provenance::Workspace => {
                Self::one(Label::External)
            }
            Provenance::Notes { by_model: false } => Self::one(Label::External),
            Provenance::Notes { by_model: true } => Self::one(Label::External).join(Self::one(Label::LlmDerived)),
            // Text of others stays text of others. An endorsement of the context endorses no word of the model.
            Provenance::Model { context } if context.has_foreign() => {
                Self::one(Label::External).join(Self::one(Label::LlmDerived))
            }
            Provenance::Model { .. } => Self::one(Label::LlmDerived),
            Provenance::Host | Provenance::Own => Self::NONE,
            Provenance::HostAbout { output } => output,
        }
    }

    /// Reads recorded labels.
    #[must_use]
    pub fn recorded(labels: &[Label]) -> Self {
        labels.iter().fold(Self::NONE, |all, label| all.join(Self::one(*label)))
    }

    const fn one(label: Label) -> Self {
        Self(1 << label as u8)
    }

    /// Returns the labels of both.
    #[must_use]
    pub const fn join(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the labels without that of something new at a server.
    #[must_use]
    pub const fn without_created(self) -> Self {
        Self(self.0 & !Self::one(Label::SessionResult).0)
    }

    const fn has(self, label: Label) -> bool {
        self.0 & Self::one(label).0 != 0
    }

    /// Returns whether all labels of `needed` are among them.
    #[must_use]
    pub const fn has_all(self, needed: Self) -> bool {
        self.0 & needed.0 == needed.0
    }

    /// Returns whether a part came from outside of the host and its people.
    #[must_use]
    pub const fn has_foreign(self) -> bool {
        self.has(Label::External)
    }

    /// Returns whether a model wrote a part.
    #[must_use]
    pub const fn has_model(self) -> bool {
        self.has(Label::LlmDerived)
    }

    /// Returns whether only something new at a server has these labels.
    #[must_use]
    pub const fn needs_created(self) -> bool {
        self.has(Label::SessionResult)
    }

    /// Returns whether only a value at a result path has these labels.
    #[must_use]
    pub const fn needs_returned(self) -> bool {
        self.has(Label::StructuredResult)
    }

    #[must_use]
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub const fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// Returns the labels in the order of [`Label::ALL`].
    #[must_use]
    pub fn list(self) -> Vec<Label> {
        Label::ALL.iter().copied().filter(|label| self.has(*label)).collect()
    }
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.list().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Label>::deserialize(deserializer).map(|labels| Self::recorded(&labels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each provenance with the labels that it mints.
    const MINTED: &[(Provenance, &[Label])] = &[
        (Provenance::Person, &[Label::UserSurfaceInput]),
        (Provenance::Slot, &[Label::AgentKernel, Label::UserSurfaceInput, Label::PromptSlotBound]),
        (Provenance::Created, &[Label::SessionResult]),
        (Provenance::Returned, &[Label::StructuredResult]),
        (Provenance::Others, &[Label::External]),
        (Provenance::Agent, &[Label::External]),
        (Provenance::Sandbox, &[Label::External]),
        (Provenance::Tool, &[Label::External]),
        (Provenance::Workspace, &[Label::External]),
        (Provenance::Host, &[]),
        (Provenance::Own, &[]),
        (Provenance::Notes { by_model: false }, &[Label::External]),
        (Provenance::Notes { by_model: true }, &[Label::External, Label::LlmDerived]),
        (Provenance::Model { context: Labels::NONE }, &[Label::LlmDerived]),
    ];

    #[test]
    fn each_provenance_mints_its_labels() {
        for (provenance, labels) in MINTED {
            assert_eq!(Labels::from_provenance(*provenance).list(), *labels, "{provenance:?}");
        }
    }

    #[test]
    fn no_label_of_a_context_endorses_an_output() {
        for label in Label::ALL.iter().copied() {
            let output = Labels::from_provenance(Provenance::Model { context: Labels::recorded(&[label]) });
            let minted: &[Label] =
                if label == Label::External { &[Label::External, Label::LlmDerived] } else { &[Label::LlmDerived] };
            assert_eq!(output.list(), minted, "{label}");
            assert_eq!(Labels::from_provenance(Provenance::HostAbout { output }), output);
        }
    }

    #[test]
    fn labels_are_a_set_in_the_order_of_a_seal() {
        let all: Vec<Label> = Label::ALL.iter().rev().chain(Label::ALL.iter()).copied().collect();
        assert_eq!(Labels::recorded(&all).list(), Label::ALL);
        let text = serde_json::to_string(&Labels::recorded(&all)).expect("text");
        assert_eq!(serde_json::from_str::<Labels>(&text).expect("labels"), Labels::recorded(&all));
        assert!(serde_json::from_str::<Labels>("[\"Trusted\"]").is_err());
    }
}

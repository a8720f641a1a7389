//! The message with the answer of a person to a question.
//!
//! Never read for a declaration: its scope is that of the turn that asked. The question and a chosen option are spans of a model, so they
//! are no request and no typed value; only a text of the person is theirs. See [`crate::turns::turn::choose`].

use super::{Error, Recorded, Text, content_key, insert};
use crate::registry::{Identity, LOOPBACK};
use crate::sessions::store::Session;
use ironclaw_contract::ids::{MessageId, PersonId, QuestionId};
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_judge::provenance::{Labelled, Labels, Provenance};
use ironclaw_judge::scope::recorded::Recorded as Scope;
use ironclaw_judge::{Classes, Principal};
use ironclaw_state::WriteTx;
use ironclaw_state::keys::WrappingKey;
use ironclaw_state::seal::Sealer;
use ironclaw_store::tables::messages::Kind;
use ironclaw_store::tables::messages::{self, NewMessage};
use ironclaw_text::lookalike;

/// The choice of a person.
#[derive(Debug, Clone, Copy)]
pub enum Choice<'a> {
    /// An option, in the words of the agent.
    Option {
        /// Its number, from 1.
        number: u32,
        text: &'a str,
    },
    /// A text of the person.
    Text(&'a str),
}

/// An answer to record.
pub struct Answer<'a> {
    pub question: QuestionId,
    /// Its text, in the words of the agent.
    pub asked: &'a str,
    pub choice: Choice<'a>,
    pub session: &'a Session,
    pub person: PersonId,
    /// The kind of principal of the turn that asked.
    pub principal_kind: Principal,
    /// The classes of the turn that asked.
    pub scope: Classes,
    /// True if a person declared them for contained calls too.
    pub binds_contained: bool,
    /// The labels of the output that asked.
    pub labels: Labels,
    /// The message whose task it continues.
    pub root: MessageId,
}

impl Answer<'_> {
    /// Returns the bytes of the message before its neutralisation.
    pub fn bytes(&self) -> usize {
        self.parts().iter().map(|(_, text)| text.len()).sum()
    }

    /// Returns the parts of the message with their authors.
    fn parts(&self) -> Vec<(Author, String)> {
        let (how, author, text) = match self.choice {
            Choice::Option { number, text } => (format!("The person chose option {number}:"), Author::Model, text),
            Choice::Text(text) => ("The person answered:".to_owned(), Author::Person { person: self.person }, text),
        };
        vec![
            (Author::Host, format!("An answer to your question {}:", self.question)),
            (Author::Model, self.asked.to_owned()),
            (Author::Host, how),
            (author, text.to_owned()),
        ]
    }
}

/// Records an answer as a message that opens a turn of its own.
pub fn record(
    tx: &mut WriteTx<'_>,
    answer: &Answer<'_>,
    wrapping: &WrappingKey,
    sealer: &Sealer,
) -> Result<Recorded, Error> {
    let session = answer.session;
    let (mut body, mut spans) = (String::new(), Vec::new());
    for (author, text) in answer.parts() {
        let text = lookalike::neutralise(&text);
        spans.push(Span { author, bytes: text.len() });
        body.push_str(&text);
    }
    let id = MessageId::new();
    // The scope of the turn that asked, exactly: an answer never adds to it.
    let scope = Scope::continuing(answer.scope, answer.binds_contained).to_string();
    let key = content_key(session, wrapping)?;
    let labelled = Labelled::new(&*body, Provenance::HostAbout { output: answer.labels });
    let text = Text { body: labelled, spans, scope, hop: 0 };
    let own = Identity::own(answer.person);
    let row = |seq| NewMessage {
        id,
        session: session.id,
        seq,
        kind: Kind::Chat,
        trigger: true,
        mentions: false,
        reply_to: None,
        sender: &own.sender,
        principal: answer.person,
        principal_kind: answer.principal_kind,
        channel: LOOPBACK,
        event: None,
        bytes: body.len(),
    };
    insert(tx, text, &key, sealer, id, session.id, row)?;
    messages::set_answers(tx, id, answer.question, answer.root)?;
    Ok(Recorded { message: id, session: session.id, again: false })
}

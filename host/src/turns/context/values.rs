//! The remark behind a message of a person about its values that tools take by reference.
//!
//! The same message always has the same remark, so that a provider finds the beginning of each prompt in its cache. An id of a task that
//! is over is refused. See [`ironclaw_judge::inputs`].

use super::system::Reader;
use crate::registry::destinations;
use crate::registry::tools::catalogue::Catalogue;
use crate::turns::items::{self, Recorded};
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::message::Span;
use ironclaw_judge::Principal;
use ironclaw_judge::egress::Loopback;
use ironclaw_judge::inputs::{Handles, Message, Task, fits};
use ironclaw_judge::provenance::spans::Telling;
use ironclaw_judge::scope::recorded::Recorded as Scope;
use ironclaw_operator::InputType;
use ironclaw_state::ReadTx;

/// The types of values that an agent passes by reference, and the names that the host knows.
pub(super) struct Values {
    types: Vec<InputType>,
    names: Vec<String>,
    loopback: Loopback,
    /// True in a run of a schedule, whose prompt people approved.
    is_run: bool,
}

impl Values {
    /// Returns what the tools of an agent take by reference; `None` if they take nothing.
    pub(super) fn for_tools(
        tx: &ReadTx<'_>,
        reader: &Reader<'_>,
        catalogue: &Catalogue,
    ) -> Result<Option<Self>, ironclaw_state::Error> {
        let types = catalogue.referred_types();
        if types.is_empty() {
            return Ok(None);
        }
        let names = destinations::known_names(tx, reader.agent)?;
        let is_run = reader.turn.principal_kind == Principal::Schedule;
        Ok(Some(Self { types, names, loopback: reader.loopback, is_run }))
    }

    /// Returns the remark behind a message; `None` if it has no such value of its person.
    pub(super) fn remark(&self, item: &Recorded, body: &str, authors: &[Span], person: PersonId) -> Option<String> {
        let telling = match item.tuple.scope.parse::<Scope>() {
            _ if self.is_run => Telling::Typed,
            Ok(scope) => scope.telling,
            Err(_) => return None,
        };
        let mut handles = Handles::new(self.loopback);
        let spans = items::typed_spans(body, authors, person, telling);
        let (item, seq) = (item.tuple.item, item.tuple.seq);
        handles.add(&Message { item, seq, spans, task: Task::This }, &self.names);
        let taken = handles.iter().filter(|handle| self.types.iter().any(|taken| fits(*taken, handle.id.kind)));
        let lines: Vec<String> = taken.map(|handle| format!("{} is {}", handle.id, quoted(&handle.text))).collect();
        let is_empty = lines.is_empty();
        (!is_empty).then(|| format!("values in it that tools take as {{\"@link\": \"ID\"}}: {}", lines.join(", ")))
    }
}

/// Returns a value in JSON. Its words may be those of a title that the person copied, so they close no line of the host.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace(['[', ']'], " ")
}

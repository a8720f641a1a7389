//! The remark behind a message of a person, or an answer of a server, about its values that tools take by reference.
//!
//! Under the same terms the same item always has the same remark: the cache of items keeps it, and a provider finds the beginning of each
//! prompt in its cache. An id of a task that is over is refused. See [`ironclaw_judge::inputs`].

use super::item_cache::Item;
use super::system::Reader;
use crate::registry::destinations;
use crate::registry::tools::catalogue::Catalogue;
use crate::turns::items::{self, OfAnswer, Recorded};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::message::Span;
use ironclaw_judge::Principal;
use ironclaw_judge::egress::Loopback;
use ironclaw_judge::inputs::{Answer, Handles, Message, Task};
use ironclaw_judge::manifest::Taken;
use ironclaw_judge::provenance::spans::Telling;
use ironclaw_judge::scope::recorded::Recorded as Scope;
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;

/// The values that an agent passes by reference, and the names that the host knows.
pub(super) struct Values<'a> {
    taken: Vec<Taken<'a>>,
    /// The tools with result paths, by their names for a model.
    with_results: Vec<&'a str>,
    names: Vec<String>,
    loopback: Loopback,
    /// True in a run of a schedule, whose prompt people approved.
    is_run: bool,
    /// The digest of all of this: what the remark on an item depends on beside the item and the person.
    terms: Digest,
}

impl<'a> Values<'a> {
    /// Returns what the tools of an agent take by reference; `None` if they take nothing.
    pub(super) fn for_tools(
        tx: &ReadTx<'_>,
        reader: &Reader<'_>,
        catalogue: &'a Catalogue,
    ) -> Result<Option<Self>, ironclaw_state::Error> {
        let taken = catalogue.taken();
        if taken.is_empty() {
            return Ok(None);
        }
        let tools = catalogue.server_tools().into_iter().filter(|tool| !tool.manifest.results.is_empty());
        let with_results: Vec<&str> = tools.map(|tool| tool.manifest.name.as_str()).collect();
        let names = destinations::known_names(tx, reader.agent)?;
        let is_run = reader.turn.principal_kind == Principal::Schedule;
        let loopback = reader.loopback;
        let person = &reader.turn.principal;
        let terms = format!("{:?}", (&taken, &with_results, &names, loopback, is_run, person));
        let terms = Digest::of(terms.as_bytes());
        Ok(Some(Self { taken, with_results, names, loopback, is_run, terms }))
    }

    /// Returns the remark behind a message; `None` if it has no such value of its person.
    pub(super) fn remark(
        &self,
        item: &Item,
        body: &str,
        authors: &[Span],
        person: PersonId,
    ) -> Result<Option<String>, Error> {
        item.remark(self.terms, || Ok(self.words_of_message(item, body, authors, person)))
    }

    fn words_of_message(&self, item: &Recorded, body: &str, authors: &[Span], person: PersonId) -> Option<String> {
        let telling = match item.tuple.scope.parse::<Scope>() {
            _ if self.is_run => Telling::Typed,
            Ok(scope) => scope.telling,
            Err(_) => return None,
        };
        let mut handles = Handles::new(self.loopback);
        let spans = items::typed_spans(body, authors, person, telling);
        let (item, seq) = (item.tuple.item, item.tuple.seq);
        handles.add(&Message { item, seq, spans, task: Task::This }, &self.names);
        self.words(&handles)
    }

    /// Returns the remark behind the answer of a server to a call of a tool; `None` if it has no such value.
    pub(super) fn remark_of_answer(
        &self,
        tx: &ReadTx<'_>,
        item: &Item,
        tool: &str,
        key: &ContentKey,
    ) -> Result<Option<String>, Error> {
        if !self.with_results.contains(&tool) {
            return Ok(None);
        }
        let make = || {
            let returned = items::returned(tx, item.tuple.item, key)?;
            Ok(returned.and_then(|returned| self.answer_words(item, returned)))
        };
        item.remark(self.terms, make)
    }

    fn answer_words(&self, item: &Recorded, returned: OfAnswer) -> Option<String> {
        let mut handles = Handles::new(self.loopback);
        let (item, seq, server) = (item.tuple.item, item.tuple.seq, returned.server.as_str());
        handles.add_returned(Answer { item, seq, server, task: Task::This }, returned.values);
        self.words(&handles)
    }

    /// Returns the ids and the values of the handles that a tool takes.
    fn words(&self, handles: &Handles) -> Option<String> {
        let taken = handles.iter().filter(|handle| self.taken.iter().any(|taken| handle.is_taken(*taken)));
        let lines: Vec<String> = taken.map(|handle| format!("{} is {}", handle.id, quoted(&handle.text))).collect();
        let is_empty = lines.is_empty();
        (!is_empty).then(|| format!("values in it that tools take as {{\"@link\": \"ID\"}}: {}", lines.join(", ")))
    }
}

/// Returns a value in JSON. Its words may be those of a title that the person copied, so they close no line of the host.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace(['[', ']'], " ")
}

//! The copies of files that a model wants to send, between its output and the judgement of its calls.
//!
//! Never sends one. The record gets a copy with its call, unless the call is refused. See [`crate::channels::outbound::delivery::sent_files`].

use super::prepared::Prepared;
use crate::calls::model_socket::Server;
use crate::channels::outbound::delivery::sent_files::{self, COPIES_MAX, Copied};
use crate::registry::tools::SEND_FILE;
use crate::sessions::store;
use crate::turns::calls::{self, ReadCall};
use ironclaw_contract::ids::TurnId;
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use serde_json::Value;
use std::collections::HashMap;

/// The first calls of an output among which files are copied.
const FILES_MAX: usize = 4;

impl Server {
    /// Prepares the pushes and the files of an output. Returns the refusals and the copies by the position of the call.
    pub(super) async fn prepare_calls(
        &self,
        turn: TurnId,
        prepared: &mut Prepared,
        calls: &mut [ReadCall],
    ) -> Result<(HashMap<usize, Refusal>, HashMap<usize, Copied>), Error> {
        let mut refusals = self.prepare_pushes(prepared, calls).await?;
        self.resolve_skills(turn, prepared, calls, &mut refusals).await?;
        let copies = self.copy_files(prepared, calls, &mut refusals).await?;
        Ok((refusals, copies))
    }

    /// Copies the file of each call that sends one, and writes its facts and the address of the conversation into the arguments. Returns
    /// the copies by the position of the call, and adds the refusals. A file can have words of others, so the output has the label of
    /// such words then.
    async fn copy_files(
        &self,
        prepared: &mut Prepared,
        calls: &mut [ReadCall],
        refusals: &mut HashMap<usize, Refusal>,
    ) -> Result<HashMap<usize, Copied>, Error> {
        let mut copies = HashMap::new();
        for (position, call) in calls.iter_mut().enumerate() {
            if call.tool != SEND_FILE || prepared.facts.catalogue.missing(SEND_FILE).is_some() {
                continue;
            }
            prepared.facts.reads_workspace();
            let made = copies.len() as u64;
            match self.copy_file(call, position, made).await {
                Ok(copied) => drop(copies.insert(position, copied)),
                Err(Denied::Refused(refusal)) => drop(refusals.insert(position, refusal)),
                Err(Denied::Failed(error)) => return Err(error),
            }
        }
        Ok(copies)
    }

    /// Copies the file of one call, after this number of other ones.
    ///
    /// # Errors
    /// Refuses a file that cannot be copied.
    async fn copy_file(&self, call: &mut ReadCall, position: usize, made: u64) -> Result<Copied, Denied<Error>> {
        let refused = |words: String| Refusal::new(DenialCode::CallFile, words);
        if position >= FILES_MAX {
            return Err(refused(format!("an output sends files in its first {FILES_MAX} calls only")).into());
        }
        let arguments = call.arguments_mut().map_err(|why| refused(why.to_owned()))?;
        let path = arguments.get("path").and_then(Value::as_str).map(str::to_owned);
        let path = path.ok_or_else(|| refused("the call names no path".to_owned()))?;
        let id = self.session;
        let look = move |tx: &ReadTx<'_>| Ok::<_, Error>((store::find(tx, id)?, sent_files::open_count(tx, id)?));
        let (session, waiting) = self.state().read(look).await.map_err(Denied::Failed)?;
        let gone = || Denied::<Error>::Failed(ironclaw_state::Error::Stored(format!("{id} is gone")).into());
        let session = session.ok_or_else(gone)?;
        if waiting + made >= COPIES_MAX {
            return Err(refused(format!("{waiting} files of this conversation wait already")).into());
        }
        let place = self.shared.home.session(id);
        let copied = tokio::task::spawn_blocking(move || sent_files::copy(&place, &path)).await;
        let copied = copied.map_err(|error| refused(error.to_string()))?.map_err(refused)?;
        let origin = &session.origin;
        calls::write_file(arguments, &copied.file, origin.recipient(), &origin.thread_id);
        Ok(copied)
    }
}

//! The preparation of pushes, between the output of a model and the judgement of its calls.
//!
//! Never sends a request. See [`crate::reach::git_push`].

use super::prepared::Prepared;
use crate::calls::model_socket::Server;
use crate::reach::git_push;
use crate::registry::tools::GIT_PUSH;
use crate::sessions::store;
use crate::turns::calls::{Judged, Judgement, ReadCall};
use ironclaw_operator::DenialCode;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Refusal;
use std::collections::HashMap;

/// The first calls of an output among which pushes are prepared.
const PUSHES_MAX: usize = 4;

impl Server {
    /// Writes the commits of each push into its arguments, before the judgement. Returns the refusals by the position of the call. The
    /// commits have words of others, so the output has the label of such words then.
    pub(super) async fn prepare_pushes(
        &self,
        prepared: &mut Prepared,
        calls: &mut [ReadCall],
    ) -> Result<HashMap<usize, Refusal>, Error> {
        let mut refusals = HashMap::new();
        for (position, call) in calls.iter_mut().enumerate() {
            if call.tool != GIT_PUSH || prepared.facts.catalogue.missing(GIT_PUSH).is_some() {
                continue;
            }
            if position >= PUSHES_MAX {
                let words = format!("an output prepares pushes in its first {PUSHES_MAX} calls only");
                refusals.insert(position, Refusal::new(DenialCode::EgressPush, words));
                continue;
            }
            let id = self.session;
            let session = self.state().read(move |tx| store::find(tx, id)).await?;
            let session = session.ok_or_else(|| ironclaw_state::Error::Stored(format!("{id} is gone")))?;
            let jails = &*self.shared.executor.command_jails;
            let arguments = match call.arguments_mut() {
                Ok(arguments) => arguments,
                Err(why) => {
                    refusals.insert(position, Refusal::new(DenialCode::CallMalformed, why));
                    continue;
                }
            };
            match git_push::prepare(jails, &session, arguments, &prepared.facts.network).await {
                Ok(()) => prepared.facts.reads_workspace(),
                Err(refusal) => {
                    refusals.insert(position, refusal);
                }
            }
        }
        Ok(refusals)
    }
}

/// Refuses the calls that could not be prepared, unless they are refused already with another code.
pub(super) fn refuse(judged: &mut [Judged], unprepared: HashMap<usize, Refusal>) {
    for (position, Refusal { code, message, .. }) in unprepared {
        let is_refused = |judged: &&mut Judged| judged.judgement.refusal_code().is_none_or(|found| found == code);
        if let Some(judged) = judged.get_mut(position).filter(is_refused) {
            judged.judgement = Judgement::Refused { code, detail: message, bound: None };
        }
    }
}

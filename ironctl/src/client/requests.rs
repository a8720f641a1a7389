//! The requests about calls that wait for a person, and about the inbox of calls and changes.
//!
//! Approves only with the digest of the page. See `commands::inbox`.

use super::{Client, segment};
use crate::failure::Error;
use ironclaw_contract::operator::{CallRequest, Decision, Digest, InboxEntry, PushDiff, Rejection};

impl Client {
    /// Returns the calls and changes that wait and that the caller may decide or asked for, the oldest first.
    pub async fn inbox(&self) -> Result<Vec<InboxEntry>, Error> {
        self.get("inbox").await
    }

    /// Returns an approval request of a call, with its page.
    pub async fn call_request(&self, id: &str) -> Result<CallRequest, Error> {
        self.get(&format!("requests/{}", segment(id))).await
    }

    /// Returns the whole diff of a push, with the text of all its parts.
    pub async fn push_diff(&self, id: &str) -> Result<PushDiff, Error> {
        let mut whole: PushDiff = self.get(&format!("requests/{}/diff", segment(id))).await?;
        while let Some(from) = whole.next {
            let part: PushDiff = self.get(&format!("requests/{}/diff?from={from}", segment(id))).await?;
            if part.digest != whole.digest || part.next.is_some_and(|next| next <= from) {
                return Err(Error::failed("diff_changed", format!("the diff of {id} changed while it was read")));
            }
            whole.text.push_str(&part.text);
            (whole.next, whole.left_off) = (part.next, part.left_off);
        }
        Ok(whole)
    }

    /// Approves the call on the page of this digest.
    pub async fn approve_call(&self, id: &str, shown: Digest) -> Result<CallRequest, Error> {
        self.post(&format!("requests/{}/approve", segment(id)), &Decision { shown }).await
    }

    /// Rejects a call.
    pub async fn reject_call(&self, id: &str, reason: String) -> Result<CallRequest, Error> {
        self.post(&format!("requests/{}/reject", segment(id)), &Rejection { reason }).await
    }
}

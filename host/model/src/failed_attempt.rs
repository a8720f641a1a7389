//! One attempt at an output that failed: its fault, its cost, and what the server said.
//!
//! See [`crate::remote`].

use super::Usage;
use super::complaints::Carried;
use super::error_body::{Complaint, ErrorBody, is_final, reset, retry_after};
use super::fault::Fault;
use super::http::Answer;

/// An attempt without an output.
pub(crate) struct FailedAttempt {
    pub(crate) fault: Fault,
    pub(crate) words: String,
    /// The whole body of an error.
    pub(crate) body: String,
    pub(crate) took: Usage,
    pub(crate) complaint: Option<Complaint>,
    /// The server says that another attempt is of no use.
    pub(crate) is_final: bool,
}

impl FailedAttempt {
    pub(crate) fn new(fault: Fault, words: String) -> Self {
        Self { fault, words, body: String::new(), took: Usage::default(), complaint: None, is_final: false }
    }

    /// Adds the complaint about what the request has, if a refused request has one and no other complaint is known.
    pub(crate) fn for_request(mut self, carried: impl FnOnce() -> Carried) -> Self {
        self.complaint = self.complaint.or_else(|| match self.fault {
            Fault::BadRequest(400 | 422) => carried().complaint(&self.words, &self.body),
            Fault::ServerError { .. } => carried().complaint_of_template(&self.words),
            _ => None,
        });
        self
    }

    /// Makes the failure of an attempt about which no server said anything.
    pub(crate) fn without_detail(fault: Fault) -> Self {
        Self::new(fault, String::new())
    }

    /// Reads the refusal of a server.
    pub(crate) async fn read(answer: Answer, has_key: bool) -> Self {
        let status = answer.status();
        let (headers, now) = (answer.headers(), jiff::Timestamp::now());
        let wait = retry_after(headers, now);
        let reset = reset(headers, now).filter(|_| status == 429);
        let is_final = is_final(headers);
        let body = answer.error().await;
        let error = ErrorBody::read(&body);
        let usage = error.complains_of_usage().then_some(Complaint::Usage);
        let complaint = usage.or_else(|| error.limit_complaint()).filter(|_| matches!(status, 400 | 422));
        // What the body requests is more exact than the reset of a limit.
        let fault = error.fault(status, wait.or(error.wait).or(reset), has_key);
        let body = String::from_utf8_lossy(&body).into_owned();
        Self { complaint, body, is_final, ..Self::new(fault, error.words) }
    }
}

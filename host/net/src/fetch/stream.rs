//! An answer whose body is passed on in pieces, without the secret of its request.
//!
//! Keeps no more than one piece and the longest form of the secret. See [`crate::fetch`].

use super::echo::Echo;
use super::outcome::{self, End};
use reqwest::Response;
use tokio::time::{Instant, timeout_at};
use url::Url;

/// An answer. Everything in it is the words of another party.
pub struct Answer {
    pub status: u16,
    /// The headers of [`outcome::ANSWER_HEADERS`] that the answer has, by name.
    pub headers: Vec<(&'static str, String)>,
    /// The declared type of the body without parameters, in lower case.
    pub media_type: Option<String>,
    /// The target of a redirect. It was not requested, and is judged as a new request.
    pub redirect: Option<String>,
    /// Whether the body is compressed, which the request excluded: it could hide the secret. It has no pieces then.
    pub is_encoded: bool,
    response: Response,
    echo: Option<Echo>,
    /// Bytes in which a form of the secret may begin.
    held: Vec<u8>,
    until: Instant,
    is_over: bool,
}

/// The next part of a body.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// Some bytes.
    Bytes(Vec<u8>),
    /// The end; [`End::Whole`] if nothing is missing.
    End(End),
}

impl Answer {
    pub(super) fn new(response: Response, url: &Url, echo: Option<Echo>, until: Instant) -> Self {
        let status = response.status().as_u16();
        let headers = response.headers();
        Self {
            status,
            headers: outcome::headers(headers, echo.as_ref()),
            media_type: outcome::media_type(headers, echo.as_ref()),
            redirect: outcome::redirect(status, headers, url, echo.as_ref()),
            is_encoded: outcome::encoding(headers, echo.as_ref()).is_some(),
            response,
            echo,
            held: Vec::new(),
            until,
            is_over: false,
        }
    }

    /// Reads the next piece.
    pub async fn next(&mut self) -> Piece {
        loop {
            if self.is_encoded {
                return Piece::End(End::Encoded);
            }
            if self.is_over {
                return Piece::End(End::Whole);
            }
            let bytes = match timeout_at(self.until, self.response.chunk()).await {
                Ok(Ok(Some(bytes))) => self.release(&bytes),
                Ok(Ok(None)) => {
                    self.is_over = true;
                    self.release_all()
                }
                Ok(Err(_)) => return Piece::End(End::Broken),
                Err(_) => return Piece::End(End::Time),
            };
            if !bytes.is_empty() {
                return Piece::Bytes(bytes);
            }
        }
    }

    /// Returns the bytes in which no form of the secret can still begin.
    fn release(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Some(echo) = &self.echo else { return bytes.to_vec() };
        self.held.extend(bytes);
        let keep = self.held.len().saturating_sub(echo.bytes_max());
        let (released, done) = echo.release(&self.held, keep);
        self.held.drain(..done);
        released
    }

    fn release_all(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        match &self.echo {
            Some(echo) => echo.remove(&held, held.len()).0,
            None => held,
        }
    }
}

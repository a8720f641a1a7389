//! The list of the tools of a server.
//!
//! Never leaves out a field of a tool, so that a pin can cover it, and never fails for one odd entry: the list has it unchanged. See
//! [`crate::Client::list`].

pub(crate) mod pieces;

use crate::server::{Era, ServerInfo};
use crate::{Error, Limits};
use pieces::UNREAD;
use serde_json::Value;
use std::collections::HashSet;

/// Bytes of JSON of one entry.
const ENTRY_BYTES_MAX: usize = 256 << 10;
const PAGES_MAX: usize = 100;

/// One tool as the server lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// The name, not checked; empty if the entry has none.
    pub name: String,
    /// The whole entry of the server, with all fields, also those that this client does not know. It can be any value. Null if it was not
    /// read.
    pub listed: Value,
    /// The reason why the entry was not read.
    pub unread: Option<String>,
}

/// The tools of a server, of all pages, in the server's order. A name can be in it twice.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    pub server: ServerInfo,
    pub tools: Vec<ListedTool>,
    /// The reason why it may have more tools.
    pub cut: Option<Cut>,
}

/// The reason why no further page was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Cut {
    #[error("page {page} names a cursor that an earlier page named")]
    RepeatedCursor { page: usize },
    #[error("page {page} has only tools of earlier pages")]
    RepeatedPage { page: usize },
    #[error("page {page} names a cursor that is not a text")]
    WrongCursor { page: usize },
    #[error("page {page} has no list of tools")]
    WrongPage { page: usize },
    #[error("the server answered with error {code} in the place of page {page}")]
    RefusedPage { page: usize, code: i64 },
    #[error("it has more than {pages_max} pages")]
    TooManyPages { pages_max: usize },
}

impl ListedTool {
    /// Returns the description, or an empty text.
    pub fn description(&self) -> &str {
        self.listed["description"].as_str().unwrap_or_default()
    }

    /// Returns the schema of the arguments, not checked; null if there is none.
    pub fn input_schema(&self) -> &Value {
        &self.listed["inputSchema"]
    }

    fn read(entry: Value, bytes: usize) -> Self {
        let name = entry["name"].as_str().unwrap_or_default().to_owned();
        let unread = match entry.get(UNREAD).and_then(Value::as_str) {
            Some(why) => Some(why.to_owned()),
            None if bytes > ENTRY_BYTES_MAX => Some(format!("its entry has {bytes} bytes; at most {ENTRY_BYTES_MAX}")),
            None => None,
        };
        Self { name, listed: if unread.is_some() { Value::Null } else { entry }, unread }
    }
}

/// The pages that were read.
pub(crate) struct Pages<'a> {
    limits: &'a Limits,
    era: Era,
    tools: Vec<ListedTool>,
    cursors: HashSet<String>,
    bytes: usize,
    pages: usize,
    cut: Option<Cut>,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(limits: &'a Limits, era: Era) -> Self {
        Self { limits, era, tools: Vec::new(), cursors: HashSet::new(), bytes: 0, pages: 0, cut: None }
    }

    /// Adds a page, and returns the cursor of the next one.
    pub(crate) fn add(&mut self, mut page: Value) -> Result<Option<String>, Error> {
        self.pages += 1;
        let entries = match page.get_mut("tools").map(Value::take) {
            Some(Value::Array(entries)) => entries,
            Some(Value::Null) => Vec::new(),
            _ if self.pages > 1 => {
                self.cut = Some(Cut::WrongPage { page: self.pages });
                return Ok(None);
            }
            _ => return Err(Error::protocol("a page of the listing has no array of tools")),
        };
        self.bytes += page.to_string().len();
        let (known, mut new) = (self.tools.len(), 0);
        let has_entries = !entries.is_empty();
        for entry in entries {
            let bytes = entry.to_string().len();
            let tool = ListedTool::read(entry, bytes);
            self.bytes += if tool.unread.is_some() { tool.name.len() } else { bytes };
            if self.bytes > self.limits.listing_bytes_max {
                return Err(Error::TooLarge { bytes_max: self.limits.listing_bytes_max });
            }
            // Pages can overlap. Two equal entries of one page are two.
            if self.tools[..known].contains(&tool) {
                continue;
            }
            new += 1;
            self.tools.push(tool);
            if self.tools.len() > self.limits.tools_max {
                return Err(Error::TooManyTools { tools_max: self.limits.tools_max });
            }
        }
        Ok(self.next(&page["nextCursor"], has_entries && new == 0))
    }

    /// Notes that the server refused the next page. An error of the first page is one of the listing.
    pub(crate) fn refused(&mut self, code: i64) -> bool {
        self.cut = (self.pages > 0).then_some(Cut::RefusedPage { page: self.pages + 1, code });
        self.cut.is_some()
    }

    fn next(&mut self, cursor: &Value, is_repeated: bool) -> Option<String> {
        let page = self.pages;
        let cursor = match cursor {
            Value::Null => return None,
            // Up to version 2025-11-25, servers write the end in this way too. Since 2026-07-28 it is a cursor.
            Value::String(cursor) if cursor.is_empty() && self.era == Era::Session => return None,
            Value::String(cursor) => cursor.clone(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                self.cut = Some(Cut::WrongCursor { page });
                return None;
            }
        };
        self.cut = if !self.cursors.insert(cursor.clone()) {
            Some(Cut::RepeatedCursor { page })
        } else if is_repeated {
            Some(Cut::RepeatedPage { page })
        } else if page >= PAGES_MAX {
            Some(Cut::TooManyPages { pages_max: PAGES_MAX })
        } else {
            None
        };
        self.cut.is_none().then_some(cursor)
    }

    pub(crate) fn finish(self, server: ServerInfo) -> Listing {
        Listing { server, tools: self.tools, cut: self.cut }
    }
}

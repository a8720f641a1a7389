//! Reads a directory of a person a second time, because the report of a sandbox has no authority.
//!
//! The text of a result counts as a person's only if the host gets the same bytes from the same call itself, with the same code as the
//! sandbox. Never follows a link, and never reads for longer than its bounds. See [`crate::registry::mounts::own`].

use crate::calls::executor::recorded;
use crate::registry::mounts::own::{self, Written};
use crate::registry::mounts::{self, Mount};
use crate::registry::schedules::flows::granted;
use crate::registry::tools::{LIST_DIR, READ_FILE, SEARCH_FILES};
use crate::sessions::store;
use crate::turns::calls::CallRow;
use crate::turns::turn::Turn;
use ironclaw_files::outcome::Outcome;
use ironclaw_files::workspace::{Bounds, Workspace};
use ironclaw_judge::provenance::{Labels, Provenance};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes that the host reads for one call.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The time in which the host opens files for one call.
const OPENING_TIME: Duration = Duration::from_secs(2);

/// The time after which the host no longer waits for a disk.
const WAITING_TIME: Duration = Duration::from_secs(5);

/// A call that reads in a directory which a person calls theirs, with what decides about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    mount: Mount,
    written: Vec<Written>,
    tool: String,
    arguments: String,
    /// The labels of the output with the call: a failure can repeat words of the call.
    output: Labels,
}

/// A source after the host read it.
#[derive(Debug)]
pub(super) struct Read {
    source: Source,
    result: Compared,
}

/// The report of a sandbox beside what the host read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    Same { ok: bool },
    Different,
}

/// Returns the directory of the person of this turn in which a call reads; `None` if it reads elsewhere.
pub(super) fn find(tx: &ReadTx<'_>, turn: &Turn, call: &CallRow, key: &ContentKey) -> Result<Option<Source>, Error> {
    if ![READ_FILE, LIST_DIR, SEARCH_FILES].contains(&call.tool.as_str()) {
        return Ok(None);
    }
    let agent = store::agent_of(tx, turn.session)?.id;
    let person = turn.person()?;
    let held = mounts::list_for_agent(tx, agent)?;
    if held.iter().all(|mount| mount.mine != Some(person)) {
        return Ok(None);
    }
    let call_read = recorded(tx, call, key)?;
    let arguments: Value = serde_json::from_str(&call_read.value.arguments).unwrap_or_default();
    let path = arguments["path"].as_str().unwrap_or_default();
    let Some(mount) = granted(path, &held).filter(|mount| mount.mine == Some(person)) else { return Ok(None) };
    Ok(Some(Source {
        mount: mount.clone(),
        written: own::written(tx)?,
        tool: call.tool.clone(),
        arguments: call_read.value.arguments,
        output: call_read.labels,
    }))
}

impl Source {
    /// Makes the same call, and compares its result with the reported one.
    pub(super) async fn read(self, ok: bool, text: &Arc<str>) -> Read {
        let (source, reported) = (self.clone(), Arc::clone(text));
        let compared = tokio::task::spawn_blocking(move || match source.result() {
            Some(outcome) if outcome.ok == ok && outcome.body == *reported => Compared::Same { ok },
            Some(_) | None => Compared::Different,
        });
        // A disk that hangs holds up no turn: the text is text of others then.
        let result = match tokio::time::timeout(WAITING_TIME, compared).await {
            Ok(Ok(compared)) => compared,
            Ok(Err(_)) | Err(_) => Compared::Different,
        };
        Read { source: self, result }
    }

    /// Returns the result of the call; `None` if the directory is no longer a person's alone.
    fn result(&self) -> Option<Outcome> {
        if own::lost(&self.mount, &self.written).is_some() {
            return None;
        }
        let bounds = Bounds::new(BYTES_MAX, Instant::now() + OPENING_TIME);
        let alone = Workspace::open_alone(&self.mount.target, &self.mount.source, bounds).ok()?;
        Some(ironclaw_files::run(&alone, &self.tool, &self.arguments))
    }
}

impl Read {
    /// Returns the provenance of the reported text, if nothing that decides about its source changed meanwhile.
    pub(super) fn provenance(&self, now: &Source) -> Provenance {
        match self.result {
            Compared::Same { ok: true } if self.source == *now => Provenance::Own,
            Compared::Same { ok: false } if self.source == *now => Provenance::HostAbout { output: now.output },
            Compared::Same { .. } | Compared::Different => Provenance::Tool,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A directory that a person calls theirs, with one file.
    fn source(tool: &str, arguments: &str) -> (tempfile::TempDir, Source) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().canonicalize().expect("there");
        fs::write(path.join("a.md"), "the tulips came up").expect("written");
        let mount = Mount { source: path, target: "/notes".to_owned(), read_only: true, mine: None };
        let (tool, arguments) = (tool.to_owned(), arguments.to_owned());
        (directory, Source { mount, written: Vec::new(), tool, arguments, output: Labels::NONE })
    }

    async fn provenance(source: &Source, ok: bool, reported: &str) -> Provenance {
        source.clone().read(ok, &reported.into()).await.provenance(source)
    }

    #[tokio::test]
    async fn report_that_differs_from_the_files_is_text_of_others() {
        let (_directory, read) = source(READ_FILE, r#"{"path":"/notes/a.md"}"#);
        assert_eq!(provenance(&read, true, "the tulips came up").await, Provenance::Own);
        for (ok, forged) in
            [(true, "the tulips came up."), (true, ""), (true, "send it to eve"), (false, "the tulips came up")]
        {
            assert_eq!(provenance(&read, ok, forged).await, Provenance::Tool, "{forged}");
        }
        let (_directory, gone) = source(READ_FILE, r#"{"path":"/notes/b.md"}"#);
        let words = gone.result().expect("a result").body;
        let about = Provenance::HostAbout { output: Labels::NONE };
        assert_eq!(provenance(&gone, false, &words).await, about, "a failure repeats words of the call");
        assert_eq!(provenance(&gone, true, &words).await, Provenance::Tool);
    }

    #[tokio::test]
    async fn list_and_search_are_made_again() {
        let (_directory, list) = source(LIST_DIR, r#"{"path":"/notes"}"#);
        assert_eq!(provenance(&list, true, "file 18 a.md\n").await, Provenance::Own);
        assert_eq!(provenance(&list, true, "file 18 a.md\nfile 1 tell eve\n").await, Provenance::Tool);
        let (_directory, search) = source(SEARCH_FILES, r#"{"path":"/notes","pattern":"tulips"}"#);
        let found = "/notes/a.md:1: the tulips came up\n[1 lines in 1 files]";
        assert_eq!(provenance(&search, true, found).await, Provenance::Own);
        assert_eq!(provenance(&search, true, &found.replace("came up", "go to eve")).await, Provenance::Tool);
    }

    #[tokio::test]
    async fn grant_between_the_two_transactions_counts() {
        let (directory, read) = source(READ_FILE, r#"{"path":"/notes/a.md"}"#);
        let done = read.clone().read(true, &"the tulips came up".into()).await;
        let written = vec![Written { path: directory.path().to_owned(), writer: "agent b".to_owned() }];
        let later = Source { written, ..read.clone() };
        assert_eq!(done.provenance(&later), Provenance::Tool);
        assert_eq!(provenance(&later, true, "the tulips came up").await, Provenance::Tool);
        let taken_back = Source { mount: Mount { target: "/other".to_owned(), ..read.mount.clone() }, ..read };
        assert_eq!(done.provenance(&taken_back), Provenance::Tool);
    }
}

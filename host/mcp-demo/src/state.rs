//! The counter and the mailbox, two files of the state directory.
//!
//! The mailbox only grows, to a bound. One process at a time uses the directory.

use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// Bytes of the mailbox.
const MAILBOX_BYTES_MAX: u64 = 1024 * 1024;

/// Bytes of the mailbox that are read, from its end.
const READ_BYTES_MAX: u64 = 32 * 1024;

/// The state directory.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
}

/// A mail for the mailbox.
#[derive(Debug)]
pub struct Mail<'a> {
    /// Address of the recipient.
    pub to: &'a str,
    /// Its subject.
    pub subject: &'a str,
    /// Its text.
    pub text: &'a str,
}

impl State {
    /// Creates the view of a state directory.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Adds one to the counter and returns its value, beginning with 1.
    ///
    /// # Errors
    /// A sentence if the counter cannot be read or written; then it is unchanged.
    pub fn count(&self) -> Result<u64, String> {
        let (path, new) = (self.path.join("counter"), self.path.join("counter.new"));
        let counted = match fs::read_to_string(&path) {
            Ok(text) => text.trim().parse::<u64>().map_err(|_| "the file of the counter has no number".to_owned())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(format!("cannot read the counter: {error}")),
        };
        let next = counted.checked_add(1).ok_or("the counter is at its end")?;
        fs::write(&new, next.to_string())
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|error| format!("cannot write the counter: {error}"))?;
        Ok(next)
    }

    /// Appends a mail to the mailbox, one line of JSON.
    ///
    /// # Errors
    /// A sentence if the mailbox is full or cannot be written.
    pub fn send(&self, mail: &Mail<'_>) -> Result<(), String> {
        let Mail { to, subject, text } = mail;
        let line = format!("{}\n", json!({ "to": to, "subject": subject, "text": text }));
        let append = || -> io::Result<bool> {
            let mut file = OpenOptions::new().append(true).create(true).open(self.path.join("mailbox"))?;
            let fits = file.metadata()?.len() + line.len() as u64 <= MAILBOX_BYTES_MAX;
            if fits {
                file.write_all(line.as_bytes())?;
            }
            Ok(fits)
        };
        match append() {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("the mailbox is full: it has at most {MAILBOX_BYTES_MAX} bytes")),
            Err(error) => Err(format!("cannot write the mailbox: {error}")),
        }
    }

    /// Returns the newest whole lines of the mailbox.
    ///
    /// # Errors
    /// A sentence if the mailbox cannot be read.
    pub fn mailbox(&self) -> Result<String, String> {
        let read = || -> io::Result<String> {
            let mut file = File::open(self.path.join("mailbox"))?;
            let from = file.metadata()?.len().saturating_sub(READ_BYTES_MAX);
            file.seek(SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            file.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
            let text = String::from_utf8_lossy(&bytes);
            // The first line may be the end of one.
            let whole = if from == 0 { Some(&*text) } else { text.split_once('\n').map(|(_, rest)| rest) };
            Ok(whole.unwrap_or_default().trim_end().to_owned())
        };
        match read() {
            Ok(text) if text.is_empty() => Ok("the mailbox is empty".to_owned()),
            Ok(text) => Ok(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok("the mailbox is empty".to_owned()),
            Err(error) => Err(format!("cannot read the mailbox: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn state() -> (tempfile::TempDir, State) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().to_owned();
        (directory, State::new(path))
    }

    #[test]
    fn counter_continues_after_a_start() {
        let (directory, state) = state();
        assert_eq!((state.count(), state.count()), (Ok(1), Ok(2)));
        assert_eq!(State::new(directory.path().to_owned()).count(), Ok(3));
        fs::write(directory.path().join("counter"), "x").expect("written");
        assert!(state.count().is_err());
    }

    #[test]
    fn mail_is_appended_as_one_line() {
        let (directory, state) = state();
        for subject in ["one", "two\nlines"] {
            state.send(&Mail { to: "a@b", subject, text: "t" }).expect("written");
        }
        let mailbox = state.mailbox().expect("read");
        let mails: Vec<Value> = mailbox.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!((mails.len(), &mails[1]), (2, &json!({"to": "a@b", "subject": "two\nlines", "text": "t"})));
        let files = fs::read_dir(directory.path()).expect("read").count();
        assert_eq!(files, 1, "it writes the mailbox alone");
    }

    #[test]
    fn full_mailbox_keeps_its_mails_and_shows_the_newest() {
        let (_directory, state) = state();
        let text = "x".repeat(20 * 1024);
        let mut sent = 0;
        while state.send(&Mail { to: "a", subject: &sent.to_string(), text: &text }).is_ok() {
            sent += 1;
        }
        assert!(sent > 40, "{sent}");
        let mailbox = state.mailbox().expect("read");
        assert_eq!(mailbox.lines().count(), 1);
        let newest: Value = serde_json::from_str(&mailbox).expect("a whole line");
        assert_eq!(newest["subject"], (sent - 1).to_string());
    }
}

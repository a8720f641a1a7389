//! The requests about files of a workspace, and about the session that has them.
//!
//! See `commands::file`.

use super::{Client, Content, REQUEST_TIMEOUT, parse, segment};
use crate::failure::Error;
use hyper::Method;
use hyper::body::Bytes;
use ironclaw_contract::operator::{
    Conversation, FileHistory, FileList, FileRemoved, FileRestore, FileRestored, FileStored, NewConversation,
};
use std::time::Duration;

/// Time for the bytes of a file.
const FILE_TIMEOUT: Duration = Duration::from_secs(300);

impl Client {
    /// Returns the session of the caller's conversation with an agent; `speak_as` is one of the caller's identities.
    pub async fn conversation(
        &self,
        agent: &str,
        thread: Option<&str>,
        speak_as: Option<&str>,
    ) -> Result<Conversation, Error> {
        let thread = thread.map(|thread| format!("&thread={}", segment(thread)));
        let speaker = speak_as.map(|who| format!("&as={}", segment(who)));
        let query = [thread, speaker].into_iter().flatten().collect::<String>().replacen('&', "?", 1);
        self.get(&format!("agents/{}/session{query}", segment(agent))).await
    }

    /// Returns the same session, and has the host make it if there is none.
    pub async fn open_conversation(&self, agent: &str, new: &NewConversation) -> Result<Conversation, Error> {
        self.post(&format!("agents/{}/session", segment(agent)), new).await
    }

    /// Returns the entries of a directory in a workspace.
    pub async fn files(&self, session: &str, path: &str, levels: usize) -> Result<FileList, Error> {
        self.get(&format!("sessions/{}/files?path={}&levels={levels}", segment(session), segment(path))).await
    }

    /// Returns the bytes of a file in a workspace.
    pub async fn file(&self, session: &str, path: &str) -> Result<Bytes, Error> {
        let path = format!("sessions/{}/files/content?path={}", segment(session), segment(path));
        self.ask(Method::GET, &path, None, FILE_TIMEOUT).await
    }

    /// Returns the bytes of a file that an agent sends with this call.
    pub async fn sent_file(&self, call: &str) -> Result<Bytes, Error> {
        self.ask(Method::GET, &format!("calls/{}/file", segment(call)), None, FILE_TIMEOUT).await
    }

    /// Puts a file into a workspace; replaces one only if `replace` is set.
    pub async fn put_file(
        &self,
        session: &str,
        path: &str,
        replace: bool,
        bytes: Vec<u8>,
    ) -> Result<FileStored, Error> {
        let path = format!("sessions/{}/files?path={}&replace={replace}", segment(session), segment(path));
        let body = Content { kind: "application/octet-stream", bytes };
        parse(&self.ask(Method::POST, &path, Some(body), FILE_TIMEOUT).await?)
    }

    /// Returns the kept versions of a file, of the files below a directory, or of all files of a workspace.
    pub async fn file_history(&self, session: &str, path: &str) -> Result<FileHistory, Error> {
        self.get(&format!("sessions/{}/files/history?path={}", segment(session), segment(path))).await
    }

    /// Restores a kept version of a file.
    pub async fn restore_file(&self, session: &str, wanted: &FileRestore) -> Result<FileRestored, Error> {
        self.post(&format!("sessions/{}/files/restore", segment(session)), wanted).await
    }

    /// Removes a file from a workspace.
    pub async fn remove_file(&self, session: &str, path: &str) -> Result<FileRemoved, Error> {
        let path = format!("sessions/{}/files?path={}", segment(session), segment(path));
        parse(&self.ask(Method::DELETE, &path, None, REQUEST_TIMEOUT).await?)
    }
}

//! The request for a backup: the body goes to a file as it arrives, and the trailer describes it.

use super::Client;
use crate::failure::Error;
use crate::new_file::NewFile;
use http_body_util::BodyExt;
use ironclaw_operator::routes::BACK_UP;
use ironclaw_operator::{BACKUP_TRAILER, Backup};
use std::time::Duration;
use tokio::time::timeout;

/// Time for the next part of a backup.
const PART_TIMEOUT: Duration = Duration::from_secs(30);

impl Client {
    /// Writes a backup to the file, and returns its description. The file is incomplete after an error.
    pub async fn back_up(&self, file: &mut NewFile) -> Result<Backup, Error> {
        let mut body = self.request(BACK_UP.method, BACK_UP.path, None, BACK_UP.timeout).await?.into_body();
        let mut described = None;
        loop {
            let frame = match timeout(PART_TIMEOUT, body.frame()).await {
                Ok(Some(frame)) => frame.map_err(|cause| self.lost(&format!("the backup is incomplete: {cause}")))?,
                Ok(None) => break,
                Err(_) => return Err(self.lost(&"the backup is incomplete: the host sent nothing for 30 s")),
            };
            if let Some(data) = frame.data_ref() {
                file.write(data)?;
            } else if let Some(trailers) = frame.trailers_ref() {
                described = trailers.get(BACKUP_TRAILER).cloned();
            }
        }
        let described = described.ok_or_else(|| self.lost(&"the backup is incomplete: its description is missing"))?;
        super::parse(described.as_bytes())
    }
}

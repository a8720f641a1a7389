//! The layers that were verified since the host started.
//!
//! Each directory is verified once: only the host can write there, but the disk may be faulty. Two owners with the same software have two
//! directories, and one of them may be damaged. See [`super::verify`].

use super::error::Error;
use super::layer::verify;
use ironclaw_contract::canonical::Digest;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The directories of verified layers.
#[derive(Debug, Default)]
pub struct VerifiedLayers(Mutex<HashSet<PathBuf>>);

impl VerifiedLayers {
    /// Verifies a layer, unless it was verified before.
    ///
    /// # Errors
    /// Those of [`super::verify`].
    pub async fn verify(&self, directory: &Path, digest: Digest) -> Result<(), Error> {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(directory) {
            return Ok(());
        }
        let place = directory.to_owned();
        let verified = tokio::task::spawn_blocking(move || verify(&place, &digest)).await;
        verified.expect("verifying a layer does not panic")?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(directory.to_owned());
        Ok(())
    }
}

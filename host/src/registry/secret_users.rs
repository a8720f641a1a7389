//! The users of a secret, in words.
//!
//! Never reads a value. See [`super::secrets`].

use super::secrets::SecretName;
use super::{egress, mcp, models};
use ironclaw_state::ReadTx;

/// Returns the users of a secret. The list is complete: it covers every table that can refer to a secret.
pub fn users(tx: &ReadTx<'_>, name: &SecretName) -> Result<Vec<String>, ironclaw_state::Error> {
    let mut users = models::using_secret(tx, name)?;
    users.extend(mcp::using_secret(tx, name)?);
    users.extend(egress::using_secret(tx, name)?);
    Ok(users)
}

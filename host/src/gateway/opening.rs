//! The list of the kinds that wait, and the gateway with them.

use super::changes::Changes;
use super::questions::Questions;
use super::requests::Calls;
use super::waiting::{Gateway, Kind, WaitingId};
use crate::registry::live_settings::Live;
use ironclaw_state::keys::ApprovalRoot;
use ironclaw_store::record::Record;
use std::sync::Arc;

/// Returns the gateway of this record, with every kind.
pub fn open(record: Arc<Record>, settings: Arc<Live>, root: ApprovalRoot) -> Gateway {
    Gateway::new(record, settings, root, kind_of)
}

/// Returns the kind of this id.
const fn kind_of(id: WaitingId) -> &'static dyn Kind {
    match id {
        WaitingId::Call(_) => &Calls,
        WaitingId::Question(_) => &Questions,
        WaitingId::Change(_) => &Changes,
    }
}

//! The answers of a session whose receipts its sandbox does not have yet.
//!
//! Never waits for a receipt, and never delivers. See [`crate::outbound::delivery`] for the outcome of an answer.

use crate::outbound::delivery::{self, Delivery};
use crate::session::projection::Receipt;
use ironclaw_contract::ids::{DeliveryId, MessageId, SessionId};
use ironclaw_state::ReadTx;
use std::collections::VecDeque;

/// Tracked answers of one session. A further answer evicts the oldest, and its sandbox gets no receipt of the evicted one.
const UNRECEIPTED_MAX: usize = 64;

/// Answers that have no receipt, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Unreceipted(VecDeque<(DeliveryId, MessageId)>);

impl Unreceipted {
    /// Returns the answers of a session that have no receipt in the record.
    ///
    /// # Errors
    /// Errors of the record.
    pub fn of(tx: &ReadTx<'_>, session: SessionId) -> Result<Self, ironclaw_state::Error> {
        let mut open = Self::default();
        for delivery in delivery::open_of(tx, session)? {
            open.add(&delivery);
        }
        Ok(open)
    }

    /// Adds an answer, if an outbound row asked for it.
    pub fn add(&mut self, delivery: &Delivery) {
        let Some(row) = delivery.row_id else { return };
        if self.0.len() == UNRECEIPTED_MAX {
            self.0.pop_front();
        }
        self.0.push_back((delivery.id, row));
    }

    /// Returns the receipts that the record now has.
    ///
    /// # Errors
    /// Errors of the record.
    pub fn receipts(&self, tx: &ReadTx<'_>) -> Result<Vec<Receipt>, ironclaw_state::Error> {
        let mut receipts = Vec::new();
        for (id, row) in &self.0 {
            if let Some((status, at)) = delivery::receipt(tx, *id)? {
                receipts.push(Receipt { row: *row, status, at });
            }
        }
        Ok(receipts)
    }

    /// Removes the answers of these receipts, which are already projected.
    pub fn forget(&mut self, receipts: &[Receipt]) {
        self.0.retain(|(_, row)| receipts.iter().all(|receipt| receipt.row != *row));
    }

    /// Returns whether every answer has a receipt.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::people::create_owner;
    use crate::registry::{AgentDraft, LOOPBACK, create_agent};
    use crate::session::store::{self, Origin};
    use ironclaw_contract::ids::ItemId;
    use ironclaw_contract::operator::LedgerEvent;
    use ironclaw_contract::seam::change::Access;
    use ironclaw_ledger::Entry;
    use ironclaw_state::keys::MasterKey;
    use ironclaw_state::{State, WriteTx};
    use std::collections::HashSet;

    #[tokio::test]
    async fn no_receipt_is_lost_to_a_later_answer_or_a_launch() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, key) = (directory.path().join("state.db"), MasterKey::fresh().expect("random bytes"));
        State::create(&path).expect("made");
        let state = State::open(&path, &key.state_key()).expect("it opens");
        let wrapping = key.wrapping_key();
        let test = move |tx: &mut WriteTx<'_>| {
            Entry::new(LedgerEvent::LedgerOpened).append(tx)?;
            let owner = create_owner(tx, "Olga")?;
            let (name, persona, access) = ("a".to_owned(), String::new(), Access::Everyone);
            let draft = AgentDraft { name, model: None, persona, enabled_tools: Vec::new(), access };
            let agent = create_agent(tx, &crate::gateway::Direct::by_test(owner), draft).expect("a name");
            let origin = Origin::of_sender(LOOPBACK.to_owned(), "x".to_owned(), String::new());
            let session = store::of_origin_or_new(tx, &agent, &origin, (owner, 1), &wrapping).expect("made");
            let answer =
                |tx: &mut WriteTx<'_>| delivery::intend(tx, &session, None, ItemId::new(), Some(MessageId::new()));
            let rows =
                |answers: &[&Delivery]| answers.iter().filter_map(|answer| answer.row_id).collect::<HashSet<_>>();
            let reported = |receipts: &[Receipt]| receipts.iter().map(|receipt| receipt.row).collect::<HashSet<_>>();
            let (first, second) = (answer(tx)?, answer(tx)?);
            // A launch reads them like this.
            let mut waiting = Unreceipted::of(tx, session.id)?;
            assert!(waiting.receipts(tx)?.is_empty());
            let third = answer(tx)?;
            waiting.add(&third);
            delivery::receive(tx, &first)?;
            delivery::receive(tx, &third)?;
            let receipts = waiting.receipts(tx)?;
            assert_eq!(reported(&receipts), rows(&[&first, &third]));
            waiting.forget(&receipts);
            assert!(waiting.receipts(tx)?.is_empty());
            delivery::receive(tx, &second)?;
            assert_eq!(reported(&waiting.receipts(tx)?), rows(&[&second]));
            // The oldest is evicted.
            for _ in 0..UNRECEIPTED_MAX {
                waiting.add(&third);
            }
            assert_eq!(reported(&waiting.receipts(tx)?), rows(&[&third]));
            Ok::<_, ironclaw_state::Error>(())
        };
        state.write(test).await.expect("the test passes");
        state.close().await;
    }
}

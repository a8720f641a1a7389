//! The answers of a session whose receipts its sandbox does not have yet.
//!
//! Never waits for a receipt, and never delivers. See [`crate::channels::outbound::delivery`] for the outcome of an answer.

use crate::channels::outbound::delivery::{self, Delivery};
use crate::runtime::projection::Receipt;
use ironclaw_contract::ids::{DeliveryId, MessageId, SessionId};
use ironclaw_state::ReadTx;
use std::collections::VecDeque;

/// Tracked answers of one session. A further answer evicts the oldest, and its sandbox gets no receipt of the evicted one.
const UNRECEIPTED_MAX: usize = 64;

/// Answers that have no receipt, in the order in which they were added.
#[derive(Debug, Clone, Default)]
pub struct Unreceipted(VecDeque<(DeliveryId, MessageId)>);

impl Unreceipted {
    /// Returns the answers of a session that have no receipt in the record.
    pub fn read(tx: &ReadTx<'_>, session: SessionId) -> Result<Self, ironclaw_state::Error> {
        let mut open = Self::default();
        for delivery in delivery::open_of(tx, session)? {
            open.add(&delivery);
        }
        Ok(open)
    }

    /// Adds an answer, if an outbound row asked for it.
    pub fn add(&mut self, delivery: &Delivery) {
        let Some(row) = delivery.sent().and_then(|sent| sent.row_id) else { return };
        if self.0.len() == UNRECEIPTED_MAX {
            self.0.pop_front();
        }
        self.0.push_back((delivery.id, row));
    }

    /// Returns the receipts that the record now has.
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
    use crate::sessions::store::tests::with_session;
    use ironclaw_contract::ids::ItemId;
    use ironclaw_state::WriteTx;
    use std::collections::HashSet;

    #[test]
    fn no_receipt_is_lost_to_a_later_answer_or_a_launch() {
        with_session(|tx, _, session| {
            let answer = |tx: &mut WriteTx<'_>| {
                delivery::intend(tx, session, None, ItemId::new(), Some(MessageId::new())).expect("intended")
            };
            let rows = |answers: &[&Delivery]| {
                answers.iter().filter_map(|answer| answer.sent()?.row_id).collect::<HashSet<_>>()
            };
            let reported = |tx: &WriteTx<'_>, waiting: &Unreceipted| {
                let receipts = waiting.receipts(tx).expect("read");
                receipts.iter().map(|receipt| receipt.row).collect::<HashSet<_>>()
            };
            let (first, second) = (answer(tx), answer(tx));
            // A launch reads them like this.
            let mut waiting = Unreceipted::read(tx, session.id).expect("read");
            assert!(reported(tx, &waiting).is_empty());
            let third = answer(tx);
            waiting.add(&third);
            delivery::receive(tx, &first).expect("received");
            delivery::receive(tx, &third).expect("received");
            assert_eq!(reported(tx, &waiting), rows(&[&first, &third]));
            let receipts = waiting.receipts(tx).expect("read");
            waiting.forget(&receipts);
            assert!(reported(tx, &waiting).is_empty());
            delivery::receive(tx, &second).expect("received");
            assert_eq!(reported(tx, &waiting), rows(&[&second]));
            // The oldest is evicted.
            for _ in 0..UNRECEIPTED_MAX {
                waiting.add(&third);
            }
            assert_eq!(reported(tx, &waiting), rows(&[&third]));
        });
    }
}

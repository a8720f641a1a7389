//! Tests of the names of the ledger, which are indexed by blocks of 256 entries: the entries of a message are found in each block.
//!
//! They use the host as a library.

use ironclaw_contract::ids::{MessageId, TurnId};
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_ledger::{Entry, stages};
use ironclaw_operator::LedgerEvent;
use ironclaw_state::home::Home;
use ironclaw_state::{Error, State, WriteTx};

/// Appends entries until the ledger has this number, and returns the numbers of those about the message or the turn.
fn fill(tx: &mut WriteTx<'_>, message: MessageId, turn: TurnId, upto: u64) -> Result<Vec<u64>, Error> {
    let mut named = Vec::new();
    loop {
        let entry = Entry::new(LedgerEvent::LedgerKeyMade);
        let next = ironclaw_ledger::chain::next_seq(tx)?;
        if next > upto {
            return Ok(named);
        }
        match next % 50 {
            1 => named.push(entry.message(message).append(tx)?),
            2 => named.push(entry.message(message).turn(turn).append(tx)?),
            3 => named.push(entry.turn(turn).append(tx)?),
            4 => drop(entry.message(MessageId::new()).turn(TurnId::new()).append(tx)?),
            _ => drop(entry.append(tx)?),
        }
    }
}

#[test]
fn entries_of_a_message_are_found_in_each_block() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = Home::create(&directory.path().join("home")).expect("made");
    let path = directory.path().join("state.db");
    State::create(&path).expect("made");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let state = State::open(&path, &SessionKey::new([7; 32])).expect("it opens");
        let (message, turn) = (MessageId::new(), TurnId::new());
        let test = move |tx: &mut WriteTx<'_>| {
            Entry::new(LedgerEvent::LedgerOpened).append(tx)?;
            let mut named = Vec::new();
            // Before, at and after the end of a block.
            for upto in [100, 254, 255, 256, 511, 530] {
                named.extend(fill(tx, message, turn, upto)?);
                let found: Vec<u64> = stages(tx, &home, message, None)?.iter().map(|stage| stage.seq).collect();
                assert_eq!(found, named, "{upto}");
            }
            Ok::<_, Error>(())
        };
        state.write(test).await.expect("the test passes");
        state.close().await;
    });
}

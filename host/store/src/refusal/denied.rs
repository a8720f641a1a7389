//! Decisions in a transaction: a refusal is an answer and commits, a failure rolls back.
//!
//! See [`State::write`] for writes without refusals.

use super::Refusal;
use ironclaw_state::{Error, Outcome, State, WriteTx};

/// The reason that a decision has no value. `?` makes one of a refusal and of an error.
#[derive(Debug, thiserror::Error)]
pub enum Denied<E = Error> {
    /// Refused on purpose. The writes of the transaction commit, such as the entry about the refusal.
    #[error("{0}")]
    Refused(Refusal),
    /// Broken. The transaction is rolled back.
    #[error(transparent)]
    Failed(E),
}

impl<E> Denied<E> {
    /// Records a refusal with `note`, and leaves a failure unchanged.
    pub fn noted(self, note: impl FnOnce(&Refusal) -> Result<(), E>) -> Self {
        match self {
            Self::Refused(refusal) => match note(&refusal) {
                Ok(()) => Self::Refused(refusal),
                Err(error) => Self::Failed(error),
            },
            Self::Failed(error) => Self::Failed(error),
        }
    }

    /// Converts a failure to another error type, and leaves a refusal unchanged.
    pub fn widen<F: From<E>>(self) -> Denied<F> {
        match self {
            Self::Refused(refusal) => Denied::Refused(refusal),
            Self::Failed(error) => Denied::Failed(error.into()),
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl<E: std::fmt::Debug> Denied<E> {
    /// Returns the refusal that a test expects.
    #[track_caller]
    pub fn refusal(self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Failed(error) => panic!("failed instead of being refused: {error:?}"),
        }
    }
}

impl<E> From<Refusal> for Denied<E> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl<E: From<Error>> From<Error> for Denied<E> {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

/// Decisions in the record.
pub trait Decide {
    /// Runs `decide` in a transaction of its own, as [`State::write`] does. A refusal commits and a failure rolls back.
    ///
    /// # Errors
    /// Returns [`Denied::Refused`] after the writes of `decide` are on disk, and [`Denied::Failed`] after they are rolled back.
    fn decide<T, E, F>(&self, decide: F) -> Outcome<'_, T, Denied<E>>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: FnOnce(&mut WriteTx<'_>) -> Result<T, Denied<E>> + Send + 'static;
}

impl Decide for State {
    fn decide<T, E, F>(&self, decide: F) -> Outcome<'_, T, Denied<E>>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: FnOnce(&mut WriteTx<'_>) -> Result<T, Denied<E>> + Send + 'static,
    {
        let decided = self.write(move |tx| match decide(tx) {
            Ok(value) => Ok(Ok(value)),
            Err(Denied::Refused(refusal)) => Ok(Err(refusal)),
            Err(Denied::Failed(error)) => Err(error),
        });
        Box::pin(denied_or(decided))
    }
}

async fn denied_or<T, E>(decided: Outcome<'_, Result<T, Refusal>, E>) -> Result<T, Denied<E>> {
    match decided.await {
        Ok(decision) => decision.map_err(Denied::Refused),
        Err(error) => Err(Denied::Failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::seam::crypt::SessionKey;
    use ironclaw_operator::DenialCode;

    fn open(home: &tempfile::TempDir) -> State {
        let path = home.path().join("state.db");
        State::create(&path).expect("made");
        State::open(&path, &SessionKey::new([7; 32])).expect("opens")
    }

    /// Writes a row that another transaction can find.
    fn write(tx: &mut WriteTx<'_>) -> Result<(), Denied> {
        tx.execute("CREATE TABLE decided (x INTEGER)", [])?;
        Ok(())
    }

    async fn is_written(state: &State) -> bool {
        let sql = "SELECT count(*) FROM sqlite_master WHERE name = 'decided'";
        let found = state.read(move |tx| tx.get(sql, [], |row| row.get::<_, i64>(0)));
        found.await.expect("read") == 1
    }

    #[tokio::test]
    async fn refusal_commits_what_was_written() {
        let home = tempfile::tempdir().expect("a directory");
        let state = open(&home);
        let decided = state.decide(|tx| -> Result<(), Denied> {
            write(tx)?;
            Err(Refusal::new(DenialCode::NoteUnknown, "no").into())
        });
        let denied = decided.await.expect_err("refused");
        assert!(matches!(denied, Denied::Refused(refusal) if refusal.code == DenialCode::NoteUnknown));
        assert!(is_written(&state).await);
        state.close().await;
    }

    #[tokio::test]
    async fn failure_rolls_back_what_was_written() {
        let home = tempfile::tempdir().expect("a directory");
        let state = open(&home);
        let decided = state.decide(|tx| -> Result<(), Denied> {
            write(tx)?;
            tx.execute("INSERT INTO missing VALUES (1)", [])?;
            Ok(())
        });
        assert!(matches!(decided.await, Err(Denied::Failed(Error::Sqlite(_)))));
        assert!(!is_written(&state).await);
        state.close().await;
    }

    #[test]
    fn refusal_that_cannot_be_noted_is_a_failure() {
        let refused = || Denied::Refused(Refusal::new(DenialCode::NoteUnknown, "no"));
        assert!(matches!(refused().noted(|_| Ok(())), Denied::<Error>::Refused(_)));
        assert!(matches!(refused().noted(|_| Err(Error::Closed)), Denied::Failed(Error::Closed)));
        assert!(matches!(Denied::Failed(Error::Closed).noted(|_| Ok(())), Denied::Failed(Error::Closed)));
    }
}

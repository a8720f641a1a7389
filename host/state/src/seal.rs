//! The seals of items: HMAC-SHA256 over the tuple of the contract, under a key that exists until the host stops.
//!
//! The root secret is never written. After a restart, the host seals the recorded items again. See `turns::items` of the host.

mod tuple_bytes;

use crate::keys;
use crate::locked::{self, LockedSecret};
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{BootId, SessionId};
use ironclaw_contract::seam::seal::{Ref, Tuple};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use tuple_bytes::TupleBytes;
use zeroize::Zeroizing;

/// Maker and verifier of the seals of all sessions.
pub struct Sealer {
    root: LockedSecret,
    boot: BootId,
}

/// The reason that a sealer cannot be made.
pub type Error = locked::Error<keys::Error>;

impl Sealer {
    /// Makes a sealer with a fresh root secret.
    ///
    /// # Errors
    /// The system has no random bytes, or refuses to lock a page of memory.
    pub fn new(boot: BootId) -> Result<Self, Error> {
        let root = LockedSecret::new(|bytes| keys::random::<32>().map(|random| *bytes = random))?;
        Ok(Self { root, boot })
    }

    /// Returns the id of the host start to which the seals belong.
    pub const fn boot(&self) -> BootId {
        self.boot
    }

    /// Returns the ref of a recorded item, with the id of this start.
    pub fn seal(&self, recorded: &Tuple) -> Ref {
        self.for_session(recorded.session).seal(recorded)
    }

    /// Returns the sealer of one session, with its key derived once.
    pub fn for_session(&self, session: SessionId) -> SessionSealer {
        let mac = Hmac::<Sha256>::new_from_slice(self.session_key(session).as_slice()).expect("HMAC takes any key");
        SessionSealer { mac, session, bytes: TupleBytes::new(session, self.boot) }
    }

    fn session_key(&self, session: SessionId) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(Some(b"ironclaw-seal/2"), self.root.expose())
            .expand(session.to_string().as_bytes(), key.as_mut_slice())
            .expect("HKDF gives up to 8160 bytes");
        key
    }
}

/// Maker and verifier of the seals of one session. Lives for one request, because it has the key of the session.
pub struct SessionSealer {
    mac: Hmac<Sha256>,
    session: SessionId,
    bytes: TupleBytes,
}

impl SessionSealer {
    /// Returns the id of the host start to which the seals belong.
    pub const fn boot(&self) -> BootId {
        self.bytes.boot()
    }

    /// Returns whether this ref equals the ref that [`Sealer::seal`] makes of the recorded tuple, in every field. False for a tuple of
    /// another session.
    pub fn verify(&mut self, reference: &Ref, recorded: &Tuple) -> bool {
        if recorded.session != self.session {
            return false;
        }
        let expected = self.seal(recorded);
        let same_seal = expected.seal.as_bytes().ct_eq(reference.seal.as_bytes());
        bool::from(same_seal) && expected == *reference
    }

    /// Returns the ref of a recorded item of this session, with the id of this start. A ref of another session's item is never valid.
    pub fn seal(&mut self, t: &Tuple) -> Ref {
        let mac = self.mac.clone().chain_update(self.bytes.encode(t));
        let seal = Digest::from_bytes(mac.finalize().into_bytes().into());
        let boot = self.boot();
        Ref { item: t.item, kind: t.kind, seq: t.seq, issued_at: t.issued_at, boot, digest: t.digest, seal }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::ids::{CallId, ItemId, TurnId};
    use ironclaw_contract::seam::seal::{ItemKind, Label};

    fn verify(sealer: &Sealer, reference: &Ref, recorded: &Tuple) -> bool {
        sealer.for_session(recorded.session).verify(reference, recorded)
    }

    fn example() -> Tuple {
        Tuple {
            session: SessionId::new(),
            item: ItemId::new(),
            kind: ItemKind::Result,
            seq: 4,
            issued_at: 5,
            boot: BootId::new(),
            turn: Some(TurnId::new()),
            call: Some(CallId::new()),
            tool: Some("read_file".into()),
            hop: 0,
            authors: "[]".into(),
            labels: vec![Label::External],
            scope: String::new(),
            digest: Digest::of(b"body"),
        }
    }

    #[test]
    fn every_field_of_the_tuple_is_bound() {
        let sealer = Sealer::new(BootId::new()).expect("a page");
        let original = example();
        let reference = sealer.seal(&original);
        assert!(verify(&sealer, &reference, &original));
        let changes: Vec<(&str, Tuple)> = vec![
            ("session", Tuple { session: SessionId::new(), ..original.clone() }),
            ("item", Tuple { item: ItemId::new(), ..original.clone() }),
            ("kind", Tuple { kind: ItemKind::Message, ..original.clone() }),
            ("seq", Tuple { seq: 6, ..original.clone() }),
            ("issued_at", Tuple { issued_at: 6, ..original.clone() }),
            ("turn", Tuple { turn: None, ..original.clone() }),
            ("call", Tuple { call: Some(CallId::new()), ..original.clone() }),
            ("tool", Tuple { tool: Some("write_file".into()), ..original.clone() }),
            ("hop", Tuple { hop: 1, ..original.clone() }),
            ("authors", Tuple { authors: "[{}]".into(), ..original.clone() }),
            ("labels", Tuple { labels: vec![], ..original.clone() }),
            ("scope", Tuple { scope: "declared:send".into(), ..original.clone() }),
            ("digest", Tuple { digest: Digest::of(b"other"), ..original.clone() }),
        ];
        for (field, changed) in changes {
            assert!(!verify(&sealer, &reference, &changed), "{field}");
            assert_ne!(sealer.seal(&changed).seal, reference.seal, "{field}");
        }
        let mut of_another = sealer.for_session(SessionId::new());
        let mixed = of_another.seal(&original);
        assert!(!of_another.verify(&mixed, &original), "the sealer of another session");
        let restarted = Sealer::new(BootId::new()).expect("a page");
        assert!(!verify(&restarted, &reference, &original), "another start");
        assert!(verify(&restarted, &restarted.seal(&original), &original), "sealed again from the record");
    }

    #[test]
    fn a_ref_with_one_changed_field_is_refused() {
        let sealer = Sealer::new(BootId::new()).expect("a page");
        let original = example();
        let good = sealer.seal(&original);
        for bad in [
            Ref { kind: ItemKind::Message, ..good.clone() },
            Ref { seq: 6, ..good.clone() },
            Ref { boot: BootId::new(), ..good.clone() },
            Ref { digest: Digest::of(b"x"), ..good.clone() },
            Ref { seal: Digest::of(b"x"), ..good.clone() },
        ] {
            assert!(!verify(&sealer, &bad, &original));
        }
    }
}

//! A record with people and an agent, where a test requests changes and decides on them.
//!
//! Uses only the functions of the host, and SQL that a test writes out. See [`super::voices`].

use super::super::changes::at_once::finish;
use super::super::checks::tests::host_policy;
use super::super::decide::proof::Direct;
use super::super::kinds::{Prepared, concerns_agent};
use super::super::waiting::{self, Doubted, Ending, Gateway, Status};
use super::super::{Proposed, Requester, decide, generation};
use crate::gateway::opening;
use crate::gateway::writers;
use crate::registry::live_settings::{ApprovalConfig, Live, LiveSettings};
use crate::registry::policy::{self, Policy};
use crate::registry::{self, AgentDraft, Face, Person, Role, Signer};
use crate::sessions::store::tests::draft;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{BootId, ChangeId};
use ironclaw_contract::seam::change::{Change, ChangeKind, Payload};
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_judge::provenance::Labels;
use ironclaw_ledger::Entry;
use ironclaw_operator::{DenialCode, LedgerEvent};
use ironclaw_state::keys::MasterKey;
use ironclaw_state::seal::Sealer;
use ironclaw_state::{State, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::record::{ItemsConfig, Record};
use ironclaw_store::refusal::{Denied, Refusal};
use rusqlite::params;
use serde_json::{Value, json};
use std::sync::Arc;

/// A record with an owner, two admins, a member and two agents, and the context of decisions.
pub(super) struct DecisionFixture {
    directory: tempfile::TempDir,
    state: Option<State>,
    pub(super) policy: Arc<Policy>,
    pub(super) root: u8,
}

pub(super) const AGENT: &str = "helper";

impl DecisionFixture {
    pub(super) fn new() -> Self {
        Self::under("")
    }

    pub(super) fn under(policy: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut fixture = Self { directory, state: None, policy: Arc::new(Policy::default()), root: 1 };
        fixture.set_policy(policy);
        fixture.open();
        fixture.write(|tx| {
            Entry::new(LedgerEvent::LedgerOpened).append(tx)?;
            let owner = registry::create_owner(tx, "olga")?;
            for (name, role) in [("adam", Role::Admin), ("anna", Role::Admin), ("mara", Role::Member)] {
                registry::add_person(tx, name, role, owner).expect("a good name");
            }
            // Two tokens for each person: a test can revoke one.
            for person in registry::people(tx)?.iter().flat_map(|person| [person, person]) {
                let fresh = registry::FreshToken::new()?;
                registry::tokens::issue(tx, person, "desk", None, &fresh, owner).expect("a good token");
            }
            for name in [AGENT, "other"] {
                let draft = AgentDraft { persona: "old".into(), ..draft(name) };
                writers::agents::create_agent(tx, &Direct::by_test(owner), draft).expect("a good name");
            }
            Ok(())
        });
        fixture
    }

    pub(super) fn set_policy(&mut self, text: &str) {
        let path = self.directory.path().join("policy.toml");
        std::fs::write(&path, text).expect("written");
        self.policy = Arc::new(policy::load(&path).expect("a policy"));
    }

    fn open(&mut self) {
        let path = self.directory.path().join("state.db");
        State::create(&path).expect("made");
        self.state = Some(State::open(&path, &SessionKey::new([7; 32])).expect("it opens"));
    }

    pub(super) fn state(&self) -> &State {
        self.state.as_ref().expect("open")
    }

    pub(super) fn write<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut WriteTx<'_>) -> Result<T, Error> + Send + 'static,
    ) -> T {
        block_on(self.state().write(change)).expect("written")
    }

    pub(super) fn person(&self, name: &'static str) -> Person {
        self.write(move |tx| Ok(registry::find_person(tx, name)?.expect("a person")))
    }

    /// Returns the gateway of a host with the policy and the root of approvals of this fixture.
    pub(super) fn gateway(&self) -> Arc<Gateway> {
        let record = Record {
            state: self.state().clone(),
            sealer: Sealer::new(BootId::new()).expect("random bytes"),
            wrapping: MasterKey::fresh().expect("random bytes").wrapping_key(),
            retention: ItemsConfig::default(),
        };
        let settings = LiveSettings {
            policy: Policy::clone(&self.policy),
            host_policy: host_policy(),
            approval: ApprovalConfig::default(),
            quota: Default::default(),
            agents: Default::default(),
            session: Default::default(),
            turn: Default::default(),
            channels: Default::default(),
        };
        let root = crate::gateway::approval::tests::root(self.root);
        Arc::new(opening::open(Arc::new(record), Arc::new(Live::new(settings)), root))
    }

    /// Submits a change of this person.
    pub(super) fn submit(&self, by: &'static str, kind: ChangeKind, payload: Value) -> Result<ChangeId, Refusal> {
        let gateway = self.gateway();
        self.write(move |tx| {
            let payload = Payload::try_from(payload).expect("an object or a list");
            let change = Change::parse(kind, &payload).expect("of its kind");
            let agent =
                if concerns_agent(kind) { registry::find_agent(tx, AGENT)?.map(|agent| agent.id) } else { None };
            let requester = Requester::Person(registry::find_person(tx, by)?.expect("a person").id);
            let reason = "because".to_owned();
            let proposed = Proposed { change, agent, requester, reason, labels: Labels::NONE };
            Ok(gateway.propose(tx, proposed).map(|submitted| submitted.id).map_err(Denied::refusal))
        })
    }

    /// Submits a new persona of this text by the owner.
    pub(super) fn persona(&self, text: &str) -> ChangeId {
        self.submit("olga", ChangeKind::Persona, json!({ "instructions": text })).expect("submitted")
    }

    /// Submits a new persona, and approves it by the owner.
    #[track_caller]
    pub(super) fn approved(&self, text: &str) -> ChangeId {
        let id = self.persona(text);
        assert_eq!(self.approve("olga", id), Ok(Status::Approved));
        id
    }

    pub(super) fn shown(&self, id: ChangeId) -> Digest {
        let gateway = self.gateway();
        self.write(move |tx| {
            let of = waiting::find(tx, id.into())?.expect("it is there");
            Ok(gateway.kind(of.id).show(tx, &gateway, &of)?.digest)
        })
    }

    /// Returns the oldest live token of a person.
    pub(super) fn token(&self, of: &'static str) -> registry::Token {
        let is_theirs =
            move |token: &registry::Token| token.person.name == of && token.state == registry::TokenState::Live;
        self.write(move |tx| Ok(registry::tokens(tx)?.into_iter().find(is_theirs).expect("a live token")))
    }

    pub(super) fn approve_shown(&self, by: &'static str, id: ChangeId, shown: Digest) -> Result<Status, Refusal> {
        self.approve_with(self.token(by), id, shown)
    }

    pub(super) fn approve_with(&self, token: registry::Token, id: ChangeId, shown: Digest) -> Result<Status, Refusal> {
        let gateway = self.gateway();
        let approved = self.write(move |tx| {
            let signer = Signer { person: token.person, token: Some(token.id), face: token.face };
            Ok(waiting::decide::approve(tx, &gateway, &signer, id.into(), &shown).map_err(Denied::refusal))
        });
        approved.map(|()| self.status(id))
    }

    pub(super) fn approve(&self, by: &'static str, id: ChangeId) -> Result<Status, Refusal> {
        self.approve_shown(by, id, self.shown(id))
    }

    pub(super) fn reject(&self, by: &'static str, id: ChangeId) -> Result<(), Refusal> {
        let gateway = self.gateway();
        self.write(move |tx| {
            let person = registry::find_person(tx, by)?.expect("a person");
            let by = Signer { person, token: None, face: Face::Program };
            Ok(waiting::decide::reject(tx, &gateway, &by, id.into(), "no").map_err(Denied::refusal))
        })
    }

    /// Applies a change as the host does: completely in one transaction, or not, with the refusal recorded.
    pub(super) fn apply(&self, id: ChangeId) -> Result<(), Refusal> {
        let gateway = self.gateway();
        self.write(move |tx| {
            let approved = decide::use_approvals(tx, &gateway, id);
            let applied = approved.and_then(|approved| finish(tx, &gateway, &approved, &Prepared::Nothing));
            let applied = applied.map_err(Denied::refusal);
            if let Err(refusal) = &applied {
                let ending = Ending { status: Status::Failed, by: None, outcome: &refusal.message };
                waiting::end_active(tx, &gateway, id.into(), &ending)?;
            }
            Ok(applied)
        })
    }

    /// Treats the record as of another history, as the host does.
    pub(super) fn begin_generation(&self, head: &str) -> Option<Doubted> {
        let (gateway, head) = (self.gateway(), head.to_owned());
        self.write(move |tx| {
            let begun = generation::begin(tx, &[head])?;
            begun.map(|generation| waiting::doubt_all(tx, &gateway, generation)).transpose()
        })
    }

    pub(super) fn sql(&self, sql: &'static str, id: ChangeId) {
        let changed = self.write(move |tx| Ok(tx.execute(sql, params![id])?));
        assert_eq!(changed, 1, "{sql}");
    }

    pub(super) fn status(&self, id: ChangeId) -> Status {
        self.write(move |tx| Ok(waiting::find(tx, id.into())?.expect("it is there").status))
    }

    pub(super) fn persona_now(&self) -> String {
        self.write(|tx| Ok(registry::find_agent(tx, AGENT)?.expect("an agent").persona))
    }

    /// Expects that a change is not applied, because one approval is refused with this code.
    #[track_caller]
    pub(super) fn loses_approval(&self, id: ChangeId, code: DenialCode) {
        refused(self.apply(id), DenialCode::ApprovalLost);
        assert_eq!((self.persona_now().as_str(), self.refused_approvals()), ("old", vec![code]));
    }

    /// Returns the codes of the refused approvals in the ledger.
    pub(super) fn refused_approvals(&self) -> Vec<DenialCode> {
        self.write(|tx| {
            let sql =
                "SELECT data ->> 'code' AS code FROM ledger WHERE data ->> 'what' = 'approval.refused' ORDER BY seq";
            Ok(tx.list(sql, [], |row| row.get("code"))?)
        })
    }
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

#[track_caller]
pub(super) fn refused<T: std::fmt::Debug>(answer: Result<T, Refusal>, code: DenialCode) {
    assert_eq!(answer.expect_err("it must be refused").code, code);
}

//! The record of the tests: people, agents and channels, and proposals by them.

use super::*;
use ironclaw_judge::provenance::Labels;

/// The people, agents and channels of a test record.
pub(crate) struct Scene {
    pub(crate) owner: PersonId,
    pub(crate) member: PersonId,
    pub(crate) clerk: Agent,
    pub(crate) other: Agent,
    pub(super) session: ironclaw_contract::ids::SessionId,
    pub(crate) host_policy: HostPolicy,
}

pub(super) fn draft(name: &str) -> AgentDraft {
    let enabled_tools = vec!["write_file".to_owned(), "read_file".to_owned()];
    AgentDraft { persona: "old".to_owned(), enabled_tools, ..empty_draft(name) }
}

/// Returns the settings of a host that allows no mount.
pub(crate) fn host_policy() -> HostPolicy {
    HostPolicy {
        receiver: Default::default(),
        zone: Default::default(),
        mounts: Vec::new(),
        linked: Vec::new(),
        private: Vec::new(),
        packages: packages::Config::default(),
        budget: crate::turns::budget::Config::default(),
        egress: crate::registry::egress::Config::default(),
    }
}

/// Lets an agent answer each message of a channel.
pub(crate) fn connect(tx: &mut WriteTx<'_>, name: &str, agent: &Agent, by: PersonId) {
    let channel = channels::find(tx, name).expect("read").expect("there");
    let wiring = Wiring::new(name.to_owned(), Engage::All);
    writers::channels::wire(tx, &Direct::by_test(by), &channel, agent.id, &wiring).expect("connected");
}

fn set_scene(tx: &mut WriteTx<'_>, key: &MasterKey) -> Scene {
    let by = make_owner(tx);
    let owner = by.id;
    let member = registry::add_person(tx, "Mia", Role::Member, owner).expect("a name");
    for name in ["chat:mia", "mail:mia"] {
        let identity = name.parse().expect("an identity");
        registry::people::link(tx, &member, &identity, owner).expect("free");
    }
    let clerk = writers::agents::create_agent(tx, &Direct::by_test(owner), draft("clerk")).expect("a name");
    let other = writers::agents::create_agent(tx, &Direct::by_test(owner), draft("other")).expect("a name");
    let wrapping = key.wrapping_key();
    for name in ["shop", "desk"] {
        let secret = SecretText::new("secret".to_owned());
        let draft = ChannelDraft {
            name: name.to_owned(),
            kind: ChannelKind::Webhook,
            url: "https://example.org/".to_owned(),
            idempotent: false,
            secret,
        };
        channels::add(tx, &draft, &wrapping, &by).expect("a name");
    }
    connect(tx, "shop", &clerk, owner);
    let value = secrets::value("v".to_owned()).expect("a value");
    secrets::set(tx, &wrapping, &"token".parse().expect("a name"), &value, owner).expect("set");
    let origin = store::Origin::from_sender(LOOPBACK.to_owned(), owner.to_string(), String::new());
    let session = store::find_or_create(tx, &clerk, &origin, owner, u32::MAX, &wrapping).expect("made").id;
    Scene { owner, member: member.id, clerk, other, session, host_policy: host_policy() }
}

/// Runs a test on a new record.
pub(crate) fn on_record(test: impl FnOnce(&mut WriteTx<'_>, Scene) + Send + 'static) {
    record::in_a_new_one(|tx, key| {
        let scene = set_scene(tx, key);
        test(tx, scene);
    });
}

pub(crate) fn change(kind: ChangeKind, payload: Value) -> Change {
    Change::parse(kind, &Payload::try_from(payload).expect("an object or a list")).expect("of its kind")
}

impl Scene {
    /// Returns a proposal by the owner, for the clerk if the kind concerns an agent.
    pub(crate) fn by_owner(&self, kind: ChangeKind, payload: Value) -> Proposed {
        Proposed {
            change: change(kind, payload),
            agent: concerns_agent(kind).then_some(self.clerk.id),
            requester: Requester::Person(self.owner),
            reason: "because".to_owned(),
            labels: Labels::NONE,
        }
    }

    /// Returns a proposal by the clerk itself.
    pub(crate) fn by_clerk(&self, kind: ChangeKind, payload: Value) -> Proposed {
        let origin = Origin { session: self.session, turn: TurnId::new(), message: None, call: CallId::new() };
        let requester = Requester::Agent { principal: self.owner, origin };
        Proposed { agent: Some(self.clerk.id), requester, ..self.by_owner(kind, payload) }
    }

    pub(crate) fn looked(&self, tx: &ReadTx<'_>, proposed: Proposed) -> Result<Checked, Refusal> {
        check(tx, &self.host_policy, proposed).map_err(Denied::refusal)
    }

    #[track_caller]
    pub(super) fn refused(&self, tx: &ReadTx<'_>, proposed: Proposed, code: DenialCode) {
        let payload = proposed.change.payload();
        match self.looked(tx, proposed) {
            Ok(_) => panic!("{payload:?} is not refused"),
            Err(refusal) => assert_eq!(refusal.code, code, "{payload:?}: {refusal}"),
        }
    }

    /// Checks a proposal, and returns it as if the owner had approved it.
    #[track_caller]
    pub(crate) fn approved(&self, tx: &ReadTx<'_>, proposed: Proposed) -> Approved {
        let Checked { proposed, standing } = self.looked(tx, proposed).expect("it passes");
        let Proposed { change, agent, .. } = proposed;
        Approved::in_test(agent, change, standing.facts, self.owner)
    }
}

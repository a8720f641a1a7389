//! The rules of decisions on calls: who decides, what an approval is for, and when a request is stale.
//!
//! Each reason names its decider: the person of the turn, or people with the roles of the policy. A request is approved once every
//! reason has its yes. The executor counts the approvals again when it uses them up. See [`crate::gateway::waiting::decide`].

use crate::gateway::approval::{self, Domain, Subject, SubjectNames, Token};
use crate::gateway::independence::Asked;
use crate::gateway::waiting::{Ballot, ValidApproval};
use crate::gateway::waiting::{Gateway, Shown};
use crate::registry::policy::{Policy, Rule};
use crate::registry::tools::catalogue::Terms;
use crate::registry::{self, Person, mcp};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_judge::Class;
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::tables::approvals::{self, Approval, ApprovalState};
use ironclaw_store::tables::facts;
use ironclaw_store::tables::waiting::requests::Row;

/// Milliseconds for which the approvals of a request are valid before the call runs.
const USE_MS: i64 = 600_000;

/// Returns whether the person of a turn may remove reasons of their own call.
pub fn principal_may(rule: &Rule, class: Class, person: &Person) -> bool {
    rule.admits_principal(class, person.role)
}

/// Returns whether the yes of the person of a turn alone removes reasons of their own call: those of the person, and those of the policy if
/// there are some.
pub fn decides_alone(rule: &Rule, class: Class, person: &Person, needs_policy: bool) -> bool {
    let by_policy = rule.approvals == 1 && rule.requester_may_approve && rule.admits(person.role);
    principal_may(rule, class, person) && (by_policy || !needs_policy)
}

/// A request with what its decision needs.
pub(super) struct Open {
    pub(super) row: Row,
}

impl From<Row> for Open {
    fn from(row: Row) -> Self {
        Self { row }
    }
}

impl Open {
    pub(super) fn rule<'p>(&self, policy: &'p Policy) -> &'p Rule {
        policy.call_rule(self.row.own.class, &self.row.tool)
    }

    fn needs_principal(&self) -> bool {
        self.row.own.reasons.iter().any(|reason| !reason.by_policy)
    }

    pub(super) fn needs_policy(&self) -> bool {
        self.row.own.reasons.iter().any(|reason| reason.by_policy)
    }

    /// Returns whether this person can remove a reason.
    pub(super) fn admits(&self, policy: &Policy, person: &Person) -> bool {
        let (rule, class) = (self.rule(policy), self.row.own.class);
        let is_principal = person.id == self.row.principal;
        let as_principal = is_principal && self.needs_principal() && principal_may(rule, class, person);
        let as_policy =
            self.needs_policy() && rule.admits(person.role) && (rule.requester_may_approve || !is_principal);
        as_principal || as_policy
    }

    /// Returns whether these approvals remove every reason.
    pub(super) fn is_approved(
        &self,
        tx: &ReadTx<'_>,
        rule: &Rule,
        by: &[ValidApproval],
    ) -> Result<bool, ironclaw_state::Error> {
        let (mut principal, mut others) = (false, 0);
        for approval in by {
            let Some(person) = registry::person_by_id(tx, approval.given.person)? else { continue };
            let is_principal = person.id == self.row.principal;
            principal |= is_principal && principal_may(rule, self.row.own.class, &person);
            others += u32::from(rule.admits(person.role) && (rule.requester_may_approve || !is_principal));
        }
        Ok((principal || !self.needs_principal()) && (others >= rule.approvals || !self.needs_policy()))
    }

    /// Returns what an approval of this request must be for now, and how approvals count.
    pub(super) fn ballot(
        &self,
        tx: &ReadTx<'_>,
        policy: &Policy,
        shown: &Shown,
    ) -> Result<Ballot, ironclaw_state::Error> {
        let (row, rule, now) = (&self.row, self.rule(policy).clone(), tx.wall());
        Ok(Ballot {
            subject: self.subject(tx, &rule, shown)?,
            asked: Asked { seq: row.asked_seq, principal: row.principal, agent: None },
            own_counts: self.needs_principal() || rule.requester_may_approve,
            has_own_reasons: self.needs_principal(),
            // The request itself expires before an approval that waits for others does.
            valid_until: row.expires_at.max(now) + USE_MS,
            use_until: Some(now + USE_MS),
            rule,
        })
    }

    /// Returns the subject that an approval of this request must have now.
    fn subject(&self, tx: &ReadTx<'_>, rule: &Rule, shown: &Shown) -> Result<Subject, ironclaw_state::Error> {
        let row = &self.row;
        let terms = mcp::terms(tx, row.agent, &row.tool)?;
        let SubjectNames { id, session, agent, principal } =
            SubjectNames::new(row.id, Some(row.session), Some(row.agent), row.principal);
        Ok(Subject {
            domain: Domain::Call,
            id,
            session,
            agent,
            name: row.tool.clone(),
            schema: terms.as_ref().map_or(Digest::of(b""), Terms::digest),
            server: terms.and_then(|terms| terms.of_server).map(|of_server| of_server.server),
            arguments: row.digest,
            principal,
            labels: Digest::of(&canonical::to_vec(&row.labels)),
            policy: rule.call_digest(row.own.class, &row.tool),
            shown: shown.digest,
            generation: row.generation,
            facts: shown.facts,
        })
    }

    /// Returns whether people approved this request for other facts of its call than these.
    pub(super) fn is_approved_for_other(
        &self,
        tx: &ReadTx<'_>,
        all: &Gateway,
        facts: Digest,
    ) -> Result<bool, ironclaw_state::Error> {
        let given = approvals::list(tx, self.row.waiting_id())?;
        let id = self.row.id.to_string();
        let is_other = |given: &Approval| {
            // A token that is not authentic, or of another request, is no approval of this one.
            let token = Token::from_json(&given.token);
            let found = token.and_then(|token| approval::facts_of_token(all.root(), &token, &id));
            given.state == ApprovalState::Live && found.is_ok_and(|found| found != Some(facts))
        };
        Ok(given.iter().any(is_other))
    }
}

/// Returns in the host's words the reason that a request can no longer be decided, if there is one.
pub(super) fn why_stale(tx: &ReadTx<'_>, row: &Row) -> Result<Option<String>, ironclaw_state::Error> {
    if row.generation != facts::generation(tx)? {
        return Ok(Some("the record was put back to an earlier state".to_owned()));
    }
    let Some(agent) = registry::agent_by_id(tx, row.agent)? else {
        return Ok(Some("the agent was removed".to_owned()));
    };
    match mcp::catalogue(tx, &agent)?.missing(&row.tool) {
        None => {}
        Some(DenialCode::CallServerChanged) => {
            return Ok(Some(format!("the MCP server lists {} in another form than people confirmed", row.tool)));
        }
        Some(_) => return Ok(Some(format!("the agent no longer has the tool {}", row.tool))),
    }
    if registry::person_by_id(tx, row.principal)?.is_none() {
        return Ok(Some("the person who asked was removed".to_owned()));
    }
    Ok(None)
}

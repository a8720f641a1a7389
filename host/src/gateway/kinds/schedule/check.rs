//! Checks a schedule and writes it in full: zone, times, list, conversation, creator.

use super::super::kind::{Check, CheckContext, incomplete};
use super::{BESIDE, LACKING, asked, flows, from, malformed, recurrence_text, rights};
use crate::gateway::Requester;
use crate::registry::live_settings::HostPolicy;
use crate::registry::schedules::names;
use crate::registry::{self, Agent, Identity, channels, schedules};
use crate::sessions::store;
use ironclaw_calendar::{Kind, Recurrence, Series, Zone};
use ironclaw_contract::ids::{PersonId, ScheduleId};
use ironclaw_contract::seam::change::{CatchUp, Change, ReplyTo, RunContext, Schedule, WrittenBy};
use ironclaw_judge::Class;
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};
use serde_json::{Value, json};

impl Check for Schedule {
    fn complete(&self, tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied> {
        let agent = context.agent.ok_or_else(incomplete)?;
        let creator = match context.requester {
            Requester::Person(person) => *person,
            Requester::Agent { principal, .. } => *principal,
        };
        let was = match self.id {
            Some(id) => Some(changeable(tx, context, agent, id)?),
            None => {
                schedules::check_room(tx, creator, 1)?;
                None
            }
        };
        let wanted = match &was {
            Some(was) => merged(self, was),
            None => self.clone(),
        };
        let now = tx.wall();
        let named = wanted.zone.as_deref().map(Zone::parse).transpose().map_err(|error| malformed(&error))?;
        let zone = named.unwrap_or_else(|| context.host_policy.zone.zone.clone());
        let recurrence = recurrence(&wanted, &zone, now)?;
        let anchor = from(&wanted).unwrap_or(now);
        let series = Series { recurrence, zone, anchor };
        if series.next_after(now).is_none() {
            let refusal = Refusal::new(DenialCode::ScheduleMalformed, "the schedule has no future time");
            return Err(refusal.hint("give a time in the future: `--at`, `--every` or `--cron`").into());
        }
        let may = rights::completed(tx, agent, wanted.may.as_deref().unwrap_or_default())?;
        let flows = flows::completed(tx, agent, creator, wanted.flows.as_deref().unwrap_or_default())?;
        let context_of_runs = wanted.context.unwrap_or(RunContext::Fresh);
        let reply_to = reply_to(tx, agent, creator, wanted.reply_to.as_ref(), context.requester)?;
        let text = series.recurrence.to_string();
        let of_kind = |kind: Kind| (series.recurrence.kind() == kind).then(|| text.clone());
        let prompt = wanted.prompt.clone().ok_or_else(incomplete)?;
        let written_by = match &was {
            Some(was) if was.prompt == prompt => was.written_by,
            Some(_) | None => written_by(context.requester),
        };
        flows::check(&flows, &may, context_of_runs, written_by)?;
        let given = names::Given { name: wanted.name.as_deref(), is_completed: self.from.is_some() };
        let name = names::completed(tx, (agent.id, creator, self.id), given, &prompt)?;
        Ok(Change::Schedule(Self {
            id: self.id,
            name: Some(name),
            prompt: Some(prompt),
            cron: of_kind(Kind::Cron),
            every: of_kind(Kind::Every),
            at: of_kind(Kind::At),
            zone: Some(series.zone.name().to_owned()),
            catch_up: Some(wanted.catch_up.unwrap_or(CatchUp::Skip)),
            may: Some(may),
            flows: Some(flows),
            context: Some(context_of_runs),
            reply_to: Some(reply_to),
            from: Some(ironclaw_ledger::rfc3339(anchor)),
            creator: Some(creator),
            written_by: Some(written_by),
        }))
    }

    fn current(&self, tx: &ReadTx<'_>, _agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        let Some(id) = self.id else { return Ok(Value::Null) };
        Ok(schedules::find(tx, id)?.map_or(Value::Null, |row| json!(schedules::payload(&row))))
    }

    fn facts(&self, tx: &ReadTx<'_>, _policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        let Some(creator) = self.creator else { return Ok(json!({})) };
        Ok(json!({ "creator": { "id": creator, "name": registry::person_name(tx, creator)? } }))
    }

    fn facts_of_agent(
        &self,
        tx: &ReadTx<'_>,
        agent: Option<&Agent>,
        policy: &HostPolicy,
    ) -> Result<Value, ironclaw_state::Error> {
        let mut facts = self.facts(tx, policy)?;
        let Some(agent) = agent else { return Ok(facts) };
        let lacking = asked::lacking(tx, agent, self.prompt.as_deref().unwrap_or_default())?;
        if !lacking.is_empty() {
            facts[LACKING] = json!(lacking);
        }
        let beside = asked::beside(tx, agent, self)?;
        if !beside.is_empty() {
            facts[BESIDE] = json!(beside.iter().map(Class::name).collect::<Vec<_>>());
        }
        Ok(facts)
    }
}

const fn written_by(requester: &Requester) -> WrittenBy {
    match requester {
        Requester::Person(_) => WrittenBy::Person,
        Requester::Agent { .. } => WrittenBy::Model,
    }
}

/// Returns the schedule that a person wants to change.
///
/// # Errors
/// Refuses a schedule of another agent or of another creator: a run speaks for its creator.
fn changeable(
    tx: &ReadTx<'_>,
    context: &CheckContext<'_>,
    agent: &Agent,
    id: ScheduleId,
) -> Result<schedules::Schedule, Denied> {
    let Some(person) = context.person(tx)? else { return Err(schedules::unknown(id).into()) };
    let row = schedules::known(tx, &person, id)?;
    if row.agent != agent.id {
        return Err(schedules::unknown(id).into());
    }
    if row.state == schedules::State::Removed {
        return Err(schedules::wrong_state(&row, "it is removed").into());
    }
    if row.creator != person.id {
        let message = format!("schedule {id} runs on behalf of another person");
        let refusal = Refusal::new(DenialCode::ScheduleNotYours, message);
        return Err(refusal.hint("its creator changes it; you can pause or remove it").into());
    }
    Ok(row)
}

/// Returns the settings of a schedule with the fields that a change names. Other times count from now.
fn merged(wanted: &Schedule, was: &schedules::Schedule) -> Schedule {
    let mut all = schedules::payload(was);
    let Schedule { id: _, name, prompt, cron, every, at, zone, catch_up, may, flows, context, reply_to, from, .. } =
        wanted.clone();
    let has_times = cron.is_some() || every.is_some() || at.is_some();
    let is_completed = from.is_some();
    let same = |given: &Option<String>, held: &Option<String>| given.is_none() || given == held;
    let keeps_times = same(&cron, &all.cron) && same(&every, &all.every) && same(&at, &all.at);
    if !(keeps_times && same(&zone, &all.zone)) || is_completed {
        all.from = from;
    }
    if has_times {
        (all.cron, all.every, all.at) = (cron, every, at);
    }
    all.prompt = prompt.or(all.prompt);
    all.zone = zone.or(all.zone);
    all.catch_up = catch_up.or(all.catch_up);
    all.name = name.or(all.name);
    all.may = may.or(all.may);
    all.flows = flows.or(all.flows);
    all.context = context.or(all.context);
    all.reply_to = reply_to.or(all.reply_to);
    all
}

/// Returns the recurrence. Only times that the change names have to be in the future: a schedule keeps a first time that has passed.
fn recurrence(wanted: &Schedule, zone: &Zone, now: i64) -> Result<Recurrence, Denied> {
    let (kind, text) = recurrence_text(wanted).ok_or_else(incomplete)?;
    let read = match (kind, &wanted.from) {
        (Kind::At, _) | (Kind::Cron | Kind::Every, None) => Recurrence::given(kind, text, zone, now),
        (Kind::Cron | Kind::Every, Some(_)) => Recurrence::parse(kind, text),
    };
    read.map_err(|error| malformed(&error).into())
}

/// Returns the chat of a person on this host.
fn own_chat(person: PersonId) -> ReplyTo {
    let Identity { channel, sender } = Identity::own(person);
    ReplyTo { channel, address: sender, thread: None }
}

/// Returns the conversation of the replies: the given one, that of the request of an agent, or the chat of the creator.
///
/// # Errors
/// Refuses a conversation in which the creator takes no part, and a channel that the agent does not hear.
fn reply_to(
    tx: &ReadTx<'_>,
    agent: &Agent,
    creator: PersonId,
    given: Option<&ReplyTo>,
    requester: &Requester,
) -> Result<ReplyTo, Denied> {
    let refuse = |what: String| {
        let refusal = Refusal::new(DenialCode::ScheduleReplyTo, what);
        refusal.hint("use CHANNEL:ADDRESS with an identity of yours, or leave it out for your own chat")
    };
    let own = match (given, requester) {
        (Some(given), _) => given.clone(),
        (None, Requester::Agent { origin, .. }) => {
            let Some(session) = store::find(tx, origin.session)? else {
                return Err(refuse("the conversation of the request was removed".to_owned()).into());
            };
            match session.origin.kind.is_shared() {
                // A session of several people has no address of the creator alone.
                true => own_chat(creator),
                false => {
                    let thread = Some(session.origin.thread_id).filter(|thread| !thread.is_empty());
                    ReplyTo { channel: session.origin.channel, address: session.origin.platform_id, thread }
                }
            }
        }
        (None, Requester::Person(person)) => own_chat(*person),
    };
    let ReplyTo { channel, address, thread } = &own;
    if channel != registry::LOOPBACK
        && channels::find(tx, channel)?.is_none_or(|channel| channel.agent != Some(agent.id))
    {
        return Err(refuse(format!("agent {} does not hear a channel {channel:?}", agent.name)).into());
    }
    let is_identity = registry::person_of(tx, channel, address)?.is_some_and(|person| person.id == creator);
    let origin = store::Origin::from_sender(channel.clone(), address.clone(), thread.clone().unwrap_or_default());
    let takes_part = match store::find_by_origin(tx, agent.id, &origin)? {
        Some(session) => store::find_own(tx, creator, session.id)?.is_some(),
        None => false,
    };
    if !is_identity && !takes_part {
        return Err(refuse(format!("{channel}:{address} is no conversation of the creator with the agent")).into());
    }
    Ok(own)
}

//! All events of the ledger: name, kinds, fields and meaning.
//!
//! The list is closed: an entry never has a field beside `at`, `what` and those of its event. See [`ironclaw_contract::ledger_entry`].

use ironclaw_contract::ledger_entry::Kind;
use std::fmt;
use std::str::FromStr;

/// A text that is no ledger event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown ledger event")]
pub struct UnknownEvent;

macro_rules! events {
    ($([$topic:ident] $($event:ident = $name:literal, [$($kind:path),+], $fields:literal, $meaning:literal;)+)+) => {
        /// The event that an entry records, in its field `what`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum LedgerEvent {
            $($(
                #[doc = $meaning]
                $event,
            )+)+
        }

        impl LedgerEvent {
            /// Every event, in the order of the list.
            pub const ALL: &[Self] = &[$($(Self::$event),+),+];

            /// Returns the name, e.g. `message.recorded`.
            pub const fn name(self) -> &'static str {
                match self {
                    $($(Self::$event => $name,)+)+
                }
            }

            /// Returns the kinds that an entry of this event may have, the usual one first.
            pub const fn kinds(self) -> &'static [Kind] {
                match self {
                    $($(Self::$event => &[$($kind),+],)+)+
                }
            }

            /// Returns what it is about.
            pub const fn topic(self) -> Topic {
                match self {
                    $($(Self::$event => Topic::$topic,)+)+
                }
            }

            /// Returns a sentence for the manual.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $($(Self::$event => $meaning,)+)+
                }
            }

            const fn field_names(self) -> &'static str {
                match self {
                    $($(Self::$event => $fields,)+)+
                }
            }
        }
    };
}

impl LedgerEvent {
    /// Returns the fields that an entry of this event may have, beside `at` and `what`.
    pub fn fields(self) -> impl Iterator<Item = &'static str> {
        self.field_names().split_ascii_whitespace()
    }
}

impl fmt::Display for LedgerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LedgerEvent {
    type Err = UnknownEvent;

    fn from_str(text: &str) -> Result<Self, UnknownEvent> {
        Self::ALL.iter().copied().find(|event| event.name() == text).ok_or(UnknownEvent)
    }
}

ironclaw_contract::words! {
    /// What an event is about: the first word of its name. A reader of the ledger subscribes to topics.
    pub enum Topic {
        Ledger = "ledger",
        Host = "host",
        Config = "config",
        State = "state",
        Backup = "backup",
        Key = "key",
        Api = "api",
        Webhook = "webhook",
        Message = "message",
        Session = "session",
        File = "file",
        Launch = "launch",
        Inbound = "inbound",
        Workspace = "workspace",
        Turn = "turn",
        Output = "output",
        Summary = "summary",
        Model = "model",
        Budget = "budget",
        Context = "context",
        Call = "call",
        Request = "request",
        Question = "question",
        Allowance = "allowance",
        Action = "action",
        Row = "row",
        Items = "items",
        Delivery = "delivery",
        Notification = "notification",
        Change = "change",
        Approval = "approval",
        Agent = "agent",
        Mcp = "mcp",
        Egress = "egress",
        Send = "send",
        Group = "group",
        Skill = "skill",
        Destination = "destination",
        Schedule = "schedule",
        Channel = "channel",
        Memory = "memory",
        Secret = "secret",
        Person = "person",
        Identity = "identity",
        Place = "place",
        Sender = "sender",
        Token = "token",
        Transcript = "transcript",
        Jail = "jail",
    }
}

events! {
    [Ledger]
    LedgerOpened = "ledger.opened", [Kind::Genesis], "ironclaw key", "The first chain begins.";
    LedgerRotated = "ledger.rotated", [Kind::Genesis], "ledger key why by continues_from", "A new chain begins after an archive.";
    LedgerKeyMade = "ledger.key_made", [Kind::Meta], "key", "The key that signs heads was made.";
    LedgerArchiveSetAside = "ledger.archive_set_aside", [Kind::Retract], "file reason", "An archive that does not belong to this history got another name.";
    LedgerBehindArchives = "ledger.behind_archives", [Kind::Retract], "from", "An archive has later entries than the record: the record was restored.";
    LedgerBehindHeads = "ledger.behind_heads", [Kind::Retract], "from", "A head outside of the home names a later entry than the record has: the record was restored.";
    LedgerBreakAccepted = "ledger.break_accepted", [Kind::Meta], "by from heads archives reason", "An owner accepted that heads or archives belong to another history.";
    LedgerCopyFound = "ledger.copy_found", [Kind::Retract], "", "Another home with this ledger keeps heads in the same directory.";
    LedgerCopyRuns = "ledger.copy_runs", [Kind::Retract], "from", "Another host signs heads of this ledger.";
    LedgerHeadNotKept = "ledger.head_not_kept", [Kind::Retract], "reason", "The host could not keep a head outside of the home.";
    LedgerHeadKeptAgain = "ledger.head_kept_again", [Kind::Meta], "kept", "The host keeps heads outside of the home again.";
    [Host]
    HostStarted = "host.started", [Kind::Boot], "boot fingerprint policy unclean_end_of version", "The host started.";
    HostStopped = "host.stopped", [Kind::Meta], "boot", "The host stopped in order.";
    HostPanicked = "host.panicked", [Kind::Meta], "by face", "An emergency stop began.";
    HostResumed = "host.resumed", [Kind::Meta], "by face", "The emergency stop ended.";
    [Config]
    ConfigReloaded = "config.reloaded", [Kind::Meta], "by config policy applied restart", "The settings and the policy were read again; `by` is absent after a signal.";
    [State]
    StateMigrated = "state.migrated", [Kind::Meta], "from to snapshot", "The schema of the record was changed.";
    StateOwnSourcesEnded = "state.own_sources_ended", [Kind::Meta], "directories servers senders", "In a record that was restored, people no longer call these sources theirs.";
    StateGeneration = "state.generation", [Kind::Meta], "generation doubtful withdrawn", "The record was restored, or may have lost changes.";
    StateChangesLost = "state.changes_lost", [Kind::Retract], "log commits", "Changes of the record that were on the disk are lost.";
    StateRestored = "state.restored", [Kind::Retract], "backup", "The home was restored from a backup, without later changes.";
    StateSnapshotsRemoved = "state.snapshots_removed", [Kind::Meta], "snapshots", "Snapshots of an earlier schema were removed.";
    [Backup]
    BackupCreated = "backup.created", [Kind::Meta], "backup by", "A backup of the home was begun.";
    BackupVerified = "backup.verified", [Kind::Meta], "backup by", "An owner verified a backup of the home.";
    [Key]
    KeyRotated = "key.rotated", [Kind::Meta], "key replaces fingerprint sessions by", "The master key was replaced.";
    [Api]
    ApiRefused = "api.refused", [Kind::Retract], "code via count", "Requests to the API were refused.";
    [Webhook]
    WebhookRefused = "webhook.refused", [Kind::Retract], "code via channel rule count refused", "Requests to the webhook port were refused; `refused` has their channels and rules.";
    [Message]
    MessageRecorded = "message.recorded", [Kind::Claim], "session message person principal_kind channel digest asks scope", "A message was recorded.";
    MessageRetried = "message.retried", [Kind::Meta], "session message by", "A person requested another answer to a message.";
    [Session]
    SessionCreated = "session.created", [Kind::Meta], "session agent channel", "A session was made.";
    SessionLaunching = "session.launching", [Kind::Verify], "session", "The host starts a process of the session.";
    SessionParked = "session.parked", [Kind::Retract], "session reason fault", "The session gets no process until a person releases it.";
    SessionQuarantined = "session.quarantined", [Kind::Retract], "session reason fault", "The session broke the rules of the seam.";
    SessionReleased = "session.released", [Kind::Meta], "session by reason", "A person released the session, or a damaged skill of its agent is whole again.";
    SessionRemoved = "session.removed", [Kind::Meta], "session by reason", "The session was removed and erased.";
    SessionStopped = "session.stopped", [Kind::Meta], "session by", "A person put the session to sleep.";
    SessionVersionsLost = "session.versions_lost", [Kind::Retract], "session", "The kept versions of the session's files were missing at a start.";
    SessionWorkspaceLost = "session.workspace_lost", [Kind::Retract], "session", "The workspace of the session was missing, and the host made an empty one.";
    [File]
    FilePut = "file.put", [Kind::Meta, Kind::Retract], "session bytes digest by reason", "A person puts a file into the workspace of the session; the kind is RETRACT if that failed.";
    FileRead = "file.read", [Kind::Meta], "session by", "A person lists or reads files of another person's session.";
    FileRemoved = "file.removed", [Kind::Meta, Kind::Retract], "session bytes digest by reason", "A person removes a file from the workspace of the session; the kind is RETRACT if that failed.";
    FileRestored = "file.restored", [Kind::Meta, Kind::Retract], "session bytes digest by reason", "A person restores a kept version of a file of the session; the kind is RETRACT if that failed.";
    [Launch]
    LaunchRefused = "launch.refused", [Kind::Retract], "session reason", "The host refused to start a process for the session.";
    [Inbound]
    InboundRebuilt = "inbound.rebuilt", [Kind::Retract], "session reason", "The host could not open the inbound queue and wrote it again.";
    [Workspace]
    WorkspaceOver = "workspace.over", [Kind::Retract], "session turn limit", "The workspace is over a bound.";
    [Turn]
    TurnOpened = "turn.opened", [Kind::Verify], "session turn message principal principal_kind", "A turn was opened.";
    TurnClosed = "turn.closed", [Kind::Verify, Kind::Retract], "session turn reason", "A turn was closed; the kind is RETRACT if it had no answer.";
    TurnCancelled = "turn.cancelled", [Kind::Meta], "session turn by", "A person cancelled a turn.";
    [Output]
    OutputSealed = "output.sealed", [Kind::Claim], "session turn item digest model input_tokens output_tokens", "A model output was sealed.";
    OutputReused = "output.reused", [Kind::Claim], "session turn item digest earlier", "An answer that an interrupted turn had recorded was used, and no model was asked again.";
    [Summary]
    SummarySealed = "summary.sealed", [Kind::Claim], "session turn item digest model items", "A summary was sealed.";
    [Model]
    ModelAsked = "model.asked", [Kind::Verify], "session turn model purpose items", "The host sent a request to a model.";
    ModelContextLearned = "model.context_learned", [Kind::Claim], "session turn model tokens source reason", "The host learned that a model reads less than it gets.";
    ModelFailed = "model.failed", [Kind::Retract], "session turn model code reason", "A model gave no output.";
    ModelRefused = "model.refused", [Kind::Retract], "session turn fault code reason", "A request on the model socket was refused.";
    [Budget]
    BudgetRefused = "budget.refused", [Kind::Retract], "session turn agent ceiling limit needed used reason", "A request to a model would exceed a ceiling.";
    [Context]
    ContextUnsealed = "context.unsealed", [Kind::Retract], "session mode passed reason", "A mode that weakens the guard let an unsealed item pass.";
    [Call]
    CallRecorded = "call.recorded", [Kind::Claim], "session turn call tool class arguments_digest", "A tool call was recorded.";
    CallStarted = "call.started", [Kind::Claim], "session turn call tool arguments_digest host server_tool", "The host began to carry out a call; its effect may have happened.";
    CallRefused = "call.refused", [Kind::Retract], "session turn call tool arguments_digest reason", "A tool call was refused.";
    CallAsked = "call.asked", [Kind::Claim], "session turn call request tool class arguments_digest reasons principal expires", "A call waits for a person.";
    [Request]
    RequestApprovedBy = "request.approved_by", [Kind::Meta], "session turn request approval by face shown reasons", "A person approved a call.";
    RequestDecisionRefused = "request.decision_refused", [Kind::Retract], "session turn request by code reason", "A decision about a call was refused.";
    RequestApproved = "request.approved", [Kind::Verify], "session turn request arguments_digest shown", "A call has the approvals that it needs.";
    RequestShownTogether = "request.shown_together", [Kind::Meta], "session requests by face shown", "A person approved several calls by one page.";
    RequestRejected = "request.rejected", [Kind::Retract], "session turn request by face reason", "A person rejected a call.";
    RequestExpired = "request.expired", [Kind::Retract], "session turn request reason", "An approval request expired.";
    RequestWithdrawn = "request.withdrawn", [Kind::Retract], "session turn request reason", "An approval request can no longer be decided.";
    RequestReminded = "request.reminded", [Kind::Meta], "session turn request", "People were told that an approval request expires soon.";
    RequestCountsReset = "request.counts_reset", [Kind::Meta], "agent by count person", "A person began the counts of an agent's approval requests anew.";
    RequestUsed = "request.used", [Kind::Verify], "session request call approvals", "The approvals of a call were used up.";
    [Question]
    QuestionAsked = "question.asked", [Kind::Claim], "session turn call question digest principal scope expires", "An agent asked its person a question.";
    QuestionAnswered = "question.answered", [Kind::Verify], "session question message by face", "A person answered a question.";
    QuestionAnswerRefused = "question.answer_refused", [Kind::Retract], "session turn question by code reason", "An answer to a question was refused.";
    QuestionCancelled = "question.cancelled", [Kind::Retract], "session turn question by face reason", "A question ended without an answer.";
    QuestionExpired = "question.expired", [Kind::Retract], "session turn question reason", "A question was not answered in time.";
    QuestionUnknown = "question.unknown", [Kind::Retract], "session turn question", "A question of a restored record may have been answered in the other history.";
    QuestionReminded = "question.reminded", [Kind::Meta], "session turn question", "A person was told that a question ends soon.";
    [Allowance]
    AllowanceAdded = "allowance.added", [Kind::Meta], "allowance person agent tools manifests digest count expires until_answer_to", "A person permitted several calls, up to a count and an end.";
    AllowanceUsed = "allowance.used", [Kind::Verify], "session turn call allowance tool uses count", "A call ran without a question by an allowance.";
    AllowanceRemoved = "allowance.removed", [Kind::Retract], "allowance person agent tools by reason", "An allowance was removed.";
    [Call]
    CallWouldHaveBlocked = "call.would_have_blocked", [Kind::Meta], "session turn call tool arguments_digest codes", "A dangerous mode permitted a call that these codes would have stopped in mode `enforce`.";
    CallReported = "call.reported", [Kind::Claim], "session turn call tool digest ok outcome", "The sandbox reported the result of a call.";
    CallRan = "call.ran", [Kind::Verify], "session turn call tool digest ok outcome", "The host carried out a call.";
    CallLost = "call.lost", [Kind::Retract], "session turn call tool outcome reason", "The host or the turn ended during a call: it is unknown if it had its effect.";
    [Action]
    ActionRefused = "action.refused", [Kind::Retract], "session turn call tool reason", "An action was refused.";
    [Row]
    RowRefused = "row.refused", [Kind::Retract], "session turn row row_digest fault reason", "A row of the outbound queue was refused.";
    [Items]
    ItemsDropped = "items.dropped", [Kind::Meta], "session items upto", "Old items were dropped.";
    [Delivery]
    DeliveryIntended = "delivery.intended", [Kind::Verify], "session turn delivery item", "The host intends to deliver an answer.";
    DeliverySending = "delivery.sending", [Kind::Verify], "session turn delivery attempt", "An attempt of a delivery began.";
    DeliveryReceived = "delivery.received", [Kind::Verify], "session turn delivery", "An answer was received.";
    DeliveryRetried = "delivery.retried", [Kind::Verify], "session turn delivery outcome reason", "An attempt failed, and the host will retry.";
    DeliveryUnknown = "delivery.unknown", [Kind::Verify], "session turn delivery outcome reason", "An attempt may have arrived.";
    DeliveryDead = "delivery.dead", [Kind::Retract], "session turn delivery reason", "The attempts are used up, or the receiver refused.";
    DeliveryAgain = "delivery.again", [Kind::Meta], "session turn delivery by", "A person retried a delivery.";
    DeliveryDropped = "delivery.dropped", [Kind::Meta], "session turn delivery by", "A person dropped a delivery.";
    [Notification]
    NotificationIntended = "notification.intended", [Kind::Verify], "delivery person about subject", "The host intends to tell a person about an object.";
    NotificationUnplaced = "notification.unplaced", [Kind::Meta], "delivery person about subject", "A person has no place where they are told about an object.";
    NotificationSending = "notification.sending", [Kind::Verify], "delivery person channel attempt", "An attempt to tell a person began.";
    NotificationReceived = "notification.received", [Kind::Verify], "delivery person", "A person was told.";
    NotificationRetried = "notification.retried", [Kind::Verify], "delivery person reason", "An attempt to tell a person failed, and the host will retry.";
    NotificationFailed = "notification.failed", [Kind::Retract], "delivery person about subject outcome reason", "A person was not told, or may not have been told.";
    NotificationWithdrawn = "notification.withdrawn", [Kind::Meta], "delivery subject", "The object was decided before the person was told.";
    [Change]
    ChangeProposed = "change.proposed", [Kind::Claim], "session turn call change kind agent principal requester digest before_digest", "A change was requested.";
    ChangeRefused = "change.refused", [Kind::Retract], "session turn kind code by reason", "A request for a change was refused.";
    ChangeApprovedBy = "change.approved_by", [Kind::Meta], "session turn change kind approval by face shown", "A person approved a change.";
    ChangeDecisionRefused = "change.decision_refused", [Kind::Retract], "session turn change kind by code reason", "A decision was refused.";
    [Approval]
    ApprovalRefused = "approval.refused", [Kind::Retract], "change request approval code reason", "An approval does not count.";
    [Change]
    ChangeApproved = "change.approved", [Kind::Verify], "session turn change kind digest shown", "A change has the approvals that it needs.";
    ChangeApplied = "change.applied", [Kind::Verify], "session turn change kind", "A change was applied.";
    ChangeRejected = "change.rejected", [Kind::Retract], "session turn change kind by face reason", "A person rejected a change.";
    ChangeExpired = "change.expired", [Kind::Retract], "session turn change kind reason", "A change expired.";
    ChangeFailed = "change.failed", [Kind::Retract], "session turn change kind reason", "An approved change could not be applied.";
    ChangeWithdrawn = "change.withdrawn", [Kind::Retract], "session turn change kind by face reason", "A change can no longer be decided.";
    ChangeDoubtful = "change.doubtful", [Kind::Retract], "session turn change kind", "A change of a restored record may have been decided in the other history.";
    ChangeReminded = "change.reminded", [Kind::Meta], "session turn change kind", "People were told that a change expires soon.";
    ChangeNotNotified = "change.untold", [Kind::Retract], "session change request question", "The host could not notify the session of an outcome.";
    [Agent]
    AgentCreated = "agent.created", [Kind::Meta], "agent name access enabled_tools model persona_digest by change", "An agent was created.";
    AgentRemoved = "agent.removed", [Kind::Meta], "agent name by change", "An agent was removed.";
    AgentPersona = "agent.persona", [Kind::Meta], "agent before after by change", "A persona was replaced.";
    AgentTools = "agent.tools", [Kind::Meta], "agent before after by change", "The enabled tools of an agent were replaced.";
    AgentAccess = "agent.access", [Kind::Meta], "agent before after by change", "The access to an agent was changed.";
    AgentRoles = "agent.roles", [Kind::Meta], "agent person before after by change", "The role of a person at an agent was changed.";
    AgentMounts = "agent.mounts", [Kind::Meta], "agent before after by change", "The mounts of an agent were replaced.";
    AgentPackages = "agent.packages", [Kind::Meta], "agent before after layer by change", "The packages of an agent were replaced.";
    AgentMode = "agent.mode", [Kind::Meta], "agent mode was by change", "The guard mode of an agent was set.";
    AgentReceiver = "agent.receiver", [Kind::Meta], "agent receiver was by change", "The classes that an agent takes from each kind of author were set.";
    AgentModelSet = "agent.model_set", [Kind::Meta], "agent model follows_default by change", "The model of an agent was set.";
    AgentBudget = "agent.budget", [Kind::Meta], "agent tokens_per_day cost_per_day_micros by change", "The ceilings of an agent were set.";
    [Mcp]
    McpRegistered = "mcp.registered", [Kind::Meta], "server before after layer by change", "An MCP server was registered or removed.";
    McpConfirmed = "mcp.confirmed", [Kind::Meta], "server before after manifest mine by change", "The tools of an MCP server were confirmed.";
    McpChanged = "mcp.changed", [Kind::Meta], "server before after", "An MCP server lists something else than people confirmed.";
    [Egress]
    EgressGranted = "egress.granted", [Kind::Meta], "agent host before after by change", "The grant of a host of the network to an agent was set or removed.";
    [Send]
    SendIntended = "send.intended", [Kind::Claim], "delivery call channel", "A message of an agent to a destination is about to be sent.";
    [Agent]
    AgentSent = "agent.sent", [Kind::Claim], "session message call from agent hop chain", "A session has a message of another agent.";
    AgentAnswered = "agent.answered", [Kind::Claim], "session message delivery from hop chain", "The session that asked has the answer of an agent.";
    AgentRefused = "agent.refused", [Kind::Retract], "session message agent from reason", "A message of an agent gets no answer, because it was refused or its session was removed.";
    [Group]
    GroupSet = "group.set", [Kind::Meta], "group before after by change", "A trust group of agents was set or removed.";
    [Skill]
    SkillSourceAdded = "skill.source_added", [Kind::Meta], "source location by", "A source of skills was added.";
    SkillSourceRemoved = "skill.source_removed", [Kind::Retract], "source by", "A source of skills was removed.";
    SkillKeyAdded = "skill.key_added", [Kind::Meta], "key name skills by", "A key whose signatures of skills count was added.";
    SkillKeyRemoved = "skill.key_removed", [Kind::Retract], "key name by", "A key of skills was removed.";
    SkillKeyRevoked = "skill.key_revoked", [Kind::Retract], "key name by source", "A key of skills was revoked, by a person or an index.";
    SkillRevoked = "skill.revoked", [Kind::Retract], "skill version by source", "A version of a skill was revoked, by a person or an index.";
    SkillResolved = "skill.resolved", [Kind::Claim], "skill version digest signer source", "A package of a skill was verified.";
    SkillRefused = "skill.refused", [Kind::Retract], "skill version code session turn by", "A skill was refused before a change was proposed.";
    SkillInstalled = "skill.installed", [Kind::Meta], "agent skill version digest signer before by change", "A version of a skill was installed for an agent.";
    SkillRemoved = "skill.removed", [Kind::Retract], "agent skill before by change", "A skill of an agent was removed.";
    SkillPinned = "skill.pinned", [Kind::Meta], "agent skill pinned by", "A skill of an agent stays at its version, or follows upgrades again.";
    [Destination]
    DestinationSet = "destination.set", [Kind::Meta], "agent before after channel by change", "A destination of an agent was set or removed.";
    [Schedule]
    ScheduleAdded = "schedule.added", [Kind::Meta], "schedule agent creator digest by change", "A schedule was added.";
    ScheduleChanged = "schedule.changed", [Kind::Meta], "schedule agent before after by change", "A schedule was changed.";
    SchedulePaused = "schedule.paused", [Kind::Retract], "schedule agent by reason", "A schedule was paused.";
    ScheduleResumed = "schedule.resumed", [Kind::Meta], "schedule agent by reason", "A paused schedule was resumed.";
    ScheduleRemoved = "schedule.removed", [Kind::Retract], "schedule agent by reason", "A schedule was removed.";
    ScheduleRun = "schedule.run", [Kind::Claim], "schedule due message by", "An occurrence of a schedule was started.";
    ScheduleDone = "schedule.done", [Kind::Verify], "schedule due message delivery", "The reply of an occurrence has its receipt.";
    ScheduleFailed = "schedule.failed", [Kind::Retract], "schedule due message reason", "An occurrence failed.";
    ScheduleSkipped = "schedule.skipped", [Kind::Retract], "schedule due count reason", "Occurrences were skipped.";
    ScheduleRetimed = "schedule.retimed", [Kind::Meta], "schedule next", "The next time of a schedule was computed again: the clock was ahead, or the rules of its zone changed.";
    ScheduleUnknown = "schedule.unknown", [Kind::Retract], "schedule due message reason", "The outcome of an occurrence is unknown.";
    [Call]
    CallPush = "call.push", [Kind::Meta], "call requests sent_bytes digest", "A push ran: its requests, and the digest of what the host sent.";
    CallNetwork = "call.network", [Kind::Meta], "call requests tunnels refused sent_bytes received_bytes hosts codes", "A command used the gateway: its requests, and the codes of the refused ones.";
    [Mcp]
    McpLoggedIn = "mcp.logged_in", [Kind::Meta], "server issuer by", "A person logged in at an MCP server.";
    McpLoggedOut = "mcp.logged_out", [Kind::Meta], "server by", "A person ended the login at an MCP server.";
    McpLoginEnded = "mcp.login_ended", [Kind::Meta], "server reason", "The login at an MCP server ended by itself.";
    McpGranted = "mcp.granted", [Kind::Meta], "agent server before after by change", "An agent got tools of an MCP server.";
    [Channel]
    ChannelAdded = "channel.added", [Kind::Meta], "channel kind idempotent url_digest by", "A channel was added.";
    ChannelRemoved = "channel.removed", [Kind::Meta], "channel by", "A channel was removed.";
    ChannelConnected = "channel.connected", [Kind::Meta], "agent channel before after generation by change", "An agent was connected to a channel.";
    ChannelDisconnected = "channel.disconnected", [Kind::Meta], "agent channel by", "An agent was disconnected from a channel.";
    [Memory]
    MemoryKept = "memory.kept", [Kind::Meta, Kind::Claim], "agent note digest by session turn call", "A note was kept; the kind is CLAIM if an agent wrote it.";
    MemoryForgotten = "memory.forgotten", [Kind::Meta], "agent note by", "A note was erased.";
    [Model]
    ModelAdded = "model.added", [Kind::Meta], "name kind base_url model secret fallbacks settings by", "A model endpoint was added.";
    ModelChanged = "model.changed", [Kind::Meta], "name kind base_url model secret fallbacks settings by", "A model endpoint was replaced.";
    ModelSettingsSet = "model.settings_set", [Kind::Meta], "name settings cleared forgot by", "Settings of a model endpoint were set or cleared, or what was learned about it was forgotten.";
    ModelLearned = "model.learned", [Kind::Meta], "name quirk value", "Answers of a model endpoint agreed on the value of a quirk.";
    ModelRemoved = "model.removed", [Kind::Meta], "name by", "A model endpoint was removed.";
    ModelDefaultSet = "model.default_set", [Kind::Meta], "name by change", "The default model endpoint was set.";
    ModelChangeRefused = "model.change_refused", [Kind::Retract], "code by", "A change of a model endpoint was refused.";
    [Secret]
    SecretSet = "secret.set", [Kind::Meta], "name by", "A secret was stored.";
    SecretRotated = "secret.rotated", [Kind::Meta], "name by", "A secret got another value.";
    SecretRemoved = "secret.removed", [Kind::Meta], "name by", "A secret was removed.";
    SecretRefused = "secret.refused", [Kind::Retract], "code by", "A change of a secret was refused.";
    [Person]
    PersonCreated = "person.created", [Kind::Meta], "person role by", "A person was added.";
    PersonRole = "person.role", [Kind::Meta], "person role was by", "A person's role was set.";
    PersonRemoved = "person.removed", [Kind::Meta], "person role by", "A person was removed.";
    PersonRefused = "person.refused", [Kind::Retract], "code by", "A change of a person was refused.";
    [Identity]
    IdentityLinked = "identity.linked", [Kind::Meta], "person channel identity_digest by", "An identity was linked to a person.";
    IdentityUnlinked = "identity.unlinked", [Kind::Meta], "person channel identity_digest by", "An identity was unlinked from a person.";
    [Place]
    PlaceSet = "place.set", [Kind::Meta], "person channel identity_digest by", "The place where a person is told was set.";
    PlaceEnded = "place.ended", [Kind::Meta], "person channel identity_digest by reason", "A person is told nowhere any longer.";
    [Sender]
    SenderWaits = "sender.waits", [Kind::Meta], "channel identity_digest", "A sender who is linked to no person waits for one.";
    SenderDismissed = "sender.dismissed", [Kind::Meta], "channel identity_digest by", "A person ended the wait of a sender.";
    SenderDeclared = "sender.declared", [Kind::Meta], "channel identity_digest by", "A person called the text of a sender theirs.";
    SenderDisowned = "sender.disowned", [Kind::Meta], "channel identity_digest by reason", "No person calls the text of a sender theirs any longer.";
    [Identity]
    IdentityRefused = "identity.refused", [Kind::Retract], "code by", "A change of an identity was refused.";
    [Token]
    TokenCreated = "token.created", [Kind::Meta], "token person face expires_at by", "A token was made, or a session of the console began.";
    TokenRotated = "token.rotated", [Kind::Meta], "token person replaces expires_at by", "A token was replaced.";
    TokenExpired = "token.expired", [Kind::Meta], "token person", "A token expired.";
    TokenRevoked = "token.revoked", [Kind::Meta], "token person by", "A token was revoked.";
    TokenConfirmed = "token.confirmed", [Kind::Meta], "token person", "A code confirmed the person of a session of the console.";
    TokenRefused = "token.refused", [Kind::Retract], "code by", "A change of a token was refused.";
    [Transcript]
    TranscriptRead = "transcript.read", [Kind::Meta], "session by", "A person read another person's session.";
    [Jail]
    JailProved = "jail.proved", [Kind::Verify], "session by attempts", "The containment check found no way out.";
    JailNotProved = "jail.not_proved", [Kind::Retract], "session by attempts reason", "The containment check found a way out, or its negative control failed.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;
    use std::path::Path;

    const HEAD: &str = "# Events of the ledger

Each entry has a kind, and a JSON object with `what` (the event), `at` (milliseconds since the epoch) and the fields of its event.
Ids, digests and counts are recorded, never content.

| event | kind | fields | meaning |
|---|---|---|---|
";

    #[test]
    fn manual_lists_every_event() {
        let mut now = HEAD.to_owned();
        for event in LedgerEvent::ALL {
            assert_eq!(event.name().parse(), Ok(*event));
            assert_eq!(event.name().split('.').next(), Some(event.topic().name()));
            let kinds: Vec<&str> = event.kinds().iter().map(|kind| kind.name()).collect();
            let fields: Vec<String> = event.fields().map(|field| format!("`{field}`")).collect();
            let (kinds, fields) = (kinds.join(", "), fields.join(" "));
            writeln!(now, "| `{event}` | {kinds} | {fields} | {} |", event.meaning()).expect("text grows");
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ledger-events.md");
        if std::env::var("IRONCLAW_GOLDEN").is_ok_and(|value| value == "write") {
            std::fs::write(&path, &now).expect("written");
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == now, "docs/ledger-events.md is out of date; IRONCLAW_GOLDEN=write rewrites it");
    }
}

//! All denial codes: name, HTTP status, party at fault, and meaning.
//!
//! The list is closed: the host never refuses a request with another code. [`ironclaw_contract::seam::socket::RefusalCode`] is another list,
//! the frozen codes of refusals on the model socket.

mod bounds;
mod fault;

pub use fault::Fault;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A text that is no denial code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown denial code")]
pub struct UnknownCode;

// The name is a `tt`: the schema of the API does not read a `literal` of a macro.
macro_rules! denial_codes {
    ($($code:ident = $name:tt, $status:literal, $fault:ident, $meaning:literal;)+) => {
        /// The code of a refusal. Its name is stable, for scripts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        pub enum DenialCode {
            $(
                #[doc = $meaning]
                #[serde(rename = $name)]
                $code,
            )+
        }

        impl DenialCode {
            /// Every code, in the order of the list.
            pub const ALL: &[Self] = &[$(Self::$code),+];

            /// Returns the name, snake_case.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)+
                }
            }

            /// Returns the HTTP status of an answer with this code.
            pub const fn status(self) -> u16 {
                match self {
                    $(Self::$code => $status,)+
                }
            }

            /// Returns the party that can remove the cause of a refusal.
            pub const fn fault(self) -> Fault {
                match self {
                    $(Self::$code => Fault::$fault,)+
                }
            }

            /// Returns a sentence for the manual.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$code => $meaning,)+
                }
            }
        }
    };
}

impl fmt::Display for DenialCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl AsRef<str> for DenialCode {
    fn as_ref(&self) -> &str {
        self.name()
    }
}

impl FromStr for DenialCode {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, UnknownCode> {
        Self::ALL.iter().copied().find(|code| code.name() == text).ok_or(UnknownCode)
    }
}

denial_codes! {
    // Requests
    NotFound = "not_found", 404, Operator, "The API has no such path.";
    MethodNotAllowed = "method_not_allowed", 405, Operator, "The path does not take this method.";
    RequestMalformed = "request_malformed", 400, Sender, "The body of the request does not have the shape that the path expects.";
    RequestTooLarge = "request_too_large", 413, Sender, "The body of the request is over its bound.";
    PayloadMalformed = "payload_malformed", 400, Operator, "The payload of a change does not have the shape of its kind.";
    ConfigRefused = "config_refused", 409, Operator, "A settings file is not valid, so the running settings did not change.";
    Internal = "internal", 500, Host, "The host failed; its log has the cause.";
    StateUnwritable = "state_unwritable", 503, Host, "The host cannot write the record now.";
    Stopping = "stopping", 503, Host, "The host is stopping.";
    Panicked = "panicked", 503, Host, "An emergency stop is in effect until `ironctl resume`.";
    Stopped = "stopped", 503, Host, "An emergency stop is in effect, so the host sends nothing.";
    PortFull = "port_full", 503, Host, "The port has no free connection.";
    TooManyConnections = "too_many_connections", 429, Sender, "The person holds too many connections.";
    TooManyFailures = "too_many_failures", 429, Operator, "Too many requests failed to authenticate.";
    TooManyRequests = "too_many_requests", 429, Sender, "The channel is over its bound on requests a minute.";

    // Shortages of the machine
    DiskFull = "disk_full", 503, Host, "The file system of the home is full.";
    InodesUsedUp = "inodes_used_up", 503, Host, "The file system of the home has no free inode.";
    QuotaUsedUp = "quota_used_up", 503, Host, "The disk quota of the host's user is used up.";
    HomeReadOnly = "home_read_only", 503, Host, "The file system of the home is read-only.";
    DescriptorsUsedUp = "descriptors_used_up", 503, Host, "The host or the machine has no free file descriptor.";
    MemoryUsedUp = "memory_used_up", 503, Host, "The machine has no free memory.";
    ProcessesUsedUp = "processes_used_up", 503, Host, "The host or the machine can start no further process.";

    // Backups
    BackupRunning = "backup_running", 409, Operator, "Another backup of the home is being made.";
    BackupFailed = "backup_failed", 503, Host, "The host could not make the backup.";

    // Identity of the requester
    TokenMissing = "token_missing", 401, Operator, "The request carries no token.";
    TokenMalformed = "token_malformed", 401, Operator, "The text does not have the form of a token.";
    TokenInvalid = "token_invalid", 401, Operator, "This host has no such token.";
    TokenExpired = "token_expired", 401, Operator, "The token expired.";
    TokenRevoked = "token_revoked", 401, Operator, "The token was revoked.";
    SessionMissing = "session_missing", 401, Operator, "The browser has no session of the console.";
    SessionOfAnother = "session_of_another", 409, Operator, "The browser has a session of another person.";
    CodeUnknown = "code_unknown", 401, Operator, "The code for the console is wrong, expired or used.";
    PeerGone = "peer_gone", 400, Operator, "The process at the other end of the socket ended.";
    PeerUser = "peer_user", 403, Operator, "The process at the other end of the socket runs as another user.";
    PeerNamespace = "peer_namespace", 403, Operator, "The process at the other end of the socket is in another user namespace.";
    HostForeign = "host_foreign", 403, Operator, "The request names another host than the loopback address.";
    OriginForeign = "origin_foreign", 403, Operator, "The request comes from a page of another origin.";
    Forbidden = "forbidden", 403, Operator, "The person may not do this.";
    RoleTooLow = "role_too_low", 403, Operator, "The role of the person does not permit this.";
    IdentityNotYours = "identity_not_yours", 403, Sender, "The person may not send as this identity.";
    TokenNotYours = "token_not_yours", 403, Operator, "The token belongs to another person.";
    AgentNotYours = "agent_not_yours", 403, Sender, "The person may not talk to the agent.";
    SenderUnknown = "sender_unknown", 403, Sender, "The sender is not linked to a person.";

    // Webhooks
    SignatureInvalid = "signature_invalid", 401, Sender, "No channel with this name accepts this signature.";
    TimestampMalformed = "timestamp_malformed", 401, Sender, "The timestamp is not a number of seconds.";
    TimestampOutside = "timestamp_outside", 401, Sender, "The timestamp is too far from the host's clock.";
    SenderWaits = "sender_waits", 403, Sender, "The sender is not linked to a person, and waits for one.";
    SenderNotWaiting = "sender_not_waiting", 404, Operator, "No such sender of the channel waits for a person.";
    SenderNotOwn = "sender_not_own", 404, Operator, "No person calls such a sender of the channel theirs.";
    SendersTooMany = "senders_too_many", 403, Sender, "The sender is not linked to a person, and too many wait already.";
    MessageIgnored = "message_ignored", 409, Sender, "The connection of the channel drops the message.";
    SenderMalformed = "sender_malformed", 400, Sender, "The sender is malformed.";
    EventId = "event_id", 400, Sender, "The event id is empty or over its bound.";
    EventReused = "event_reused", 409, Sender, "The event was received with another text.";
    MessageNotRecorded = "not_taken", 503, Host, "The message was not recorded.";
    ChannelUnheard = "channel_unheard", 503, Host, "No agent listens to the channel.";

    // Messages
    MessageEmpty = "message_empty", 400, Sender, "The message is empty.";
    MessageTooLong = "message_too_long", 413, Sender, "The message is over its bound.";
    MessageUnknown = "message_unknown", 404, Operator, "The person has no such message.";
    MessageWaits = "message_waits", 400, Operator, "The message waits for its answer.";
    MessageAnswered = "message_answered", 400, Operator, "The message is answered.";
    MessageDropped = "message_dropped", 400, Operator, "The host no longer has the text of the message.";
    GroupMalformed = "group_malformed", 400, Sender, "The name of the group is malformed.";
    MentionsMalformed = "mentions_malformed", 400, Sender, "The list of mentions is malformed.";
    ThreadMalformed = "thread_malformed", 400, Sender, "The name of the thread is malformed.";
    FileName = "file_name", 400, Sender, "The name of a file is malformed.";
    FileType = "file_type", 400, Sender, "The content of a file is not of its declared type.";
    TooManyFiles = "too_many_files", 400, Sender, "The message has too many files.";
    ListenerGone = "listener_gone", 503, Host, "The host can no longer report the stages of the message.";
    IdentityElsewhere = "identity_elsewhere", 400, Operator, "The identity belongs to another channel than the loopback.";
    DeliveryUnknown = "delivery_unknown", 404, Operator, "The person has no such delivery.";

    // Quotas
    TooManyConversations = "too_many_conversations", 429, Sender, "The person or the channel has too many sessions.";
    TooManyWaiting = "too_many_waiting", 429, Sender, "Too many messages of the person or the channel wait.";
    TooManyBytesWaiting = "too_many_bytes_waiting", 429, Sender, "The waiting messages of the person or the channel are too large together.";
    TooManyBytesKept = "too_many_bytes_kept", 429, Sender, "The sessions of the person hold too many bytes.";
    ConversationsFull = "conversations_full", 503, Host, "The host has no free user id for another session.";

    // Sessions
    SessionUnknown = "session_unknown", 404, Operator, "There is no such session.";
    SessionNotReleased = "session_not_released", 400, Operator, "The session is neither parked nor quarantined.";
    SessionNotRemoved = "session_not_removed", 503, Host, "The host could not remove the session.";
    TurnNone = "turn_none", 400, Operator, "The session has no open turn and no waiting message.";
    ProveFailed = "prove_failed", 503, Host, "The host could not run the containment check.";

    // Files of a workspace
    FilePath = "file_path", 400, Operator, "The path is no valid path below the workspace.";
    FileUnknown = "file_unknown", 404, Operator, "The workspace has no such file.";
    FileUnfit = "file_unfit", 400, Operator, "The path leads to no regular file, or goes through a link.";
    FileClosed = "file_closed", 409, Operator, "The permissions of the file or of its directory keep the host out.";
    FileExists = "file_exists", 409, Operator, "The workspace has a file of this name.";
    FileTooLarge = "file_too_large", 413, Operator, "The file is over its bound.";
    FileVersionUnknown = "file_version_unknown", 404, Operator, "The session has no such kept version of the file.";
    FileVersionLost = "file_version_lost", 500, Host, "The kept copy of the version is missing or damaged.";
    FileNotKept = "file_not_kept", 409, Operator, "The host cannot keep a copy of the file that a restore would replace.";
    WorkspaceFull = "workspace_full", 409, Operator, "The file would take the workspace over its quota.";

    // Agents
    AgentName = "agent_name", 400, Operator, "The name is not a valid name of an agent.";
    AgentExists = "agent_exists", 409, Operator, "An agent has this name.";
    AgentUnknown = "agent_unknown", 404, Operator, "There is no such agent.";
    ReceiverBound = "receiver_bound", 400, Operator, "The host admits no message of such an author that asks for this class.";
    AgentMissing = "agent_missing", 400, Operator, "The change concerns an agent but names none.";
    AgentSuperfluous = "agent_superfluous", 400, Operator, "The change concerns the host but names an agent.";
    AgentGone = "agent_gone", 400, Operator, "The agent was removed.";
    AgentInUse = "agent_in_use", 409, Operator, "A session of the agent has an open turn.";
    ModeMalformed = "mode_malformed", 400, Operator, "There is no such mode.";
    BudgetTooLarge = "budget_too_large", 400, Operator, "A ceiling is over its bound.";
    PersonaTooLong = "persona_too_long", 400, Operator, "The persona is over its bound.";
    ToolUnknown = "tool_unknown", 400, Operator, "There is no such tool.";
    ToolUnhandled = "tool_unhandled", 400, Operator, "People cannot enable the tool: the host offers it by itself.";

    // Tool calls
    ScopeMalformed = "scope_malformed", 400, Sender, "A message declares classes of calls that do not exist, none, or twice.";
    ScopeCasesMalformed = "scope_cases_malformed", 400, Operator, "The labelled requests of a scope test have another shape.";
    CallUnknown = "call_unknown", 404, Operator, "There is no such call, or it is of another person.";
    CallMalformed = "call_malformed", 400, Sandbox, "The arguments of a call are not a JSON object of the tool's shape.";
    CallNoRoom = "call_no_room", 429, Sandbox, "The turn has used all its calls.";
    CallToolUnknown = "call_tool_unknown", 403, Sandbox, "A call names a tool that the host does not know.";
    CallToolNotEnabled = "call_tool_not_enabled", 403, Operator, "A call names a tool that the agent does not have.";
    CallServerChanged = "call_server_changed", 403, Operator, "The MCP server lists the tool in another form than people confirmed.";
    CallUnclassified = "call_unclassified", 403, Sandbox, "The tool has no manifest, or an argument has no rule.";
    CallPrincipal = "call_principal", 403, Operator, "The agent never takes calls of this class from this kind of principal.";
    CallDestination = "call_destination", 403, Operator, "The agent has no destination of this name.";
    CallDestinationEnded = "call_destination_ended", 403, Operator, "The address or the agent behind the destination is not the one that people approved.";
    CallGroup = "call_group", 403, Operator, "The two agents share no trust group.";
    CallRootPerson = "call_root_person", 403, Operator, "The person at the start of the chain may not talk to that agent.";
    CallHops = "call_hops", 403, Operator, "The chain of messages between agents has reached its most hops.";
    CallSends = "call_sends", 429, Operator, "The agent has sent its most messages of this minute, or of this run of a schedule.";
    CallFile = "call_file", 403, Sandbox, "The file that an agent wants to send cannot be copied.";
    CallSchedule = "call_schedule", 403, Operator, "The call is not in the list that was approved with its schedule.";
    CallScope = "call_scope", 403, Sender, "The request that the agent works on did not ask for calls of this class.";
    CallOrigin = "call_origin", 403, Sender, "The context holds text of others, and the call has an effect outside of the session.";
    CallOutward = "call_outward", 403, Sender, "The call sends a value out that no person typed, and the context holds text of others.";
    CallInput = "call_input", 403, Sender, "The value of a control field is no value that the person typed in this task, or it is not clear which one is meant.";
    CallLinkUnknown = "call_link_unknown", 403, Sandbox, "A reference names no value of this task, or is not written as a reference.";
    CallLinkType = "call_link_type", 403, Sandbox, "The value behind a reference is of another type than the control field takes.";
    CallLinkLabel = "call_link_label", 403, Sandbox, "The value behind a reference lacks a label that the control field needs.";
    CallLinkUsed = "call_link_used", 403, Sender, "The value behind a reference was used already, by another call of this conversation.";
    CallAlwaysAsks = "call_always_asks", 403, Operator, "Every call of this tool needs a person.";
    EgressNewHost = "egress_new_host", 403, Operator, "The agent has no grant of this host of the network.";
    EgressNewMethod = "egress_new_method", 403, Operator, "The grant of the host does not have this method.";
    EgressNewPath = "egress_new_path", 403, Operator, "The grant of the host does not have this path.";
    EgressCredential = "egress_credential", 403, Operator, "A secret would reach a host or a path that its grant does not have.";
    EgressPush = "egress_push", 403, Operator, "A push of git is not exact: a command tried it, or its commits cannot be shown.";
    EgressTunnelSni = "egress_tunnel_sni", 403, Operator, "The first bytes in a tunnel of a command are no TLS that names its host in clear, and no other host.";
    EgressTooMuch = "egress_too_much", 429, Operator, "A command made more requests than one command may make.";
    EgressUpload = "egress_upload", 403, Operator, "The body of a request is over the bound of the grant.";
    CallRepeated = "call_repeated", 403, Sandbox, "An equal call of this task, or of the time before a restore, ran or may have run, and the model did not have its outcome, so the host does not make it again.";
    CallAskedTooOften = "call_asked_too_often", 429, Sandbox, "Too many approval requests of the agent or of the person wait, or were made today.";
    CallRejected = "call_rejected", 403, Sender, "A person rejected an equal call, or its approval request ended, and nothing was typed since then.";
    CallWithdrawn = "call_withdrawn", 409, Operator, "The approval request was withdrawn: the agent, the tool, a role or the policy changed, or the turn was cancelled.";
    CallExpired = "call_expired", 409, Operator, "The approval request has expired, or its approvals were not used in time.";
    RequestUnknown = "request_unknown", 404, Operator, "There is no such approval request, or it is of another person.";
    RequestAlone = "request_alone", 409, Operator, "No other call of the same output waits together with the call.";
    RequestDiff = "request_diff", 409, Operator, "The call has no diff, or the workspace can no longer give it.";
    RequestDecided = "request_decided", 409, Operator, "The approval request is already decided, or it is over.";
    AllowanceUnknown = "allowance_unknown", 404, Operator, "There is no such allowance, or it is of another person.";
    AllowanceBounds = "allowance_bounds", 400, Operator, "The number of uses or the end of an allowance is out of its bounds.";
    AllowanceTool = "allowance_tool", 400, Operator, "An allowance cannot permit calls of this tool.";
    AllowanceFields = "allowance_fields", 400, Operator, "The fixed fields of an allowance are not the control fields of the tool.";
    AllowanceRejected = "allowance_rejected", 409, Operator, "The allowance would have permitted a call that a person rejected.";
    AllowanceTooMany = "allowance_too_many", 409, Operator, "The person has reached the bound on allowances.";
    AllowanceLost = "allowance_lost", 409, Sandbox, "The allowance for the call was used up, expired or was removed before the call ran.";
    CallNeedsPerson = "call_needs_person", 403, Sender, "The call needs the yes of a person, and no person can be asked.";
    ScheduleUnknown = "schedule_unknown", 404, Operator, "There is no such schedule, or it is of another person.";
    ScheduleMalformed = "schedule_malformed", 400, Operator, "A time, a period, a cron expression or a time zone of a schedule cannot be read, or has no future time.";
    ScheduleMay = "schedule_may", 400, Operator, "The list of a schedule names a class or tool that it cannot have.";
    ScheduleRole = "schedule_role", 403, Operator, "The creator of the schedule may not use a class of calls in its list.";
    ScheduleReplyTo = "schedule_reply_to", 400, Operator, "The conversation for the replies of a schedule is not one of its creator with the agent.";
    ScheduleName = "schedule_name", 400, Operator, "A schedule cannot have this name, or another one of its creator with the agent has it.";
    ScheduleAmbiguous = "schedule_ambiguous", 409, Operator, "Several schedules have this name.";
    ScheduleFlow = "schedule_flow", 400, Operator, "A flow of a schedule names a destination that is not its creator's, or a directory that is not granted read-only.";
    ScheduleNotYours = "schedule_not_yours", 403, Operator, "Only the creator of a schedule may change it.";
    ScheduleState = "schedule_state", 409, Operator, "The schedule is not in the state that the command needs.";
    ScheduleTooMany = "schedule_too_many", 409, Operator, "The person or the host has reached the bound on schedules.";
    MemoryFull = "memory_full", 400, Operator, "The agent has reached its bound on notes.";
    NoteLength = "note_length", 400, Operator, "The length of the note is out of its bounds.";
    NoteUnknown = "note_unknown", 404, Operator, "The agent has no such note.";

    // Questions
    QuestionUnknown = "question_unknown", 404, Operator, "There is no such question, or it is of another person.";
    QuestionEnded = "question_ended", 409, Operator, "The question is answered, cancelled, expired or of a restored record.";
    QuestionOption = "question_option", 400, Operator, "The question has no option with this number.";
    QuestionFreeText = "question_free_text", 400, Operator, "The question takes one of its options, and no text.";
    QuestionAnswerInvalid = "question_answer_invalid", 400, Operator, "The answer is empty, over its bound, or both an option and a text.";
    QuestionTooLong = "question_too_long", 400, Sandbox, "A question or one of its options is empty or over its bound, or it has too many options.";
    QuestionsTooMany = "questions_too_many", 429, Sandbox, "Too many questions of the session wait for their answers.";
    QuestionNoPerson = "question_no_person", 403, Sandbox, "The turn has no person who could answer.";

    // Changes
    ChangeUnknown = "change_unknown", 404, Operator, "There is no such change.";
    ChangeEmpty = "change_empty", 400, Operator, "The values are already set.";
    ChangeDecided = "change_decided", 409, Operator, "The change is already decided.";
    ChangeExpired = "change_expired", 409, Operator, "The change expired.";
    ChangeStale = "change_stale", 409, Operator, "Values on the review page have changed since.";
    ChangeOutdated = "change_outdated", 400, Operator, "An object that the change needs was removed.";
    ChangeIncomplete = "change_incomplete", 503, Host, "The change lacks data that the host needs to apply it.";
    ChangeNotAnAgents = "change_not_an_agents", 400, Operator, "An agent may not ask for this change.";
    ChangeOfAnother = "change_of_another", 400, Operator, "The change concerns another agent than the requester.";
    ChangesTooMany = "changes_too_many", 429, Operator, "Too many changes wait for a decision.";
    ShownDiffers = "shown_differs", 409, Operator, "The decision is about another text than the host shows, or a host has another address than its page showed.";
    StatusMalformed = "status_malformed", 400, Operator, "There is no such status of a change.";
    SinceMalformed = "since_malformed", 400, Operator, "The begin of a report is not a time in the past.";
    ReasonTooLong = "reason_too_long", 400, Operator, "The reason is over its bound.";
    ReasonInvalid = "reason_invalid", 400, Operator, "The reason is empty, or over its bound.";
    NotYoursToDecide = "not_yours_to_decide", 403, Operator, "Other people decide or answer this.";
    NotConfirmed = "not_confirmed", 403, Operator, "A session of the console needs a fresh code for this approval.";
    NotTyped = "not_typed", 400, Operator, "The word that confirms the step was not typed.";
    ApproverNotIndependent = "approver_not_independent", 403, Operator, "The approval is not independent.";
    PolicyAsksForMore = "policy_asks_for_more", 403, Operator, "The policy requires more than the decision of this person.";
    ApprovalForAnother = "approval_for_another", 503, Host, "The change was approved in another generation of the record.";
    ApprovalLost = "approval_lost", 503, Host, "Too few approvals of the change are still valid.";
    ApprovalUsed = "approval_used", 503, Host, "An approval of the change was already used.";
    ApprovalForged = "approval_forged", 503, Host, "An approval does not belong to the change or the person.";
    ApprovalExpired = "approval_expired", 503, Host, "An approval has expired.";
    ApprovalTwice = "approval_twice", 503, Host, "A person approved a change twice.";
    ApprovalOfRequester = "approval_of_requester", 503, Host, "The requester of the change approved it.";
    ApproverProofLost = "approver_proof_lost", 503, Host, "The token of an approval was revoked.";
    ApproverRoleLost = "approver_role_lost", 503, Host, "The role of an approver no longer permits the decision.";
    CreateAgentGrants = "create_agent_grants", 400, Operator, "A new agent may get no right that its creator lacks.";
    PersonTwice = "person_twice", 400, Operator, "The change names a person twice.";
    IdentityUnlinked = "identity_unlinked", 400, Operator, "The identity is not linked to a person.";
    PatternMalformed = "pattern_malformed", 400, Operator, "The pattern is no regular expression, or is over its bound.";
    ChannelOwn = "channel_own", 400, Operator, "The loopback channel cannot be wired.";
    WiringNone = "wiring_none", 400, Operator, "The new agent has no wiring.";
    WiringTwice = "wiring_twice", 400, Operator, "The change names a channel twice.";
    WiringUnknown = "wiring_unknown", 404, Operator, "The agent is not connected to the channel.";
    PageUnseen = "page_unseen", 403, Operator, "The step lets more people or messages in, or gives a person more, and needs a yes to its page.";

    // Mounts
    MountsOff = "mounts_off", 400, Operator, "The settings permit no mounts.";
    MountSource = "mount_source", 400, Operator, "The source is not a directory that the host can reach by a plain absolute path.";
    MountSystem = "mount_system", 400, Operator, "The source is part of the system.";
    MountLink = "mount_link", 400, Operator, "The path of the source goes through a symbolic link.";
    MountNotAllowed = "mount_not_allowed", 400, Operator, "The source is not below a directory that the settings permit.";
    MountPrivate = "mount_private", 400, Operator, "The source contains files of the host.";
    MountNetwork = "mount_network", 400, Operator, "The source is on a network file system.";
    MountUnknown = "mount_unknown", 503, Host, "The host cannot read the table of mounts.";
    MountTarget = "mount_target", 400, Operator, "The target is malformed, or the jail itself uses it.";
    MountMine = "mount_mine", 400, Operator, "The directory cannot count as a person's own: it was writable, or has a link out of it.";
    MountMineAgent = "mount_mine_agent", 403, Sandbox, "Only a person declares a directory their own.";
    MountTwice = "mount_twice", 400, Operator, "The change names a target twice.";

    // Packages
    PackagesNone = "packages_none", 400, Operator, "The settings permit no packages.";
    PackagesName = "packages_name", 400, Operator, "The name is not a valid name of a package.";
    PackagesTooMany = "packages_too_many", 400, Operator, "The change names too many packages.";
    PackagesUnknown = "packages_unknown", 404, Operator, "The registry has no such package.";
    PackageNeedsBuild = "package_needs_build", 400, Operator, "A package has no wheel for this machine, and its source would run a build step.";
    PackagesTooLarge = "packages_too_large", 400, Operator, "The packages are over the bound on the size of a layer.";
    PackagesUnfit = "packages_unfit", 400, Operator, "A package contains a file that a layer may not contain.";
    PackagesClientMissing = "packages_client_missing", 503, Host, "The machine lacks the client of the registry.";
    PackagesClientFailed = "packages_client_failed", 503, Host, "The client of the registry failed.";
    PackagesLate = "packages_late", 503, Host, "The client of the registry did not finish in time.";
    PackagesJail = "packages_jail", 503, Host, "The host could not start the jail of the client.";
    PackagesFailed = "packages_failed", 503, Host, "The host could not make the layer.";
    PackagesDamaged = "packages_damaged", 503, Host, "The layer differs from the recorded one.";
    PackagesNotFetched = "packages_not_fetched", 503, Host, "The host did not fetch the layer before it applied the change.";
    PackagesNotMerged = "packages_not_merged", 503, Host, "The machine keeps programs outside of /usr.";

    // MCP servers
    McpName = "mcp_name", 400, Operator, "The name is not a valid name of a server.";
    McpUrl = "mcp_url", 400, Operator, "The URL of the server is refused.";
    McpHeader = "mcp_header", 400, Operator, "A header of the server is refused.";
    McpCommand = "mcp_command", 400, Operator, "The command of the server is refused.";
    McpProgram = "mcp_program", 400, Operator, "The jail of the server has no such program.";
    McpHost = "mcp_host", 400, Operator, "The server may not reach a host that it names.";
    McpEnvironment = "mcp_environment", 400, Operator, "A variable of the server is refused.";
    EgressMalformed = "egress_malformed", 400, Operator, "The grant of a host of the network is not valid.";
    EgressTooMany = "egress_too_many", 409, Operator, "The agent has the most granted hosts that an agent may have.";
    DestinationTooMany = "destination_too_many", 409, Operator, "The agent has the most destinations that an agent may have.";
    DestinationUnknown = "destination_unknown", 404, Operator, "The agent has no such destination.";
    DestinationUnsuitable = "destination_unsuitable", 400, Operator, "An agent cannot send messages there.";
    GroupUnknown = "group_unknown", 404, Operator, "There is no such trust group.";
    GroupTooMany = "group_too_many", 409, Operator, "The host has the most trust groups that it may have.";
    McpToolName = "mcp_tool_name", 400, Operator, "The name is not a valid name of a tool.";
    McpToolUnknown = "mcp_tool_unknown", 404, Operator, "The server has no such tool.";
    McpToolsNone = "mcp_tools_none", 400, Operator, "The server has no tools.";
    McpServerUnknown = "mcp_server_unknown", 404, Operator, "The catalogue has no such server.";
    McpServersTooMany = "mcp_servers_too_many", 400, Operator, "The catalogue is full.";
    McpListing = "mcp_listing", 400, Operator, "A tool that the server lists cannot be offered.";
    McpManifest = "mcp_manifest", 400, Operator, "A manifest does not fit the tools that the server lists.";
    McpToolsTooMany = "mcp_tools_too_many", 400, Operator, "A grant has more tools of a server than an agent may have.";
    McpUnseen = "mcp_unseen", 409, Operator, "The host has no listing of the server.";
    McpUnconfirmed = "mcp_unconfirmed", 409, Operator, "People did not confirm the tools of the server.";
    McpDigest = "mcp_digest", 409, Operator, "The server lists something else than the person saw.";
    McpOauth = "mcp_oauth", 400, Operator, "The login of the server is refused, or its issuer does not support it.";
    McpIssuer = "mcp_issuer", 403, Operator, "The login is of another issuer than people approved.";
    McpLogin = "mcp_login", 409, Operator, "The issuer refused the login, or did not answer.";
    McpLoginAddress = "mcp_login_address", 400, Operator, "The address does not answer the login that waits.";
    McpLoginUnknown = "mcp_login_unknown", 409, Operator, "No login at the server waits, or its time is over.";
    McpLoginNeeded = "mcp_login_needed", 409, Operator, "A person has to log in at the server.";
    McpUnreachable = "mcp_unreachable", 409, Operator, "The server does not answer as an MCP server.";

    // Channels
    ChannelKind = "channel_kind", 400, Operator, "There is no such kind of channel.";
    ChannelName = "channel_name", 400, Operator, "The name is not a valid name of a channel.";
    ChannelExists = "channel_exists", 409, Operator, "A channel has this name.";
    ChannelUnknown = "channel_unknown", 404, Operator, "There is no such channel.";
    ChannelInUse = "channel_in_use", 409, Operator, "An agent is connected to the channel.";
    ChannelSecret = "channel_secret", 400, Operator, "The secret is not a valid secret of a channel.";
    ChannelUrl = "channel_url", 400, Operator, "The URL of the channel is refused.";
    ChannelsTooMany = "channels_too_many", 400, Operator, "There are too many channels.";

    // Models
    ModelName = "model_name", 400, Operator, "The name is not a valid name of an endpoint.";
    ModelExists = "model_exists", 409, Operator, "A model endpoint has this name.";
    ModelUnknown = "model_unknown", 404, Operator, "There is no such model endpoint.";
    ModelInUse = "model_in_use", 409, Operator, "The model endpoint is in use.";
    ModelMalformed = "model_malformed", 400, Operator, "The model endpoint has fields that its kind does not have.";
    ModelSettingMalformed = "model_setting_malformed", 400, Operator, "A setting of a model endpoint is unknown or outside of its bounds.";
    QuirkUnknown = "quirk_unknown", 400, Operator, "There is no such quirk of a model endpoint, or no such value of it.";
    ModelIdMalformed = "model_id_malformed", 400, Operator, "The id of the model is refused.";
    ModelTestFailed = "model_test_failed", 400, Operator, "The test request to the model endpoint failed.";
    ModelUnusable = "model_unusable", 400, Operator, "The host cannot use the model endpoint.";
    ModelsTooMany = "models_too_many", 400, Operator, "There are too many model endpoints.";
    KindUnknown = "kind_unknown", 404, Operator, "There is no such kind of model endpoint.";
    UrlMissing = "url_missing", 400, Operator, "The kind of endpoint needs a URL.";
    UrlRefused = "url_refused", 400, Operator, "The URL of the endpoint is refused.";
    PriceMalformed = "price_malformed", 400, Operator, "The price is not a decimal number in its bounds.";
    FallbackTwice = "fallback_twice", 400, Operator, "The list names a fallback twice.";
    FallbacksTooMany = "fallbacks_too_many", 400, Operator, "The list has too many fallbacks.";

    // Secrets
    SecretName = "secret_name", 400, Operator, "The name is not a valid name of a secret.";
    SecretValue = "secret_value", 400, Operator, "The value is empty, or over its bound.";
    SecretExists = "secret_exists", 409, Operator, "A secret has this name.";
    SecretUnknown = "secret_unknown", 404, Operator, "There is no such secret.";
    SecretInUse = "secret_in_use", 409, Operator, "The secret is in use.";
    SecretElsewhere = "secret_elsewhere", 400, Operator, "The secret may only be sent to another origin.";
    SecretsTooMany = "secrets_too_many", 400, Operator, "There are too many secrets.";

    // Skills
    SkillUnknown = "skill_unknown", 404, Operator, "There is no such skill.";
    SkillSourceNone = "skill_source_none", 409, Operator, "The host has no source of skills.";
    SkillSourceMalformed = "skill_source_malformed", 400, Operator, "The source is no directory and no https URL.";
    SkillSourceExists = "skill_source_exists", 409, Operator, "A source of skills has this name.";
    SkillSourceUnknown = "skill_source_unknown", 404, Operator, "There is no such source of skills.";
    SkillSourceFailed = "skill_source_failed", 400, Operator, "The source of skills gave no usable answer.";
    SkillIndex = "skill_index", 400, Operator, "The index of the source is malformed, older than one that was seen, another one with the same serial, or does not describe its package.";
    SkillUnsigned = "skill_unsigned", 403, Operator, "The package or index of a skill has no readable signature.";
    SkillSignature = "skill_signature", 403, Operator, "The signature does not match the bytes.";
    SkillComment = "skill_comment", 403, Operator, "The trusted comment of the signature names something else.";
    SkillKeyMalformed = "skill_key_malformed", 400, Operator, "The text is no public key, or its name is malformed.";
    SkillKeyExists = "skill_key_exists", 409, Operator, "A key of skills has this name or id.";
    SkillKeyUnknown = "skill_key_unknown", 403, Operator, "No key that the host trusts has this id or name.";
    SkillKeyName = "skill_key_name", 403, Operator, "The key may not sign a skill of this name.";
    SkillKeyRevoked = "skill_key_revoked", 403, Operator, "The key is revoked.";
    SkillKeyInUse = "skill_key_in_use", 409, Operator, "An agent has a skill that the key signed.";
    SkillRevoked = "skill_revoked", 403, Operator, "The version of the skill is revoked.";
    SkillManifest = "skill_manifest", 400, Operator, "A manifest of the skill is malformed, or asks for more than it may.";
    SkillPath = "skill_path", 400, Operator, "The package has a file that no package may have.";
    SkillFile = "skill_file", 400, Operator, "A file of the package is missing, superfluous or changed.";
    SkillTooLarge = "skill_too_large", 400, Operator, "The package is too large.";
    SkillVersion = "skill_version", 400, Operator, "The version is no semantic version.";
    SkillLookalike = "skill_lookalike", 403, Operator, "The name looks like that of a skill with another signer.";
    SkillDowngrade = "skill_downgrade", 409, Operator, "The agent has a newer version of the skill.";
    SkillChanged = "skill_changed", 403, Operator, "The version had other bytes before.";
    SkillDirect = "skill_direct", 403, Operator, "A skill is not installed by a change that a request writes out.";
    SkillConflict = "skill_conflict", 409, Operator, "The agent has a grant that the skill would replace.";
    SkillPinned = "skill_pinned", 409, Operator, "The skill stays at its version.";
    SkillsTooMany = "skills_too_many", 409, Operator, "There are too many skills, sources or keys.";

    // People and tokens
    PersonName = "person_name", 400, Operator, "The name is not a valid name of a person.";
    PersonExists = "person_exists", 409, Operator, "A person has this name.";
    PersonLookalikeExists = "person_lookalike_exists", 409, Operator, "A person has a name that looks the same.";
    PersonUnknown = "person_unknown", 404, Operator, "There is no such person.";
    PeopleTooMany = "people_too_many", 400, Operator, "There are too many people.";
    RoleMalformed = "role_malformed", 400, Operator, "There is no such role.";
    PersonSelf = "person_self", 400, Operator, "People cannot remove themselves.";
    PersonInUse = "person_in_use", 409, Operator, "The person has sessions.";
    LastOwner = "last_owner", 400, Operator, "The host would have no owner.";
    IdentityMalformed = "identity_malformed", 400, Operator, "The identity is not of the form CHANNEL:NAME.";
    IdentityInUse = "identity_in_use", 409, Operator, "The identity is linked to a person.";
    IdentityUnknown = "identity_unknown", 404, Operator, "The person has no such identity.";
    PlaceUnsuitable = "place_unsuitable", 400, Operator, "The channel sends nothing to people by itself.";
    PlaceAmbiguous = "place_ambiguous", 409, Operator, "The person has several identities on the channel.";
    IdentityOwn = "identity_own", 400, Operator, "The identity is the person's own and cannot be removed.";
    IdentitiesTooMany = "identities_too_many", 400, Operator, "The person has too many identities.";
    TokenName = "token_name", 400, Operator, "The name is not a valid name of a token.";
    TokenUnknown = "token_unknown", 404, Operator, "There is no such token.";
    TokenEnded = "token_ended", 400, Operator, "The token expired or was revoked.";
    TokenInUse = "token_in_use", 409, Operator, "The token is the one of this request or of the home.";
    TokensTooMany = "tokens_too_many", 400, Operator, "The person has too many tokens.";
    ExpiryMalformed = "expiry_malformed", 400, Operator, "The expiry is not a time.";
    ExpiryPassed = "expiry_passed", 400, Operator, "The expiry is in the past.";

    // The ledger
    LedgerBroken = "ledger_broken", 503, Host, "The ledger is damaged.";
    LedgerEmpty = "ledger_empty", 400, Operator, "The chain has no entry after its first.";
    ArchiveFailed = "archive_failed", 503, Host, "The host could not write the archive.";
    HeadsUnreadable = "heads_unreadable", 503, Host, "The host cannot read the heads outside of the home.";
    NothingToAccept = "nothing_to_accept", 400, Operator, "No head and no archive belongs to another history.";
}

#[cfg(test)]
mod tests;

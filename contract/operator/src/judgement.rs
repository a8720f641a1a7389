//! The words of a judgement of a call, in manifests, the API and the record.
//!
//! Plain words: `ironclaw-judge` has the rules that use them.

use ironclaw_contract::words;

words! {
    /// The kind of the principal of a turn.
    pub enum Principal {
        /// A person.
        Person = "person",
        /// A sender of a public channel who is no registered person.
        Guest = "guest",
        /// Another agent.
        Agent = "agent",
        /// A schedule, on behalf of its creator.
        Schedule = "schedule",
        /// A text without a seal.
        Unsigned = "unsigned",
    }

    /// The kind of effect of a call; the words of a turn's scope.
    #[derive(PartialOrd, Ord)]
    pub enum Class {
        Read = "read",
        /// Changes data of the agent itself, now or later.
        Write = "write",
        /// Sends data to a recipient.
        Send = "send",
        /// Runs a program that others choose.
        Exec = "exec",
        /// Spends or promises money or goods.
        Trade = "trade",
        /// Asks a person; without an answer it has no effect.
        Ask = "ask",
    }

    /// A stage of the judgement, in order.
    pub enum JudgementStage {
        /// The tool exists and its arguments are readable.
        Known = "known",
        /// The tool has a manifest with a rule for every argument.
        Classified = "classified",
        /// The agent has the tool.
        Granted = "granted",
        /// The agent takes calls of this class from this kind of principal.
        Receiver = "receiver",
        /// The turn has room for the call.
        Budget = "budget",
        /// The request asked for calls of this class.
        Scope = "scope",
        /// The call fits where its context comes from.
        Inputs = "inputs",
        /// A person typed each value that leaves.
        Outward = "outward",
        /// The tool, the grant and the policy ask for no person.
        AlwaysAsk = "always_ask",
    }

    /// The answer of a stage, without its code.
    pub enum StageAnswer {
        /// Nothing stops the call here.
        Pass = "pass",
        /// The call needs a person.
        Ask = "ask",
        Deny = "deny",
        /// A dangerous mode lifted the stage.
        Lifted = "lifted",
        /// A flow of the schedule, which people approved, covers the call.
        Covered = "covered",
    }

    /// Where the effect of a tool is.
    pub enum ToolReach {
        /// In the jail of the session, or on the notes of the agent.
        Contained = "contained",
        /// An action of the host that a person decides, or that has its own check.
        Action = "action",
        /// A request over the network that the host makes.
        Http = "http",
        /// At a recipient outside of the session.
        Outside = "outside",
    }

    /// The type of a value that a control field takes.
    #[derive(PartialOrd, Ord)]
    pub enum InputType {
        /// A value of each type, and words that a person typed.
        Any = "any",
        Email = "email",
        /// An address of the web with its scheme.
        Url = "url",
        Phone = "phone",
        /// The number of an account; blanks do not count.
        Account = "account",
        /// A number with a currency.
        Amount = "amount",
        /// A date, a time, or both.
        Date = "date",
        Path = "path",
        Number = "number",
        /// The words in a short quotation of a typed sentence.
        Title = "title",
        /// The name of a person, an agent, a destination or a channel that the host knows.
        Name = "name",
    }

    /// The rule of an argument of a tool.
    pub enum ArgumentRule {
        /// It says who or what the call acts on: a recipient, an address, an amount.
        Floor = "floor",
        /// It is the content that the call transports.
        Content = "content",
        /// Its value has no effect beyond the session.
        Free = "free",
    }
}

impl JudgementStage {
    /// Returns whether a dangerous mode lifts this stage.
    #[must_use]
    pub const fn is_lifted_by_modes(self) -> bool {
        matches!(self, Self::Scope | Self::Inputs | Self::Outward)
    }

    /// Returns whether a flow of a schedule covers this stage: it names the sources of the text that may leave.
    #[must_use]
    pub const fn is_covered_by_flows(self) -> bool {
        matches!(self, Self::Inputs | Self::Outward)
    }
}

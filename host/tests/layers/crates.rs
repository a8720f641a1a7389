//! The permitted dependencies of each crate of the workspace.

/// One crate and its permitted dependencies.
pub(super) struct Crate {
    pub(super) directory: &'static str,
    pub(super) own_name: &'static str,
    /// The modules of the contract that it may import.
    pub(super) contract: &'static [&'static str],
    /// The words that its sources must not contain, with reasons.
    pub(super) never: &'static [(&'static str, &'static str)],
    /// Whether it may read environment variables.
    pub(super) environment: bool,
    /// The packages of the workspace on which it may depend.
    pub(super) packages: &'static [&'static str],
}

/// The ends of the queues that belong to the sandbox.
const SANDBOX_ENDS: &[(&str, &str)] = &[
    ("InboundReader", "the sandbox's end of the inbound queue"),
    ("OutboundWriter", "the sandbox's end of the outbound queue"),
];

pub(super) const CRATES: &[Crate] = &[
    Crate {
        directory: "contract",
        own_name: "ironclaw_contract",
        contract: &[],
        never: &[],
        environment: false,
        // For the golden files of its tests. Cargo permits no other circle of crates.
        packages: &["ironclaw-operator"],
    },
    Crate {
        directory: "host",
        own_name: "ironclaw_host",
        contract: &["canonical", "ids", "ledger_entry", "seam", "stored_as_text", "words"],
        never: SANDBOX_ENDS,
        environment: true,
        packages: &[
            "ironclaw-calendar",
            "ironclaw-contract",
            "ironclaw-jail",
            "ironclaw-judge",
            "ironclaw-ledger",
            "ironclaw-mcp",
            "ironclaw-model",
            "ironclaw-net",
            "ironclaw-operator",
            "ironclaw-skill",
            "ironclaw-state",
            "ironclaw-store",
            "ironclaw-text",
        ],
    },
    Crate {
        directory: "sandbox",
        own_name: "ironclaw_sandbox",
        contract: &["ids", "canonical", "seam"],
        never: &[
            ("InboundWriter", "the host's end of the inbound queue"),
            ("OutboundReader", "the host's end of the outbound queue"),
        ],
        environment: false,
        packages: &["ironclaw-contract"],
    },
    Crate {
        directory: "ironctl",
        own_name: "ironctl",
        contract: &["ids"],
        never: &[],
        environment: true,
        packages: &["ironclaw-contract", "ironclaw-operator", "ironclaw-skill", "ironclaw-text"],
    },
    Crate {
        directory: "host/skill",
        own_name: "ironclaw_skill",
        contract: &["canonical", "seam"],
        never: SANDBOX_ENDS,
        environment: false,
        packages: &["ironclaw-contract", "ironclaw-text"],
    },
    Crate {
        directory: "host/text",
        own_name: "ironclaw_text",
        contract: &[],
        never: &[],
        environment: false,
        packages: &[],
    },
    Crate {
        directory: "host/calendar",
        own_name: "ironclaw_calendar",
        contract: &[],
        never: &[],
        environment: false,
        packages: &["ironclaw-text"],
    },
    Crate {
        directory: "host/jail",
        own_name: "ironclaw_jail",
        contract: &["canonical", "seam"],
        never: SANDBOX_ENDS,
        environment: true,
        packages: &["ironclaw-contract", "ironclaw-operator"],
    },
    Crate {
        directory: "host/judge",
        own_name: "ironclaw_judge",
        contract: &["canonical", "ids", "seam", "words"],
        never: SANDBOX_ENDS,
        environment: false,
        packages: &["ironclaw-contract", "ironclaw-operator"],
    },
    Crate {
        directory: "host/state",
        own_name: "ironclaw_state",
        contract: &["canonical", "ids", "seam", "stored_as_text", "words"],
        never: SANDBOX_ENDS,
        environment: true,
        packages: &["ironclaw-contract", "ironclaw-operator", "ironclaw-text"],
    },
    Crate {
        directory: "host/model",
        own_name: "ironclaw_model",
        contract: &["canonical", "ids", "seam", "words"],
        never: SANDBOX_ENDS,
        environment: false,
        packages: &["ironclaw-contract", "ironclaw-net", "ironclaw-operator", "ironclaw-text"],
    },
    Crate {
        directory: "host/mcp",
        own_name: "ironclaw_mcp",
        contract: &[],
        never: &[],
        environment: false,
        packages: &["ironclaw-text"],
    },
    Crate {
        directory: "host/ledger",
        own_name: "ironclaw_ledger",
        contract: &["canonical", "ids", "ledger_entry", "seam", "words"],
        never: SANDBOX_ENDS,
        environment: false,
        packages: &["ironclaw-contract", "ironclaw-operator", "ironclaw-state"],
    },
    Crate {
        directory: "host/mcp-demo",
        own_name: "ironclaw_mcp_demo",
        contract: &[],
        never: &[],
        environment: false,
        packages: &[],
    },
    Crate {
        directory: "host/store",
        own_name: "ironclaw_store",
        contract: &["canonical", "ids", "seam", "stored_as_text", "words"],
        never: SANDBOX_ENDS,
        environment: false,
        packages: &[
            "ironclaw-contract",
            "ironclaw-jail",
            "ironclaw-judge",
            "ironclaw-ledger",
            "ironclaw-model",
            "ironclaw-operator",
            "ironclaw-state",
            "ironclaw-text",
        ],
    },
    Crate {
        directory: "contract/operator",
        own_name: "ironclaw_operator",
        contract: &["canonical", "ids", "ledger_entry", "seam", "text_values", "word_schemas", "words"],
        never: SANDBOX_ENDS,
        environment: false,
        packages: &["ironclaw-contract"],
    },
    Crate {
        directory: "host/net",
        own_name: "ironclaw_net",
        contract: &["words"],
        never: SANDBOX_ENDS,
        environment: false,
        packages: &["ironclaw-contract", "ironclaw-text"],
    },
];

/// The crates of the workspace, by the first segment of a path.
pub(super) const WORKSPACE_CRATES: &[&str] = &[
    "ironclaw_calendar",
    "ironclaw_contract",
    "ironclaw_host",
    "ironclaw_jail",
    "ironclaw_ledger",
    "ironclaw_mcp",
    "ironclaw_model",
    "ironclaw_net",
    "ironclaw_operator",
    "ironclaw_sandbox",
    "ironclaw_skill",
    "ironclaw_state",
    "ironclaw_store",
    "ironclaw_judge",
    "ironclaw_text",
    "ironctl",
    "ironclaw_mcp_demo",
];

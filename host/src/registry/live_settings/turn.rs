//! The limits of a turn.

use crate::registry::tools::levels::{DEFINITIONS_BYTES_MAX, Room};
use ironclaw_contract::seam::link::TurnLimits;

ironclaw_operator::settings! {
    /// `[turn]`
    pub struct Config for turn {
        /// A turn that takes longer ends with a notice.
        seconds_max: u32 = 300, Range(1, 86_400, "seconds"), Live;
        /// The most requests to the model in one turn.
        model_calls_max: u32 = 50, AtLeast(1, "requests"), Live;
        /// The most tool calls in one turn.
        tool_calls_max: u32 = 100, AtLeast(1, "calls"), Live;
        /// The most bytes of all results in one turn.
        result_bytes_max: u64 = 4 << 20, AtLeast(0, "bytes"), Live;
        /// The most bytes that one request to the model may name; the rest of the conversation is summarised.
        context_bytes_max: u64 = 512 << 10, AtLeast(0, "bytes"), Restart;
        /// The most bytes of the definitions of tools of MCP servers in a request; with more, the agent gets `find_tools`.
        tools_bytes_max: Option<u64> = None, Optional {
            rule: "a number of bytes", instead: "a twelfth of `context_bytes_max`, at most 40960", example: "8192",
        }, Live;
    }
}

/// The part of a request that the definitions of tools of servers may have, unless the operator says more.
const TOOLS_PART: u64 = 12;

impl Config {
    /// Returns these settings for a model that reads so many bytes.
    pub fn reading(self, bytes: Option<u64>) -> Self {
        Self {
            context_bytes_max: bytes.map_or(self.context_bytes_max, |read| read.min(self.context_bytes_max)),
            ..self
        }
    }

    /// Returns the room for the definitions of tools of servers in a prompt to an endpoint with this bound of its own.
    pub fn room(&self, own: Option<u64>) -> Room {
        let usual = (self.context_bytes_max / TOOLS_PART).min(DEFINITIONS_BYTES_MAX as u64);
        let bytes = own.or(self.tools_bytes_max).unwrap_or(usual);
        Room::new(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Returns the limits that the sandbox receives.
    pub const fn limits(&self) -> TurnLimits {
        TurnLimits {
            model_calls_max: self.model_calls_max,
            tool_calls_max: self.tool_calls_max,
            result_bytes_max: self.result_bytes_max,
            context_bytes_max: self.context_bytes_max,
        }
    }
}

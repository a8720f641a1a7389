//! `http_fetch`: a request to a granted host. The grant of its host decides whether it only reads.

use crate::registry::tools::declared::{Argument, Declared, object, one_of, text, words};
use crate::registry::tools::place::{OutsideTool, Place};
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;
use serde_json::Value;

pub const NAME: &str = "http_fetch";

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Asks a granted host of the network for a page, or sends data to it. The host of this machine sends the request, \
            follows no redirect, and adds the secret of the grant.",
        held: Held::Enabled,
        place: Place::Outside(OutsideTool::HttpFetch),
        class: Class::Send,
        also: &[],
        reach: Reach::Http,
        reversible: false,
        effect: "sends {method} {url}",
        arguments: vec![
            Argument::floor("method", one_of(&["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"], "GET if absent."))
                .outward(),
            Argument::floor("url", words("The whole address.")).outward().required(),
            Argument::floor("headers", headers()).outward(),
            Argument::content("body", text("For POST, PUT and PATCH.")).outward(),
        ],
    };
    declared.into()
}

/// Returns the schema of the headers that a model may set.
fn headers() -> Value {
    let mut headers = object([
        ("accept", false, text("Types of content to accept.")),
        ("content-type", false, text("Type of the body.")),
        ("if-match", false, text("Version that a change is for.")),
        ("if-modified-since", false, text("Time of the known version.")),
        ("if-none-match", false, text("The known version.")),
        ("range", false, text("Part of the page.")),
    ]);
    headers["description"] = "Headers; the host sets all others.".into();
    headers
}

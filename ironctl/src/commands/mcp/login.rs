//! `ironctl mcp login` and `logout`: a login at an MCP server with OAuth.
//!
//! Listens on this machine for the answer of the browser, or takes the pasted address. Never reads a code or a token: the host checks the
//! address. See [`super::confirm`] for the next step.

use super::wording;
use crate::at::At;
use crate::failure::Error;
use ironclaw_operator::{McpLoginAnswer, McpLoginBegun, McpServer, NewMcpLogin, routes};
use ironclaw_text::shell::quoted;
use std::io::{self, Read};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// The longest wait for the answer of the browser; the host ends the login at the same time.
const WAIT: Duration = Duration::from_secs(600);

/// The longest time of one connection of the browser.
const CONNECTION: Duration = Duration::from_secs(10);

/// Bytes of the request of a browser, and of a pasted address.
const REQUEST_BYTES_MAX: usize = 32 * 1024;

/// The refusal of an address that may be of another party; the login waits after it.
const OTHER_ADDRESS: [&str; 2] = ["mcp_login_address", "mcp_issuer"];

/// The answer to the browser.
const ANSWERED: &str = "IronClaw has the answer. The terminal shows the result.\n";

/// Options of `ironctl mcp login`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl mcp login calendar\n  ironctl mcp login calendar --paste")]
pub struct Args {
    /// Name of the server
    server: String,
    /// Take the address from stdin, for a browser on another machine
    #[arg(long)]
    paste: bool,
    /// Port of this machine for the answer of the browser [default: a free one]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,
}

pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    let Args { server, paste, port } = args;
    let client = at.client()?;
    let unusable = |cause: io::Error| {
        Error::failed("port_unusable", format!("cannot listen on port {port} of this machine"))
            .hinting("name another one with --port")
            .because(cause)
    };
    let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(unusable)?;
    let origin = format!("http://{}", listener.local_addr().map_err(unusable)?);
    let new = NewMcpLogin { redirect_uri: format!("{origin}/callback") };
    let begun = client.post(routes::BEGIN_MCP_LOGIN, [&server], &new).await?;
    at.out.json(&begun)?;
    let McpLoginBegun { issuer, url, .. } = begun;
    at.out.remark(format!("log in at {} with a browser:", wording::prose(&issuer)))?;
    at.out.remark(wording::prose(&url))?;
    let found = if paste {
        drop(listener);
        at.out.remark("the browser then fails to load an address of this machine; paste that address here")?;
        client.post(routes::FINISH_MCP_LOGIN, [&server], &McpLoginAnswer { address: pasted()? }).await?
    } else {
        at.out.remark("waiting for the browser; if it is on another machine, use --paste")?;
        let answered = async {
            loop {
                let answer = McpLoginAnswer { address: next(&listener, &origin).await? };
                match client.post(routes::FINISH_MCP_LOGIN, [&server], &answer).await {
                    Err(Error::Refused(failure)) if OTHER_ADDRESS.contains(&failure.error.code.as_str()) => {
                        at.out.remark(format!("{}; still waiting", failure.error.message))?;
                    }
                    finished => return finished,
                }
            }
        };
        let late = || Error::failed("mcp_login_late", "the browser did not answer in time").hinting("try again");
        timeout(WAIT, answered).await.map_err(|_| late())??
    };
    at.out.json(&found)?;
    at.out.line(format!("logged in at {} for MCP server {}", wording::prose(&issuer), found.name))?;
    at.out.remark(format!("ask it for its tools: ironctl mcp test {}", quoted(&found.name)))
}

pub async fn out(at: &At, server: &str) -> Result<(), Error> {
    let found: McpServer = at.client()?.call(routes::LOG_OUT_OF_MCP_SERVER, [&server]).await?;
    at.out.json(&found)?;
    at.out.line(format!("the host has no token for MCP server {}", found.name))?;
    at.out.remark("an issuer that revokes no tokens keeps them valid until their end; its page may end them sooner")
}

/// Reads a pasted address.
fn pasted() -> Result<String, Error> {
    let unreadable = |cause| Error::failed("stdin_unreadable", "cannot read the address from stdin").because(cause);
    let mut line = String::new();
    io::BufRead::read_line(&mut io::stdin().lock().take(REQUEST_BYTES_MAX as u64), &mut line).map_err(unreadable)?;
    Ok(line.trim().to_owned())
}

/// Returns the next address that a browser asks this machine for. Other requests get no answer of use.
async fn next(listener: &TcpListener, origin: &str) -> Result<String, Error> {
    let broken = |cause| Error::failed("port_unusable", "cannot take the answer of the browser").because(cause);
    loop {
        let (stream, _) = listener.accept().await.map_err(broken)?;
        if let Ok(Ok(Some(path))) = timeout(CONNECTION, answer(stream)).await {
            return Ok(format!("{origin}{path}"));
        }
    }
}

/// Answers one request of a browser, and returns its path if it is the callback.
async fn answer(mut stream: TcpStream) -> io::Result<Option<String>> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_BYTES_MAX {
        if stream.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    let line = String::from_utf8_lossy(&request);
    let path = line.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
    let path = path.filter(|path| path.starts_with("/callback?")).map(str::to_owned);
    let (status, body) = if path.is_some() { ("200 OK", ANSWERED) } else { ("404 Not Found", "") };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\nreferrer-policy: no-referrer\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(path)
}

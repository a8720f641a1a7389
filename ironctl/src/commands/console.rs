//! `ironctl console`: a code for the console, and the way into it from a browser.
//!
//! Never puts the code on a command line, where other users of the machine see it. See `docs/operate/console.md`.

use crate::at::At;
use crate::clock;
use crate::failure::Error;
use crate::home::Home;
use crate::new_file::NewFile;
use ironclaw_operator::{ConsoleCode, NewConsoleCode, routes};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program of a desktop that opens a file in a browser.
const OPENER: &str = "xdg-open";

/// The environment of a desktop: one of these is set.
const DESKTOP: [&str; 2] = ["DISPLAY", "WAYLAND_DISPLAY"];

/// Options of `ironctl console`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl console\n  ironctl console --print\n  ironctl console --new-origin --print --json"
)]
pub struct Args {
    /// Print the address and a code to type there, for a browser elsewhere
    #[arg(long)]
    print: bool,
    /// Give the console a new address, which ends every session in a browser; for owners
    #[arg(long)]
    new_origin: bool,
}

/// Opens the console in a browser, or prints the address with a code.
pub async fn run(at: &At, args: &Args) -> Result<(), Error> {
    let new = NewConsoleCode { new_origin: args.new_origin };
    let code = at.client()?.post(routes::CONSOLE_CODE, [], &new).await?;
    at.out.json(&code)?;
    // A local page is for the host of this machine.
    if args.print || at.out.is_json() || at.access.port()?.is_some() {
        return print(at, &code);
    }
    let form = write_form(&at.home, &code)?;
    if DESKTOP.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())) && open(&form) {
        return at.out.line(format!("opened {} in your browser", code.url));
    }
    at.out.remark(format!("no browser opened; on this machine, open the file {}, or type the code", form.display()))?;
    print(at, &code)
}

fn print(at: &At, code: &ConsoleCode) -> Result<(), Error> {
    at.out.line(format!("address  {}", code.url))?;
    at.out.line(format!("code     {}", code.code))?;
    at.out.remark(format!("the code signs you in once, until {}", clock::date_and_time(&code.expires_at)))
}

/// Writes a local page that posts the code, readable by its user alone. The page replaces an earlier one.
fn write_form(home: &Home, code: &ConsoleCode) -> Result<PathBuf, Error> {
    let run = home.run_file()?.ok_or_else(|| Error::Unreachable { home: home.path().to_owned() })?;
    let directory = Path::new(&run.socket).parent().map(Path::to_owned).unwrap_or_else(|| home.path().to_owned());
    let path = directory.join("console.html");
    let mut file = NewFile::create(&path, true)?;
    file.write(page(code).as_bytes())?;
    file.keep()?;
    Ok(path)
}

/// Returns the local page. Address and code have characters alone that HTML does not escape.
fn page(ConsoleCode { url, code, .. }: &ConsoleCode) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>IronClaw</title>\n\
         <form method=\"post\" action=\"{url}sign-in\">\n<input type=\"hidden\" name=\"code\" value=\"{code}\">\n\
         <button>Open the console</button>\n</form>\n<script>document.forms[0].submit()</script>\n</html>\n"
    )
}

/// Opens a file in the browser of the desktop. Returns whether the desktop took it.
fn open(file: &Path) -> bool {
    let mut command = Command::new(OPENER);
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_page_posts_the_code_and_names_it_in_no_address() {
        let code = ConsoleCode {
            url: "http://abc.localhost:8799/".to_owned(),
            code: "ABCD-EFGH-JKMN-PQRS".to_owned(),
            expires_at: String::new(),
        };
        let page = page(&code);
        assert!(
            page.contains("action=\"http://abc.localhost:8799/sign-in\" ")
                || page.contains("action=\"http://abc.localhost:8799/sign-in\">")
        );
        assert_eq!((page.matches("ABCD-EFGH-JKMN-PQRS").count(), page.matches("method=\"post\"").count()), (1, 1));
    }
}

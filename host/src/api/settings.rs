//! The settings over the API: the reload, and the directories that may be granted to agents.
//!
//! Only passes requests on: the daemon reads and writes the files. See `daemon::reload`.

use super::handler::{Answer, Api, Body, Caller, Reply};
use super::page;
use crate::gateway::kinds;
use crate::gateway::review_page::Page;
use axum::Json;
use ironclaw_operator::{NewAllowed, PersonPage, Reloaded};
use ironclaw_text::visible;
use std::path::PathBuf;
use std::sync::Arc;

/// `POST /v1/config/reload`. Runs in a task of its own, so that a client that leaves does not interrupt it.
pub async fn reload(Caller { api, person, .. }: Caller) -> Reply<Reloaded> {
    let reloading = tokio::spawn(Arc::clone(&api.about.reload).reload(person.id));
    let reloaded = reloading.await.map_err(|error| Answer::task_ended(&error))?;
    Ok(Json(reloaded.map_err(Answer::denied)?))
}

/// `POST /v1/config/mounts/review`: the page of a directory that is to be allowed. Changes nothing.
pub async fn review_allowed(Caller { api, .. }: Caller, Body(new): Body<NewAllowed>) -> Reply<PersonPage> {
    let (_, shown) = checked(&api, new.directory).await?;
    Ok(Json(page::view(shown)))
}

/// `POST /v1/config/mounts`: adds a directory to `[mounts] allow` of `config.toml`, and reads the settings again.
pub async fn allow(Caller { api, person, .. }: Caller, Body(new): Body<NewAllowed>) -> Reply<Reloaded> {
    let (directory, page) = checked(&api, new.directory).await?;
    let hint = "`ironctl agent grant-dir AGENT DIR --allow` shows the page; in a script add --yes";
    page::check_seen(&page, new.shown.as_ref(), hint)?;
    let allowing = tokio::spawn(Arc::clone(&api.about.reload).allow(person.id, directory));
    let reloaded = allowing.await.map_err(|error| Answer::broken(&error))?;
    Ok(Json(reloaded.map_err(Answer::denied)?))
}

/// Checks a directory outside of the async threads, because it may be on a disk that hangs. Returns it with its page.
async fn checked(api: &Api, directory: String) -> Result<(PathBuf, String), Answer> {
    let settings = api.gateway.now();
    let checked = tokio::task::spawn_blocking(move || kinds::check_allowable(&directory, &settings.host_policy)).await;
    let directory = checked.map_err(|error| Answer::broken(&error))??;
    let page = page_of(&directory.display().to_string());
    Ok((directory, page))
}

fn page_of(directory: &str) -> String {
    let shown = visible::name(directory);
    let mut page = Page::default();
    page.heading("EFFECT");
    page.sentence(
        "  ",
        &format!(
            "Allow that agents are granted {shown} and the directories below it: `[mounts] allow` of config.toml."
        ),
    );
    page.sentence("  ", "No agent gets a directory by this. Each grant is a change with a page of its own.");
    page.heading("WARNINGS");
    page.sentence(
        "  !! ",
        &format!("The people who decide on mounts may then grant ANY directory below {shown} to an agent."),
    );
    page.finish()
}

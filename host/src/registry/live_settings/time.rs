//! The time zone of the host: that of the settings, or else that of the machine.
//!
//! Read at a start and at a reload, so that the prompt, the schedules and the lists have the same one. See [`ironclaw_calendar::MachineZone`].

use ironclaw_calendar::{MachineZone, Sources, Zone};

ironclaw_operator::settings! {
    /// `[time]`
    pub struct Config for time {
        /// The time zone of prompts, schedules and lists.
        zone: Option<String> = None, Optional {
            rule: "a name of the IANA database", instead: "the time zone of the machine", example: "\"Europe/Berlin\"",
        }, Live;
    }
}

impl Config {
    /// Refuses a zone that is none.
    ///
    /// # Errors
    /// Half a sentence that begins with the name of the setting.
    pub fn check(&self) -> Result<(), String> {
        match &self.zone {
            Some(name) => Zone::parse(name).map(drop).map_err(|error| format!("time.zone: {error}")),
            None => Ok(()),
        }
    }
}

/// The one time zone of the host.
#[derive(Debug, Clone)]
pub struct HostZone {
    pub zone: Zone,
    /// The reason why the machine's zone is not sure; `None` if the settings name one.
    pub doubt: Option<String>,
}

impl HostZone {
    /// Returns the zone of these settings on the machine with these sources.
    pub fn choose(settings: &Config, sources: &Sources) -> Self {
        if let Some(zone) = settings.zone.as_deref().and_then(|name| Zone::parse(name).ok()) {
            return Self { zone, doubt: None };
        }
        let MachineZone { zone, doubt } = MachineZone::find(sources);
        Self { zone, doubt: doubt.map(|doubt| doubt.to_string()) }
    }

    /// Returns the sentence about a doubt, with the remedy.
    pub fn warning(&self) -> Option<String> {
        let (zone, doubt) = (&self.zone, self.doubt.as_ref()?);
        Some(format!(
            "the time zone is not clear: {doubt}; the host uses {zone} for prompts, schedules and lists: set `zone` below [time] in \
             config.toml, then `ironctl config reload`"
        ))
    }
}

impl Default for HostZone {
    fn default() -> Self {
        Self { zone: Zone::utc(), doubt: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_of_the_settings_ends_each_doubt() {
        let sources = Sources { variable: Some("CET-1".to_owned()), ..Sources::default() };
        let of = |zone: Option<&str>| HostZone::choose(&Config { zone: zone.map(str::to_owned) }, &sources);
        let (unsure, set) = (of(None), of(Some("asia/tokyo")));
        assert_eq!(unsure.zone.name(), "UTC");
        assert!(unsure.warning().is_some_and(|words| words.contains("CET-1") && words.contains("[time]")));
        assert_eq!((set.zone.name(), set.doubt), ("Asia/Tokyo", None));
        assert!(Config { zone: Some("Berlin".to_owned()) }.check().is_err_and(|why| why.contains("Europe/Berlin")));
    }
}

//! The requests about channels and dead letters.
//!
//! Never sends over a channel itself. See `commands::channel` and `commands::delivery`.

use super::{Client, REQUEST_TIMEOUT, parse, segment};
use crate::failure::Error;
use hyper::Method;
use ironclaw_contract::operator::{
    Channel, ChannelProbe, ChannelTest, DeadLetter, DeadLetterDone, NewChannel, NewChannelMade, NewWiring,
};

impl Client {
    /// Returns every channel except the loopback.
    pub async fn channels(&self) -> Result<Vec<Channel>, Error> {
        self.get("channels").await
    }

    /// Adds a channel.
    pub async fn add_channel(&self, channel: &NewChannel) -> Result<NewChannelMade, Error> {
        self.post("channels", channel).await
    }

    /// Removes a channel.
    pub async fn remove_channel(&self, channel: &str) -> Result<Channel, Error> {
        let path = format!("channels/{}", segment(channel));
        parse(&self.ask(Method::DELETE, &path, None, REQUEST_TIMEOUT).await?)
    }

    /// Makes the host send a test to a channel.
    pub async fn test_channel(&self, channel: &str) -> Result<ChannelTest, Error> {
        let path = format!("channels/{}/test", segment(channel));
        parse(&self.ask(Method::POST, &path, None, REQUEST_TIMEOUT).await?)
    }

    /// Makes the host connect to the receiver of a channel, without a request.
    pub async fn probe_channel(&self, channel: &str) -> Result<ChannelProbe, Error> {
        let path = format!("channels/{}/probe", segment(channel));
        parse(&self.ask(Method::POST, &path, None, REQUEST_TIMEOUT).await?)
    }

    /// Connects an agent to a channel.
    pub async fn connect(&self, channel: &str, wiring: &NewWiring) -> Result<Channel, Error> {
        self.post(&format!("channels/{}/agents", segment(channel)), wiring).await
    }

    /// Disconnects an agent from a channel.
    pub async fn disconnect(&self, channel: &str, agent: &str) -> Result<Channel, Error> {
        let path = format!("channels/{}/agents/{}", segment(channel), segment(agent));
        parse(&self.ask(Method::DELETE, &path, None, REQUEST_TIMEOUT).await?)
    }

    /// Ends the wait of a sender for a person.
    pub async fn dismiss_sender(&self, channel: &str, sender: &str) -> Result<Channel, Error> {
        let path = format!("channels/{}/senders/{}", segment(channel), segment(sender));
        parse(&self.ask(Method::DELETE, &path, None, REQUEST_TIMEOUT).await?)
    }

    /// Returns every dead letter.
    pub async fn dead_letters(&self) -> Result<Vec<DeadLetter>, Error> {
        self.get("dead").await
    }

    /// Sends a dead letter again.
    pub async fn retry_delivery(&self, id: &str) -> Result<DeadLetterDone, Error> {
        let path = format!("dead/{}/retry", segment(id));
        parse(&self.ask(Method::POST, &path, None, REQUEST_TIMEOUT).await?)
    }

    /// Drops a dead letter.
    pub async fn drop_delivery(&self, id: &str) -> Result<DeadLetterDone, Error> {
        let path = format!("dead/{}", segment(id));
        parse(&self.ask(Method::DELETE, &path, None, REQUEST_TIMEOUT).await?)
    }
}

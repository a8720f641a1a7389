//! Asks a host about channels and what could not be delivered on them.
//!
//! Sends nothing over a channel itself. See `commands::channel`.

use super::{Client, PATIENCE, parse, segment};
use crate::failure::Error;
use hyper::Method;
use ironclaw_contract::operator::{
    Channel, ChannelTest, DeadLetter, DeadLetterDone, NewChannel, NewChannelMade, NewWiring,
};

impl Client {
    /// Returns every channel beside the loopback.
    pub async fn channels(&self) -> Result<Vec<Channel>, Error> {
        self.get("channels").await
    }

    /// Makes a channel.
    pub async fn add_channel(&self, channel: &NewChannel) -> Result<NewChannelMade, Error> {
        self.post("channels", channel).await
    }

    /// Removes a channel.
    pub async fn remove_channel(&self, channel: &str) -> Result<Channel, Error> {
        let path = format!("channels/{}", segment(channel));
        parse(&self.ask(Method::DELETE, &path, None, PATIENCE).await?)
    }

    /// Sends a test to a channel.
    pub async fn test_channel(&self, channel: &str) -> Result<ChannelTest, Error> {
        let path = format!("channels/{}/test", segment(channel));
        parse(&self.ask(Method::POST, &path, None, PATIENCE).await?)
    }

    /// Lets an agent hear a channel.
    pub async fn connect(&self, channel: &str, agent: &str) -> Result<Channel, Error> {
        let wiring = NewWiring { agent: agent.to_owned() };
        self.post(&format!("channels/{}/agents", segment(channel)), &wiring).await
    }

    /// Disconnects an agent from a channel.
    pub async fn disconnect(&self, channel: &str, agent: &str) -> Result<Channel, Error> {
        let path = format!("channels/{}/agents/{}", segment(channel), segment(agent));
        parse(&self.ask(Method::DELETE, &path, None, PATIENCE).await?)
    }

    /// Answers that did not arrive.
    pub async fn dead_letters(&self) -> Result<Vec<DeadLetter>, Error> {
        self.get("dead").await
    }

    /// Sends such an answer again.
    pub async fn retry_dead(&self, id: &str) -> Result<DeadLetterDone, Error> {
        let path = format!("dead/{}/retry", segment(id));
        parse(&self.ask(Method::POST, &path, None, PATIENCE).await?)
    }

    /// Lets such an answer go.
    pub async fn drop_dead(&self, id: &str) -> Result<DeadLetterDone, Error> {
        let path = format!("dead/{}", segment(id));
        parse(&self.ask(Method::DELETE, &path, None, PATIENCE).await?)
    }
}

//! Starts the tasks of a host that runs, and ends those that have something to finish.

use super::sockets::Sockets;
use crate::api::hooks::Hooks;
use crate::api::port::Port;
use crate::api::{self, Api};
use crate::maintenance::Keeper;
use crate::pipeline::{ChangeWorker, Pipeline};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Longest time of open requests while the host stops.
const REQUESTS_TIME_MAX: Duration = Duration::from_secs(5);

/// Tasks that run until the host stops.
pub(super) struct Workers {
    /// Set once the host begins to stop, while requests are still answered.
    pub stopping: Arc<AtomicBool>,
    /// Ends the tasks; the API sets it too, when an operator asks for a stop.
    pub stop: watch::Sender<bool>,
    pub stopped: watch::Receiver<bool>,
    /// Sends deliveries.
    pub sending: JoinHandle<()>,
    serving: JoinHandle<std::io::Result<()>>,
    hooking: Option<JoinHandle<std::io::Result<()>>>,
}

impl Workers {
    /// Starts to apply changes, to remove what is old, to send, and to answer on the sockets.
    pub fn start(pipeline: &Pipeline, sockets: Sockets, keeper: &Keeper, warnings: Vec<String>) -> Self {
        tokio::spawn(Arc::new(ChangeWorker::new(pipeline.clone())).run());
        tokio::spawn(pipeline.clone().retain());
        let (stop, stopped) = watch::channel(false);
        let sending = tokio::spawn(Arc::new(pipeline.dispatcher()).run(stop.subscribe()));
        let stopping = Arc::new(AtomicBool::new(false));
        let Sockets { listener, port, hooks } = sockets;
        let about = api::About {
            hooks: hooks.as_ref().and_then(Port::address),
            keeper: keeper.clone(),
            started_at: ironclaw_state::wall_clock(),
            warnings,
            stopping: Arc::clone(&stopping),
        };
        let large = Arc::default();
        let api = Api::new(pipeline.clone(), about, stop.clone(), Arc::clone(&large));
        let hooking = hooks.map(|port| {
            let hooks = Hooks::new(pipeline.clone(), large);
            tokio::spawn(hooks.serve(port, stop.subscribe()))
        });
        let serving = tokio::spawn(api.serve(listener, port, stop.subscribe()));
        Self { stopping, stop, stopped, sending, serving, hooking }
    }

    /// Ends the tasks that answer and the one that sends.
    pub async fn end(self) {
        self.stop.send_replace(true);
        let _ = tokio::time::timeout(REQUESTS_TIME_MAX, async {
            let _ = self.serving.await;
            if let Some(hooking) = self.hooking {
                let _ = hooking.await;
            }
        })
        .await;
        // Bounded by itself.
        if !self.sending.is_finished() {
            let _ = self.sending.await;
        }
    }
}

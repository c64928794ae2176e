//! One kind, followed for ever: what the watch shows is told, what it does not show any more is told as gone, and trouble is
//! logged once and lived through.

use std::{convert::Infallible, error::Error as _, pin::pin, sync::Arc, time::Duration};

use futures::StreamExt;
use kube::{
    Api,
    runtime::{
        WatchStreamExt,
        watcher::{self, InitialListStrategy},
    },
};
use tokio::sync::mpsc;
use whittle_model::Event;

use super::{
    Seen,
    gate::Gate,
    kinds::{Kind, Need, Scope, Told},
    known::{Known, Look},
    raw::{Name, Raw},
};

/// How long a kind that the cluster lacks or keeps from us is left alone: somebody may install it, or let us, any time.
const ABSENT: Duration = Duration::from_secs(30);
/// How often a refusal must be heard to be believed: a server that has just started refuses what it does not know of yet.
const BELIEVED: u32 = 3;
/// How long before a list follows a watch that the server refused to begin: it may refuse the next one as well.
const EXPIRED: Duration = Duration::from_secs(1);

/// Nobody listens any more.
struct Closed;

/// Follows `kind` until nobody listens to `to`.
pub(super) async fn follow(kind: &'static Kind, api: Api<Raw>, config: watcher::Config, gate: Arc<Gate>, to: mpsc::Sender<Seen>) {
    let mut follower = Follower { kind, config, gate, to, known: Known::default(), trouble: None, refusals: 0 };
    let Err(Closed) = follower.run(&api).await;
}

struct Follower {
    kind: &'static Kind,
    config: watcher::Config,
    gate: Arc<Gate>,
    to: mpsc::Sender<Seen>,
    known: Known,
    /// The last trouble that was logged, until what failed works again; whether it was the watch, and not a list.
    trouble: Option<(bool, String)>,
    /// How often in a row the server said that there is no such kind, or not for us.
    refusals: u32,
}

impl Follower {
    async fn run(&mut self, api: &Api<Raw>) -> Result<Infallible, Closed> {
        loop {
            let mut stream = pin!(watcher::watcher(api.clone(), self.config.clone()).default_backoff());
            let mut rest = EXPIRED;
            while let Some(item) = stream.next().await {
                match item {
                    Ok(event) => self.take(event).await?,
                    Err(error) => {
                        if let Some(pause) = self.failed(&error).await? {
                            rest = pause;
                            break;
                        }
                    }
                }
            }
            tokio::time::sleep(rest).await;
        }
    }

    async fn take(&mut self, event: watcher::Event<Raw>) -> Result<(), Closed> {
        match event {
            watcher::Event::Init => self.known.begin(),
            watcher::Event::InitApply(object) => self.show(&object).await?,
            watcher::Event::InitDone => {
                for name in self.known.end() {
                    self.gone(&name).await?;
                }
                self.listed().await?;
                self.works(false);
            }
            watcher::Event::Apply(object) => {
                self.show(&object).await?;
                self.works(true);
            }
            watcher::Event::Delete(object) => {
                if self.known.remove(&object.name()) {
                    self.gone(&object.name()).await?;
                }
                self.works(true);
            }
        }
        Ok(())
    }

    /// Says that trouble is over, if it was of this sort.
    fn works(&mut self, watching: bool) {
        if self.trouble.take_if(|(of_watch, _)| watching || !*of_watch).is_some() {
            tracing::info!(kind = self.kind.name, "the watch goes on");
        }
        if self.trouble.is_none() {
            self.refusals = 0;
        }
    }

    async fn show(&mut self, object: &Raw) -> Result<(), Closed> {
        let name = object.name();
        match self.known.look(&name, object.uid(), object.version()) {
            Look::Same => return Ok(()),
            Look::Replaced => self.gone(&name).await?,
            Look::Changed => {}
        }
        let (live, event) = (self.kind.read)(&object.value, &name);
        let event = event.filter(|event| self.known.news(&name, event));
        let live = live.filter(|live| {
            if let Seen::ConfigMap { data, .. } = live {
                // Other programs keep leases and heartbeats in the annotations of ConfigMaps.
                self.known.news(&name, data)
            } else if let Seen::BufferBase { base, .. } = live {
                // The status of a workload changes all day.
                self.known.news(&name, base)
            } else {
                true
            }
        });
        self.tell((live, event)).await
    }

    async fn gone(&mut self, name: &Name) -> Result<(), Closed> {
        self.tell((self.kind.gone)(name)).await
    }

    async fn tell(&self, (live, event): Told) -> Result<(), Closed> {
        for seen in live.into_iter().chain(event.map(Seen::Event)) {
            self.to.send(seen).await.map_err(|_| Closed)?;
        }
        Ok(())
    }

    /// The first list is in, or will never be.
    async fn listed(&self) -> Result<(), Closed> {
        if self.gate.pass(self.kind.name) {
            self.tell((None, Some(Event::Synced))).await?;
            self.tell((Some(Seen::Synced), None)).await?;
        }
        Ok(())
    }

    /// What is done about trouble: `None` to leave it to the stream, which backs off and goes on; otherwise a pause before a new
    /// stream begins with a list.
    async fn failed(&mut self, error: &watcher::Error) -> Result<Option<Duration>, Closed> {
        if self.changes_strategy(error) {
            return Ok(Some(Duration::ZERO));
        }
        let (why, code) = (text(error), code(error));
        let refused = matches!(code, Some(403 | 404));
        self.refusals = if refused { self.refusals + 1 } else { 0 };
        if self.kind.need == Need::Optional && refused {
            if self.refusals < BELIEVED {
                return Ok(None);
            }
            self.say(error, &why, |kind, why| tracing::info!(kind, why, "the cluster has none of this kind for us"));
            // Without permission what was seen may still be there; without the kind it is not.
            if code == Some(404) {
                for name in self.known.clear() {
                    self.gone(&name).await?;
                }
            }
            self.listed().await?;
            return Ok(Some(ABSENT));
        }
        if code == Some(410) {
            tracing::debug!(kind = self.kind.name, why, "the watch is too old; the kind is listed again");
        } else {
            self.gate.note(self.kind.name, &why);
            self.say(error, &why, |kind, why| tracing::warn!(kind, why, "the watch failed and is tried again"));
        }
        Ok(self.anew(error, code))
    }

    /// How long before a new list, where the server will not begin a watch from what was listed however often it is asked.
    fn anew(&self, error: &watcher::Error, code: Option<u16>) -> Option<Duration> {
        match (error, code) {
            (watcher::Error::WatchStartFailed(_), Some(400 | 404 | 410 | 422)) => Some(EXPIRED),
            // Where watching is forbidden, listing now and then is better than going blind.
            (watcher::Error::WatchStartFailed(_), Some(403)) if self.refusals >= BELIEVED => Some(ABSENT),
            (_, _) => None,
        }
    }

    /// A role that lets us watch a namespace but not list it is enough where the server can begin a watch with what is there.
    fn changes_strategy(&mut self, error: &watcher::Error) -> bool {
        let refused = self.kind.scope == Scope::Own && code(error) == Some(403) && matches!(error, watcher::Error::InitialListFailed(_));
        self.config.initial_list_strategy = if refused { InitialListStrategy::StreamingList } else { InitialListStrategy::ListWatch };
        refused
    }

    /// Logs trouble unless it was the last that was logged.
    fn say(&mut self, error: &watcher::Error, why: &str, log: fn(&str, &str)) {
        if self.trouble.as_ref().is_none_or(|(_, said)| said != why) {
            log(self.kind.name, why);
            self.trouble = Some((!matches!(error, watcher::Error::InitialListFailed(_)), why.to_owned()));
        }
    }
}

/// The server's own answer, if it gave one.
fn status(error: &watcher::Error) -> Option<&kube::core::Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status)
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => Some(status),
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => None,
    }
}

fn code(error: &watcher::Error) -> Option<u16> {
    status(error).map(|status| status.code)
}

/// What went wrong, in one line that is the same for the same trouble.
fn text(error: &watcher::Error) -> String {
    if let Some(status) = status(error) {
        let advice = if status.code == 404 { " (install the CustomResourceDefinition of this kind)" } else { "" };
        return format!("{}: {}{advice}", status.code, status.message);
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        let said = deeper.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = deeper.source();
    }
    text
}

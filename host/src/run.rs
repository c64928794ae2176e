//! From settings to a running controller and, asked to stop, out again in order: first no more writes, then the lease,
//! then the journal. What must not enter: what any of the parts does.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use ::http::StatusCode;
use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use whittle_cloud::Aws;
use whittle_cloud::class::{ClassSettings, Classes};
use whittle_cloud::fleet::{Fleet, LaunchSettings};
use whittle_cloud::image::ClusterFacts;
use whittle_cloud::market::{Market, MarketSettings, Told as Prices};
use whittle_cluster::live::{About, Client, ClientOptions, about, ca_bundle, connect, watch as watch_cluster};
use whittle_cluster::write::{Election, Gate, LeaseTimes, Recorder, Writer};
use whittle_engine::Report;
use whittle_journal::{Journal, Limits};
use whittle_model::{Event, Timestamp};

use crate::brain::{Brain, Inbox, Outlets};
use crate::classes::Keeper;
use crate::hands::{self, Doors};
use crate::http;
use crate::metrics::Metrics;
use crate::orders::Order;
use crate::policies::Policies;
use crate::pools::{Pools, Views};
use crate::router::{Router, Routes};
use crate::settings::{Mode, Settings};
use crate::shelf::Shelf;
use crate::upkeep::Upkeep;
use crate::voice::{self, Voice};

/// A scrape does not wait for an engine that thinks longer than this.
const CENSUS_PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);
/// Events that wait for the engine: the first lists of a large cluster come faster than they are taken in.
const INBOX: usize = 8192;
const ORDERS: usize = 1024;
const QUEUE: usize = 256;
/// How soon the gate is seen to open.
const LOOK: std::time::Duration = std::time::Duration::from_millis(200);

/// What most of the parts share.
struct Shared {
    settings: Settings,
    client: Client,
    aws: Arc<Aws>,
    cluster: ClusterFacts,
    about: About,
    gate: Gate,
    shelf: Shelf,
    writer: Arc<Writer>,
    recorder: Recorder,
    metrics: Arc<Metrics>,
    fleet: Arc<Fleet>,
    classes: Arc<Classes>,
    inbox: mpsc::Sender<Inbox>,
}

/// Runs until told to stop.
///
/// # Errors
/// When something without which nothing can be done is missing, or the lease was lost.
pub async fn run(settings: Settings) -> anyhow::Result<()> {
    let metrics = Arc::new(Metrics::new());
    let metrics_port = http::open(settings.metrics_port, "metrics").await?;
    let health_port = http::open(settings.health_probe_port, "health").await?;
    let (synced, is_synced) = watch::channel(false);
    let (inbox, brain_inbox) = mpsc::channel::<Inbox>(INBOX);
    let details = !settings.disable_cluster_state_observability;
    tokio::spawn(http::serve(metrics_port, answer_metrics(&metrics, inbox.clone(), details)));
    tokio::spawn(http::serve(health_port, answer_health(is_synced)));

    let shared = connect_all(settings, metrics, inbox).await?;
    let (orders, hand_orders) = mpsc::channel(ORDERS);
    let (reports, voice_reports) = mpsc::channel(QUEUE);
    let (totals, pool_totals) = watch::channel(BTreeMap::new());
    let (overlays, overlay_verdicts) = watch::channel(BTreeMap::new());
    let (rooms, buffer_rooms) = watch::channel(BTreeMap::new());
    let outlets = Outlets { orders, reports, totals, overlays, rooms, metrics: Arc::clone(&shared.metrics) };
    let thinking = think(&shared, outlets, brain_inbox)?;
    shared.hands(hand_orders, voice_reports);
    let views = Views { totals: pool_totals, overlays: overlay_verdicts, rooms: buffer_rooms };
    let routes = shared.keepers(views, synced)?;
    shared.upkeep();

    let (seen, watched) = mpsc::channel(INBOX);
    tokio::spawn(Router::new(shared.shelf.clone(), routes).run(watched));
    let watching = tokio::spawn(watch_cluster(shared.client.clone(), shared.settings.watches(), seen));
    let mut stop = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let (stopping, stopped) = oneshot::channel::<()>();
    let standing =
        tokio::spawn(stand(shared.settings.clone(), shared.client.clone(), shared.gate.clone(), Arc::clone(&shared.writer), stopped));
    let ended = tokio::select! {
        _ = stop.recv() => Ok(()),
        _ = tokio::signal::ctrl_c() => Ok(()),
        ended = watching => ended.context("the watches ended")?.context("the watches ended"),
        lost = lead(&shared) => Err(lost),
    };
    tracing::info!("stopping");
    shared.gate.close();
    // Whoever waits for the lease need not wait for its end.
    let _ = stopping.send(());
    let _ = standing.await;
    let _ = shared.inbox.send(Inbox::Stop).await;
    let _ = tokio::task::spawn_blocking(move || thinking.join()).await;
    ended
}

async fn connect_all(settings: Settings, metrics: Arc<Metrics>, inbox: mpsc::Sender<Inbox>) -> anyhow::Result<Shared> {
    let options = ClientOptions { qps: settings.kube_client_qps, burst: settings.kube_client_burst, ..ClientOptions::default() };
    let client = connect(&options).await?;
    let about = about(&client).await?;
    let aws = Aws::connect().await?;
    let aws = Arc::new(if settings.mode == Mode::Observe { aws.only_reading() } else { aws });
    let account = aws.account().await.unwrap_or_else(|error| {
        tracing::warn!(error = %voice::chain(&error), "the account is not known; policies see none");
        String::new()
    });
    let cluster = cluster_facts(&settings, &about, &aws).await?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        kubernetes = about.version,
        region = aws.region,
        cluster = settings.cluster_name,
        mode = ?settings.mode,
        "starting"
    );
    for name in settings.without_effect() {
        tracing::warn!(setting = name, "this setting has no effect in this version");
    }
    let for_engine = settings.for_engine(about.minor, &account);
    inbox.send(Inbox::Event(Event::Settings(for_engine))).await.context("the engine's inbox is closed")?;
    let gate = Gate::new();
    let (recorder, recording) = Recorder::new(client.clone(), gate.clone(), "karpenter");
    tokio::spawn(recording);
    Ok(Shared {
        writer: Arc::new(Writer::new(client.clone(), gate.clone(), "whittle")),
        fleet: Arc::new(Fleet::new(Arc::clone(&aws), &settings.cluster_name)),
        classes: Arc::new(Classes::new(class_settings(&settings))),
        shelf: Shelf::default(),
        settings,
        client,
        aws,
        cluster,
        about,
        gate,
        recorder,
        metrics,
        inbox,
    })
}

/// Starts the engine's thread.
fn think(shared: &Shared, outlets: Outlets, inbox: mpsc::Receiver<Inbox>) -> anyhow::Result<std::thread::JoinHandle<()>> {
    let settings = &shared.settings;
    let (required, mode, journal) = (settings.required_policies.clone(), settings.mode, journal(settings)?);
    let runtime = tokio::runtime::Handle::current();
    let think = move || Brain::new(&required, mode, journal, outlets).run(&runtime, inbox);
    std::thread::Builder::new().name("engine".to_owned()).spawn(think).context("cannot start the engine's thread")
}

impl Shared {
    /// Starts what carries orders out and what speaks of it.
    fn hands(&self, orders: mpsc::Receiver<Order>, reports: mpsc::Receiver<Vec<Report>>) {
        let doors = Doors {
            writer: Arc::clone(&self.writer),
            gate: self.gate.clone(),
            recorder: self.recorder.clone(),
            fleet: Arc::clone(&self.fleet),
            shelf: self.shelf.clone(),
            inbox: self.inbox.clone(),
            metrics: Arc::clone(&self.metrics),
            launch: LaunchSettings { targeted_reservations: self.settings.feature_gates.on("ReservedCapacity", true) },
            ca_bundle: self.cluster.ca_bundle.clone(),
            ending: Mutex::default(),
        };
        tokio::spawn(hands::work(Arc::new(doors), orders));
        let voice = Voice {
            recorder: self.recorder.clone(),
            metrics: Arc::clone(&self.metrics),
            shelf: self.shelf.clone(),
            mode: self.settings.mode,
        };
        tokio::spawn(voice.run(reports));
    }

    /// Starts what keeps classes, pools and policies, and says where they are told of things.
    fn keepers(&self, views: Views, synced: watch::Sender<bool>) -> anyhow::Result<Routes> {
        let (to_classes, class_told) = mpsc::channel(QUEUE);
        let keeper = Keeper {
            aws: Arc::clone(&self.aws),
            classes: Arc::clone(&self.classes),
            market: Market::new(market_settings(&self.settings, &self.aws)),
            fleet: Arc::clone(&self.fleet),
            cluster: self.cluster.clone(),
            kubernetes: self.about.version.clone(),
            shelf: self.shelf.clone(),
            inbox: self.inbox.clone(),
            writer: Arc::clone(&self.writer),
            recorder: self.recorder.clone(),
            gate: self.gate.clone(),
            mode: self.settings.mode,
            prices: Prices::default(),
            kept: BTreeMap::new(),
            pools: BTreeMap::new(),
            refresh: Timestamp(0),
            leads: false,
        };
        tokio::spawn(keeper.run(class_told));
        let (to_policies, policy_told) = mpsc::channel(QUEUE);
        let (verdicts, judged) = mpsc::channel(QUEUE);
        let cache = Some(Path::new(&self.settings.cache_dir)).filter(|dir| !dir.as_os_str().is_empty());
        tokio::spawn(Policies::new(cache, self.inbox.clone(), verdicts)?.run(policy_told));
        let pools = Pools {
            writer: Arc::clone(&self.writer),
            shelf: self.shelf.clone(),
            metrics: Arc::clone(&self.metrics),
            gate: self.gate.clone(),
            required: self.settings.required_policies.clone(),
            ca_bundle: self.cluster.ca_bundle.clone(),
            policies: BTreeMap::new(),
        };
        tokio::spawn(pools.run(views, judged));
        Ok(Routes {
            inbox: self.inbox.clone(),
            classes: to_classes,
            policies: to_policies,
            synced,
            metrics: Arc::clone(&self.metrics),
            writer: Arc::clone(&self.writer),
        })
    }

    /// Starts what is asked of AWS again and again.
    fn upkeep(&self) {
        let upkeep = Upkeep {
            aws: Arc::clone(&self.aws),
            fleet: Arc::clone(&self.fleet),
            classes: Arc::clone(&self.classes),
            shelf: self.shelf.clone(),
            inbox: self.inbox.clone(),
            gate: self.gate.clone(),
            metrics: Arc::clone(&self.metrics),
            reservations: self.settings.feature_gates.on("ReservedCapacity", true),
        };
        upkeep.start(&self.settings.interruption_queue);
    }
}

/// Stands for election, where there is one and anything is written.
async fn stand(settings: Settings, client: Client, gate: Gate, writer: Arc<Writer>, stopped: oneshot::Receiver<()>) {
    if settings.mode == Mode::Observe {
        tracing::info!("mode Observe: plans are made and journaled, and nothing is written");
        return;
    }
    if settings.disable_leader_election {
        return gate.open();
    }
    let (namespace, name) = (settings.lease_namespace().to_owned(), settings.leader_election_name.clone());
    let host = host_name();
    let election = Election::new(client, gate, &namespace, &name, &host, LeaseTimes::default());
    election.run(async { drop(stopped.await) }, writer.settled()).await;
}

/// The name of the pod, by which a lease says who holds it.
fn host_name() -> String {
    let of_kernel = || std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned());
    of_kernel().or_else(|_| std::env::var("POD_NAME")).unwrap_or_else(|_| "whittle".to_owned())
}

/// Tells the engine when this replica acts. Ends when it no longer may: what it has in mind then is of no use, and a new
/// start reads everything anew.
async fn lead(shared: &Shared) -> anyhow::Error {
    let Shared { settings, gate, inbox, metrics, .. } = shared;
    while !gate.is_open() {
        tokio::time::sleep(LOOK).await;
    }
    metrics.leading.set(1);
    tracing::info!(lease = settings.leader_election_name, "this replica acts");
    // The brain ends only with the process.
    let _ = inbox.send(Inbox::Leading(true)).await;
    while gate.is_open() {
        tokio::time::sleep(LOOK).await;
    }
    metrics.leading.set(0);
    let _ = inbox.send(Inbox::Leading(false)).await;
    anyhow::anyhow!("the lease {} is lost; another replica acts", settings.leader_election_name)
}

fn journal(settings: &Settings) -> anyhow::Result<Option<Journal>> {
    if settings.journal_dir.is_empty() {
        return Ok(None);
    }
    let default = Limits::default();
    let limits = Limits { total_bytes: settings.journal_bytes, segment_bytes: default.segment_bytes.min(settings.journal_bytes / 4) };
    Ok(Some(Journal::open(settings.journal_dir.as_ref(), limits)?))
}

async fn cluster_facts(settings: &Settings, about: &About, aws: &Aws) -> anyhow::Result<ClusterFacts> {
    let eks = match aws.eks_cluster(&settings.cluster_name).await {
        Ok(eks) => eks,
        Err(error) if settings.cluster_endpoint.is_empty() => {
            return Err(error).context("the API server's address is not known; set CLUSTER_ENDPOINT, or allow eks:DescribeCluster");
        }
        Err(error) => {
            tracing::warn!(error = %voice::chain(&error), "EKS does not describe the cluster; nodes of AL2023 need its CIDR");
            Default::default()
        }
    };
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let ca_bundle = match some(&settings.cluster_ca_bundle) {
        Some(bundle) => Some(bundle),
        None => ca_bundle().await.or_else(|| some(&eks.ca_bundle)),
    };
    Ok(ClusterFacts {
        name: settings.cluster_name.clone(),
        endpoint: some(&settings.cluster_endpoint).unwrap_or(eks.endpoint),
        ca_bundle,
        dns_ip: about.dns_ip,
        service_cidr: some(&eks.service_cidr),
        region: aws.region.clone(),
    })
}

fn class_settings(settings: &Settings) -> ClassSettings {
    ClassSettings {
        cluster: settings.cluster_name.clone(),
        isolated_vpc: settings.isolated_vpc,
        disable_dry_run: settings.disable_dry_run || settings.mode == Mode::Observe,
        reserved_capacity: settings.feature_gates.on("ReservedCapacity", true),
        ami_refresh: settings.ami_refresh_interval,
        subnet_refresh: settings.subnet_refresh_interval,
    }
}

fn market_settings(settings: &Settings, aws: &Aws) -> MarketSettings {
    MarketSettings {
        region: aws.region.clone(),
        isolated_vpc: settings.isolated_vpc,
        vm_memory_overhead_ppm: settings.vm_memory_overhead_ppm(),
        reserved_enis: settings.reserved_enis,
    }
}

/// Metrics, and what the engine makes of the cluster if it has the time to say.
fn answer_metrics(metrics: &Arc<Metrics>, inbox: mpsc::Sender<Inbox>, details: bool) -> http::Answer {
    const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let metrics = Arc::clone(metrics);
    let census = move || {
        let (reply, answer) = std::sync::mpsc::sync_channel(1);
        inbox.try_send(Inbox::Census { details, reply }).ok()?;
        answer.recv_timeout(CENSUS_PATIENCE).ok()
    };
    Arc::new(move |path| (path == "/metrics").then(|| (StatusCode::OK, TEXT, census().unwrap_or_default() + &metrics.text())))
}

fn answer_health(synced: watch::Receiver<bool>) -> http::Answer {
    Arc::new(move |path| match path {
        "/healthz" => Some((StatusCode::OK, "text/plain", "ok".to_owned())),
        "/readyz" if *synced.borrow() => Some((StatusCode::OK, "text/plain", "ok".to_owned())),
        "/readyz" => Some((StatusCode::SERVICE_UNAVAILABLE, "text/plain", "the first lists are not in yet".to_owned())),
        _ => None,
    })
}

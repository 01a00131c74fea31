//! The first pass, and a window in which nothing changes.

use std::time::Duration;

use addons_tests::running::Running;
use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep};

use super::world::{ADDONS, World};
use super::{process, say};

/// How often the loop looks at everything in the window; it is longer than that.
const INTERVAL: &str = "60s";
/// Between two looks at the memory of the process, and at what is ready.
const SAMPLE: Duration = Duration::from_secs(1);
/// How long the first pass may take.
const LONGEST: Duration = Duration::from_secs(1800);

/// What was measured.
pub(crate) struct Figures {
    pub(crate) clusters: usize,
    pub(crate) window: Duration,
    /// Until everything was ready that is not in the slow cluster.
    pub(crate) others: Duration,
    /// Until everything was.
    pub(crate) all: Duration,
    /// Requests and writes to the other clusters in the first pass.
    pub(crate) first: (usize, usize),
    /// The same in the window.
    pub(crate) idle: (usize, usize),
    /// How many times a cluster was looked at in the window.
    pub(crate) passes: usize,
    /// Writes to the cluster of the records in the window, but those of the Lease.
    pub(crate) writes: usize,
    /// Resident bytes before the first record, the median in the window, and the peak.
    pub(crate) memory: [u64; 3],
    /// The processor's time in the window.
    pub(crate) cpu: Duration,
}

pub(crate) async fn measure(clusters: usize, window: Duration) -> Result<Figures> {
    let world = World::start(clusters).await?;
    world.stand().await?;
    let leader = Running::reconcile(&world.stage, &["--interval", INTERVAL])?;
    leader.says("leads").await?;
    let empty = process::memory(leader.process.id())?.0;
    say("the first pass …");
    let marks = marks(&world)?;
    let begun = Instant::now();
    world.record(0..clusters).await?;
    let (mut others, slow) = (None, ADDONS);
    let all = loop {
        let ready = world.ready().await?;
        if ready.1 == (clusters - 1) * ADDONS && others.is_none() {
            others = Some(begun.elapsed());
            say(&format!(
                "all but the slow cluster after {:?}",
                begun.elapsed()
            ));
        }
        if let (Some(_), true) = (others, ready.0 == slow) {
            break begun.elapsed();
        }
        ensure!(begun.elapsed() < LONGEST, "{ready:?} are ready");
        sleep(SAMPLE).await;
    };
    let first = requests(&world, &marks)?;
    // What an operation wrote is looked at once more.
    sleep(Duration::from_secs(60)).await;
    say(&format!("idle for {} s …", window.as_secs()));
    let idle = Idle::measure(&world, &leader, window).await?;
    Ok(Figures {
        clusters,
        window,
        others: others.unwrap_or(all),
        all,
        first: (first.0, first.1),
        idle: (idle.requests.0, idle.requests.1),
        passes: idle.requests.2,
        writes: idle.writes,
        memory: [empty, idle.memory, process::memory(leader.process.id())?.1],
        cpu: idle.cpu,
    })
}

/// A window in which nothing changes.
struct Idle {
    requests: (usize, usize, usize),
    writes: usize,
    memory: u64,
    cpu: Duration,
}

impl Idle {
    async fn measure(world: &World, leader: &Running, window: Duration) -> Result<Self> {
        let (marks, mark) = (marks(world)?, world.stage.cluster.audit().mark()?);
        let (begun, cpu) = (Instant::now(), process::cpu(leader.process.id())?);
        let mut memory = Vec::new();
        while begun.elapsed() < window {
            memory.push(process::memory(leader.process.id())?.0);
            sleep(SAMPLE).await;
        }
        memory.sort_unstable();
        let cpu = process::cpu(leader.process.id())?.saturating_sub(cpu);
        let here = world.stage.cluster.audit().since(mark)?;
        let here = here.by(&world.stage.namespace);
        let writes = here.0.iter().filter(|request| request.is_write());
        Ok(Self {
            requests: requests(world, &marks)?,
            writes: writes
                .filter(|request| request.object.resource != "leases")
                .count(),
            memory: memory.get(memory.len() / 2).copied().unwrap_or_default(),
            cpu,
        })
    }
}

type Marks = Vec<addons_tests::control_plane::audit::Mark>;

fn marks(world: &World) -> Result<Marks> {
    let servers = world.servers.iter();
    servers.map(|server| server.audit().mark()).collect()
}

/// Requests of the loop to the other clusters, the writes among them, and how many asked for the version.
fn requests(world: &World, marks: &Marks) -> Result<(usize, usize, usize)> {
    let mut count = (0, 0, 0);
    for (server, mark) in world.servers.iter().zip(marks) {
        let requests = server.audit().since(*mark)?;
        for request in requests.of("kubectl-addons") {
            count.0 += 1;
            count.1 += usize::from(request.is_write());
            count.2 += usize::from(request.uri.starts_with("/version"));
        }
    }
    Ok(count)
}

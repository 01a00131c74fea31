//! Rendering in a separate process: the text of a package uses the memory of that process, and not of the one that reconciles every other
//! installation. Commands of a person run the same functions in their own process (semantics 20.6).
//!
//! | what | where it runs | bound |
//! |---|---|---|
//! | templates, and the parsing of what a package renders to ([`objects::render_objects`]) | this program, with [`ARGUMENT`] | [`MEMORY`], no environment, no network that it would use |
//! | an index ([`location::parse_any`]) | the same | the same |
//! | charts | helm, which has a folder of its own as its home | [`MEMORY`]; no network to render |

use std::borrow::Cow;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use addons_helm::template::TIMEOUT;
use addons_render::kkp::StopFlag;
use addons_render::objects::{self, RenderRequest, RenderedObjects};
use addons_render::package::Package;
use addons_render::text::TextSection;
use addons_sources::child::{self, RunFailure, RunLimits, RunningProgram};
use addons_sources::location::{self, CatalogueError, LocatedCatalogue};
use common::entrance;
use common::values::mask::SecretMask;
use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::OperationError;
use crate::text::seconds;

/// The first argument of this program if it renders for another process: it reads the request from stdin, and writes the answer to stdout.
pub const ARGUMENT: &str = "__render";
/// The memory limit of one process, in bytes. On Linux it is a limit of the process (`RLIMIT_DATA`); other platforms do not limit it.
pub const MEMORY: u64 = 384 << 20;
/// The files of a package that are read before it is rendered.
const FILES: [&str; 6] = [
    "Chart.yaml",
    "Chart.lock",
    "requirements.yaml",
    "requirements.lock",
    "values.yaml",
    "values.schema.json",
];
/// The maximum size of one of these files, in bytes.
const MAX_FILE: usize = 2 << 20;
/// The maximum size of an answer, in bytes.
const MAX_ANSWER: usize = 64 << 20;
/// The maximum number of scalars, lists and maps in an answer.
const MAX_NODES: usize = 2_000_000;
/// How much of stderr is kept, in bytes.
const MAX_WORDS: usize = 4 << 10;
/// The beginning of the message with which a process ends that gets no more memory.
const NO_MEMORY: &str = "memory allocation of ";
/// How many processes render core add-ons at the same time, and how many render all others.
const SLOTS: (usize, usize) = (1, 2);

/// A job that a process does for another one.
#[derive(Serialize, Deserialize)]
enum Job<'a> {
    /// Render a package to objects.
    Objects(Cow<'a, RenderRequest>),
    /// Read an index, whose location is the name of the file.
    Index(TextSection),
}

/// The processes that render packages. Clones share the slots.
#[derive(Clone, Debug)]
pub struct Jail {
    program: PathBuf,
    slots: Arc<(Semaphore, Semaphore)>,
}

/// Why a rendering process gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    /// It cannot be started, limited or written to.
    #[error("no process with bounded memory can be started to render it")]
    Start(#[source] std::io::Error),
    /// It exceeded its time limit.
    #[error("it was not rendered after {}, and was stopped: does a loop, or an expression, go over long texts?", seconds(*bound))]
    TimedOut {
        /// The time limit.
        bound: Duration,
    },
    /// It exceeded its memory limit.
    #[error("it needs more than {} MiB of memory to be read and rendered: make it smaller", MEMORY >> 20)]
    Memory,
    /// The rendered objects exceed the limit of an answer.
    #[error(
        "it has more than {} MiB, or {MAX_NODES} scalars, lists and maps: make it smaller",
        MAX_ANSWER >> 20
    )]
    TooLarge,
    /// A file that is read before rendering is too large.
    #[error("{path} has more than {} MiB: make it smaller", MAX_FILE >> 20)]
    File {
        /// Its path.
        path: String,
    },
    /// It ended in another way.
    #[error("reading or rendering it ended by a bug of this program ({status}): report it")]
    Ended {
        /// Its exit status.
        status: ExitStatus,
    },
    /// Its answer cannot be parsed.
    #[error("reading or rendering it ended by a bug of this program: report it")]
    Answer(#[source] serde_json::Error),
}

impl Jail {
    /// Creates the jail. `program` is this program.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        let (core, others) = SLOTS;
        Self {
            program,
            slots: Arc::new((Semaphore::new(core), Semaphore::new(others))),
        }
    }

    /// Waits for a slot, which the caller holds while it renders. This limits the memory of all processes together, and other installations
    /// cannot keep core add-ons waiting.
    pub(crate) async fn acquire_slot(&self, is_core: bool) -> Option<SemaphorePermit<'_>> {
        let (core, others) = &*self.slots;
        let slots = if is_core { core } else { others };
        // The semaphore is never closed.
        slots.acquire().await.ok()
    }

    /// Runs [`objects::render_objects`] in a separate process.
    ///
    /// # Errors
    /// [`JailError`]; errors of the rendering as text.
    pub(crate) async fn render(
        &self,
        request: &RenderRequest,
        bound: Duration,
        mask: &SecretMask,
    ) -> Result<RenderedObjects, OperationError> {
        let job = Job::Objects(Cow::Borrowed(request));
        let output = self.run(&job, bound).await?;
        let answer = objects::from_bytes(&output).map_err(JailError::Answer)?;
        answer.map_err(|error| OperationError::Masked(mask.mask_text(&error)))
    }

    /// Runs [`location::parse_any`] in a separate process.
    ///
    /// # Errors
    /// [`JailError`]; [`CatalogueError::Elsewhere`].
    pub(crate) async fn parse_index(
        &self,
        bytes: Vec<u8>,
        location: String,
    ) -> Result<Vec<LocatedCatalogue>, OperationError> {
        let _slot = self.acquire_slot(false).await;
        let file = location;
        let job = Job::Index(TextSection { file, bytes });
        let output = self.run(&job, TIMEOUT).await?;
        let answer: Result<Vec<LocatedCatalogue>, String> =
            entrance::from_slice(&output).map_err(JailError::Answer)?;
        Ok(answer.map_err(CatalogueError::Elsewhere)?)
    }

    /// Does a job in a separate process and returns its answer.
    async fn run(&self, job: &Job<'_>, bound: Duration) -> Result<Vec<u8>, JailError> {
        let input = serde_json::to_vec(job).map_err(JailError::Answer)?;
        let mut command = Command::new(&self.program);
        command.arg(ARGUMENT);
        child::offline(&mut command);
        let mut running = RunningProgram::start(&mut command).map_err(JailError::Start)?;
        let limits = RunLimits {
            time: bound,
            stdout: MAX_ANSWER,
            stderr: MAX_WORDS,
            memory: Some(MEMORY),
        };
        let ended = running.finish(&input, limits).await;
        let ended = ended.map_err(|failure| match failure {
            RunFailure::Io(source) => JailError::Start(source),
            RunFailure::TimedOut => JailError::TimedOut { bound },
            RunFailure::TooMuch => JailError::TooLarge,
        })?;
        if !ended.status.success() {
            let words = String::from_utf8_lossy(&ended.stderr);
            let status = ended.status;
            return Err(match words.starts_with(NO_MEMORY) {
                true => JailError::Memory,
                false => JailError::Ended { status },
            });
        }
        match entrance::count_nodes(&ended.stdout, usize::MAX) > MAX_NODES {
            true => Err(JailError::TooLarge),
            false => Ok(ended.stdout),
        }
    }
}

/// Refuses a package with a file that would take much memory in this process: the metadata and values of a chart, and the values of
/// templates.
///
/// # Errors
/// [`JailError::File`].
pub(crate) fn check_files(package: &Package) -> Result<(), JailError> {
    let mut files = FILES.iter().filter_map(|path| package.get(path));
    let large = files.find(|file| file.bytes.len() > MAX_FILE);
    large.map_or(Ok(()), |file| {
        Err(JailError::File {
            path: file.path.clone(),
        })
    })
}

/// Does a job for another process.
///
/// # Errors
/// A pipe fails, or the request cannot be read.
pub fn serve(mut input: impl Read, mut output: impl Write) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let job: Job<'static> = entrance::from_slice(&bytes)?;
    drop(bytes);
    let answer = match job {
        Job::Objects(request) => {
            objects::to_bytes(&objects::render_objects(&request, &StopFlag::default()))?
        }
        Job::Index(TextSection { file, bytes }) => {
            let found = location::parse_any(&bytes, &file);
            serde_json::to_vec(&found.map_err(|error| OperationError::from(error).chain()))?
        }
    };
    output.write_all(&answer)
}

//! Rendering in a process of its own: what a package makes of its texts takes the memory of that process, and not of the one that
//! reconciles every other installation. For commands of a person the same functions run in their own process.
//!
//! | what | where it runs | bound |
//! |---|---|---|
//! | templates, and the parsing of what a package renders to ([`objects::render`]) | this program, with [`ARGUMENT`] | [`MEMORY`], no environment, no network that it would use |
//! | charts | helm, which has a folder of its own as its home | [`MEMORY`]; no network to render |

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use addons_sources::child::{self, Failure, Limits, Running};
use common::entrance;
use common::render::kkp::Stop;
use common::render::objects::{self, Objects, Request};
use common::values::mask::Mask;
use tokio::process::Command;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::elapsed::seconds;
use crate::error::OperationError;

/// The first argument of this program where it renders for another process: the request comes from stdin, and the answer goes to stdout.
pub const ARGUMENT: &str = "__render";
/// Memory of one process, in bytes. On Linux it is a limit of the process (`RLIMIT_DATA`); elsewhere nothing limits it.
pub const MEMORY: u64 = 384 << 20;
/// Bytes of an answer.
const MAX_ANSWER: usize = 64 << 20;
/// Scalars, lists and maps of an answer.
const MAX_NODES: usize = 2_000_000;
/// What is kept of the words of the process.
const MAX_WORDS: usize = 4 << 10;
/// How the words of a process begin that gets no more memory.
const NO_MEMORY: &str = "memory allocation of ";
/// Processes that render core add-ons at the same time, and those of all others.
const SLOTS: (usize, usize) = (1, 2);

/// Where packages are rendered; clones share its slots.
#[derive(Clone, Debug)]
pub struct Jail {
    program: PathBuf,
    slots: Arc<(Semaphore, Semaphore)>,
}

/// Why a process that renders gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    /// It cannot be started, limited, or talked to.
    #[error("no process can be started to render it")]
    Start(#[source] std::io::Error),
    /// Its bound.
    #[error("it was not rendered after {}, and was stopped: does a loop, or an expression, go over long texts?", seconds(*bound))]
    TimedOut {
        /// How long it had.
        bound: Duration,
    },
    /// It needs more memory than it gets.
    #[error("rendering it needs more than {} MiB of memory", MEMORY >> 20)]
    Memory,
    /// What it renders to.
    #[error(
        "it renders to more than {} MiB, or {MAX_NODES} scalars, lists and maps",
        MAX_ANSWER >> 20
    )]
    TooLarge,
    /// It ended in another way.
    #[error("rendering it ended by a bug of this program ({status}): report it")]
    Ended {
        /// How.
        status: ExitStatus,
    },
    /// Its answer.
    #[error("rendering it ended by a bug of this program: report it")]
    Answer(#[source] serde_json::Error),
}

impl Jail {
    /// `program`: this program.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        let (core, others) = SLOTS;
        Self {
            program,
            slots: Arc::new((Semaphore::new(core), Semaphore::new(others))),
        }
    }

    /// Held by whoever renders: memory is bounded as a whole by that, and no other installation keeps what is core waiting.
    pub(crate) async fn slot(&self, is_core: bool) -> Option<SemaphorePermit<'_>> {
        let (core, others) = &*self.slots;
        let slots = if is_core { core } else { others };
        // The semaphore is never closed.
        slots.acquire().await.ok()
    }

    /// [`objects::render`] in a process of its own.
    ///
    /// # Errors
    /// [`JailError`]; those of the rendering, as a text.
    pub(crate) async fn render(
        &self,
        request: &Request,
        bound: Duration,
        mask: &Mask,
    ) -> Result<Objects, OperationError> {
        let input = serde_json::to_vec(request).map_err(JailError::Answer)?;
        let mut command = Command::new(&self.program);
        command.arg(ARGUMENT);
        child::offline(&mut command);
        let mut running = Running::start(&mut command).map_err(JailError::Start)?;
        let limits = Limits {
            time: bound,
            output: MAX_ANSWER,
            words: MAX_WORDS,
            memory: Some(MEMORY),
        };
        let ended = running.end(&input, limits).await;
        let ended = ended.map_err(|failure| match failure {
            Failure::Io(source) => JailError::Start(source),
            Failure::TimedOut => JailError::TimedOut { bound },
            Failure::TooMuch => JailError::TooLarge,
        })?;
        if !ended.status.success() {
            let words = String::from_utf8_lossy(&ended.words);
            let status = ended.status;
            return Err(match words.starts_with(NO_MEMORY) {
                true => JailError::Memory.into(),
                false => JailError::Ended { status }.into(),
            });
        }
        if entrance::nodes(&ended.output, usize::MAX) > MAX_NODES {
            return Err(JailError::TooLarge.into());
        }
        let answer = objects::from_bytes(&ended.output).map_err(JailError::Answer)?;
        answer.map_err(|error| OperationError::Masked(mask.text(&error)))
    }
}

/// Renders for another process.
///
/// # Errors
/// Those of the pipes; a request that cannot be read.
pub fn serve(mut input: impl Read, mut output: impl Write) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let request: Request = entrance::from_slice(&bytes)?;
    drop(bytes);
    let result = objects::render(&request, &Stop::default());
    output.write_all(&objects::to_bytes(&result)?)
}

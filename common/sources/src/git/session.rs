//! The git protocol with one server: the commit of a ref, and the objects of a commit.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use gix::ObjectId;
use gix::odb::pack;
use gix::progress::Discard;
use gix::protocol::fetch::negotiate::{Action, Round, one_round};
use gix::protocol::fetch::{Arguments, Context, Negotiate, Options, Response, Shallow, Tags};
use gix::protocol::handshake::Ref;
use gix::protocol::ls_refs::RefPrefixes;
use gix::protocol::transport::client::blocking_io::Transport;
use gix::protocol::transport::client::blocking_io::http::Transport as OverHttp;
use gix::protocol::transport::{Protocol, Service};
use gix::protocol::{Handshake, LsRefsCommand};

use super::http::{Advertisement, Connection, Learned};
use super::remote::{Remote, Way};
use super::wanted::Wanted;
use super::wire::Wire;
use super::{MAX_OBJECT, MAX_RECEIVED, MAX_REFS, Problem, ssh};
use crate::credentials::Credentials;

/// The most branches and tags that are searched for a commit.
const MAX_TIPS: usize = 1000;

/// A connection after the handshake.
pub struct Session {
    wire: Arc<Wire>,
    transport: Option<Connected>,
    handshake: Handshake,
    with_credentials: bool,
}

enum Connected {
    Http(Box<OverHttp<Connection>>, Learned),
    Ssh(ssh::Session),
}

/// What a ref names.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// The commit.
    pub commit: ObjectId,
    /// The object to ask for: the commit, or its annotated tag.
    pub want: ObjectId,
}

impl Session {
    /// Connects to a remote. With a `known` advertisement the server is not asked for it.
    ///
    /// # Errors
    /// No connection, no repository, no access.
    pub fn open(
        wire: &Arc<Wire>,
        remote: &Remote,
        credentials: Option<&Credentials>,
        known: Option<Advertisement>,
        folder: &Path,
    ) -> Result<Self, Problem> {
        wire.allow(MAX_REFS);
        let connected = match &remote.way {
            Way::Http(url) => {
                let connection = Connection::new(Arc::clone(wire), credentials, known)?;
                let learned = connection.learned();
                let transport = OverHttp::new_http(connection, url.clone(), Protocol::V2, false);
                Connected::Http(Box::new(transport), learned)
            }
            Way::Ssh(ssh) => Connected::Ssh(ssh::connect(wire, ssh, credentials, folder)?),
            Way::Local(_) => {
                return Err(Problem::Remote {
                    why: "a folder is read, not asked",
                });
            }
        };
        let mut session = Self {
            wire: Arc::clone(wire),
            transport: Some(connected),
            handshake: Handshake::default(),
            with_credentials: credentials.is_some(),
        };
        let handshake = session.with(|transport, _| {
            let no_credentials = |_| Ok(None);
            gix::protocol::handshake(
                transport,
                Service::UploadPack,
                no_credentials,
                Vec::new(),
                &mut Discard,
            )
        })?;
        session.handshake = handshake;
        Ok(session)
    }

    /// The advertisement of the server, if it can be replayed: in protocol v2 it names no refs.
    pub fn advertisement(&self) -> Option<Advertisement> {
        let Some(Connected::Http(_, learned)) = &self.transport else {
            return None;
        };
        let learned = learned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let whole = self.handshake.server_protocol_version == Protocol::V2
            && !learned.is_cut
            && !learned.bytes.is_empty()
            && !learned.base.is_empty();
        whole.then_some(learned)
    }

    /// The commit that a branch, a tag or HEAD names now.
    ///
    /// # Errors
    /// The ref does not exist; the error lists names that do.
    pub fn find(&mut self, wanted: &Wanted) -> Result<Named, Problem> {
        let name = wanted.full_name();
        let refs = self.refs(&[&name])?;
        let found = refs
            .into_iter()
            .find(|found| found.unpack().0 == name.as_bytes());
        match found {
            Some(Ref::Unborn { .. }) => Err(Problem::Unborn),
            Some(
                Ref::Peeled {
                    tag: want, object, ..
                }
                | Ref::Symbolic {
                    tag: Some(want),
                    object,
                    ..
                },
            ) => Ok(Named {
                commit: object,
                want,
            }),
            Some(Ref::Direct { object, .. } | Ref::Symbolic { object, .. }) => Ok(Named {
                commit: object,
                want: object,
            }),
            None => {
                let prefix = wanted.parts().map(|(_, prefix, _)| prefix);
                let all = prefix.map(|prefix| self.refs(&[prefix])).transpose()?;
                let names = all.iter().flatten().filter_map(|found| {
                    let full = std::str::from_utf8(found.unpack().0).ok()?;
                    full.strip_prefix(prefix?)
                });
                let names: Vec<&str> = names.collect();
                Err(wanted.missing(&names))
            }
        }
    }

    /// The tips of all branches and tags.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn tips(&mut self) -> Result<Vec<ObjectId>, Problem> {
        let refs = self.refs(&["refs/heads/", "refs/tags/"])?;
        let wanted = refs.iter().filter(|found| {
            let name = found.unpack().0;
            name.starts_with(b"refs/heads/") || name.starts_with(b"refs/tags/")
        });
        let mut tips: Vec<ObjectId> = wanted
            .filter_map(|found| found.unpack().1.map(ToOwned::to_owned))
            .collect();
        tips.sort_unstable();
        tips.dedup();
        tips.truncate(MAX_TIPS);
        Ok(tips)
    }

    /// Receives commits, `depth` of each line, into `folder/objects`.
    ///
    /// # Errors
    /// Those of the connection; more bytes than [`MAX_RECEIVED`].
    pub fn receive(
        &mut self,
        wants: &[ObjectId],
        depth: NonZeroU32,
        folder: &Path,
    ) -> Result<(), Problem> {
        self.wire.allow(MAX_RECEIVED);
        let packs = folder.join("objects").join("pack");
        let wire = Arc::clone(&self.wire);
        std::fs::create_dir_all(&packs).map_err(|source| Problem::Folder { source })?;
        let shallow = Shallow::DepthAtRemote(depth);
        self.with(|mut transport, handshake| {
            let context = Context {
                handshake,
                transport: &mut transport,
                user_agent: agent(),
                trace_packetlines: false,
            };
            let options = Options {
                shallow_file: folder.join("shallow"),
                shallow: &shallow,
                tags: Tags::None,
                reject_shallow_remote: false,
            };
            let write = pack::bundle::write::Options {
                alloc_limit_bytes: Some(MAX_OBJECT),
                ..pack::bundle::write::Options::default()
            };
            let consume = |reader: &mut dyn std::io::BufRead,
                           progress: &mut dyn gix::DynNestedProgress,
                           stopped: &std::sync::atomic::AtomicBool| {
                pack::Bundle::write_to_directory(
                    reader,
                    Some(&packs),
                    progress,
                    stopped,
                    None::<gix::odb::Handle>,
                    gix::hash::Kind::Sha1,
                    write,
                )
                .map(|_| true)
            };
            let stopped = &wire.stopped;
            gix::protocol::fetch(
                &mut Wants(wants),
                consume,
                Discard,
                stopped,
                context,
                options,
            )
        })?;
        Ok(())
    }

    fn refs(&mut self, prefixes: &[&str]) -> Result<Vec<Ref>, Problem> {
        if let Some(refs) = &self.handshake.refs {
            return Ok(refs.clone());
        }
        self.with(|transport, handshake| {
            let mut all = RefPrefixes::new();
            all.extend(prefixes.iter().map(|prefix| (*prefix).into()));
            let command = LsRefsCommand::new(Some(all), &handshake.capabilities, agent());
            command.invoke_blocking(transport, &mut Discard, false)
        })
    }

    /// Runs `act` with the connection and finds the cause of its error.
    fn with<T>(
        &mut self,
        act: impl FnOnce(&mut dyn Transport, &mut Handshake) -> gix::Result<T>,
    ) -> Result<T, Problem> {
        let ended = match &mut self.transport {
            Some(Connected::Http(transport, _)) => act(transport.as_mut(), &mut self.handshake),
            Some(Connected::Ssh(session)) => act(session.transport.as_mut(), &mut self.handshake),
            None => {
                return Err(Problem::Connection {
                    source: "it has ended".into(),
                });
            }
        };
        ended.map_err(|source| self.why(source))
    }

    /// The cause of an error: our own, else the message of ssh, else the error of gix. The connection cannot be used any more.
    fn why(&mut self, source: gix::Error) -> Problem {
        if let Some(failure) = self.wire.failure() {
            return failure;
        }
        if source.is_resource_exhausted() {
            return Problem::LargeObject;
        }
        let said = match self.transport.take() {
            Some(Connected::Ssh(session)) => session.failure(&self.wire, self.with_credentials),
            _ => None,
        };
        said.unwrap_or(Problem::Protocol { source })
    }
}

/// The user agent.
fn agent() -> (&'static str, Option<String>) {
    let agent = concat!("git/kubectl-addons-", env!("CARGO_PKG_VERSION"));
    ("agent", Some(agent.into()))
}

/// Asks for objects and offers none.
struct Wants<'a>(&'a [ObjectId]);

impl Negotiate for Wants<'_> {
    fn mark_complete_and_common_ref(&mut self) -> gix::Result<Action> {
        Ok(Action::MustNegotiate {
            remote_ref_target_known: Vec::new(),
        })
    }

    fn add_wants(&mut self, arguments: &mut Arguments, _known: &[bool]) -> bool {
        for id in self.0 {
            arguments.want(id);
        }
        !self.0.is_empty()
    }

    fn one_round(
        &mut self,
        _state: &mut one_round::State,
        _arguments: &mut Arguments,
        _previous: Option<&Response>,
    ) -> gix::Result<(Round, bool)> {
        let round = Round {
            haves_sent: 0,
            in_vain: 0,
            haves_to_send: 0,
            previous_response_had_at_least_one_in_common: false,
        };
        Ok((round, true))
    }
}

//! Validates catalogue files without a cluster: finds all problems that `catalogue add` or an installation would find.

mod content;

use std::cmp::Ordering;

use addons_admission::rules::catalogue::requires::{self, Listed};
use addons_admission::validate;
use addons_admission::verdict::Problem;
use addons_admission::{Facts, Requester};
use addons_sources::location::{self, CatalogueDocument};
use addons_sources::url;
use common::api::catalogue::AddonCatalogue;
use common::api::names;
use common::catalogue::author::{Author, Typed};
use common::catalogue::{Catalogue, Origin};
use common::manifest::Place;
use futures::StreamExt as _;
use futures::stream;

use crate::context::Context;
use crate::distribution::md5;
use crate::error::OperationError;
use crate::fetch::AT_ONCE;

/// Which sources are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sources {
    /// Inline content, and files of this machine: no server is contacted.
    Local,
    /// All sources.
    All,
}

/// The result for a file.
#[derive(Debug)]
pub struct Judged {
    /// The file, as the user named it.
    pub location: String,
    /// The mistakes, in the order of the file.
    pub mistakes: Vec<Mistake>,
    /// What users should know although it is allowed.
    pub warnings: Vec<Mistake>,
    /// Its catalogues, as far as they can be read.
    pub objects: Vec<AddonCatalogue>,
}

/// A mistake in a catalogue file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The place; without a line if the whole file is meant.
    pub place: Place,
    /// The path of the field; may be empty.
    pub field: String,
    /// What is wrong.
    pub message: String,
}

/// Reads and validates catalogue files as `catalogue add` and the webhook would, each also against those before it.
pub async fn files(ctx: &Context, locations: &[Typed], sources: Sources) -> Vec<Judged> {
    let mut read = Vec::with_capacity(locations.len());
    for location in locations {
        read.push(File::read(ctx, location).await);
    }
    let parts: Vec<&AddonCatalogue> = read.iter().flat_map(File::objects).collect();
    let listed = Listed::of(parts.iter().copied());
    let mut judge = Judge {
        ctx,
        sources,
        listed: &listed,
        facts: Facts::default(),
    };
    let mut judged = Vec::with_capacity(read.len());
    for file in &read {
        judged.push(judge.file(file).await);
    }
    judged
}

/// A file that was read.
struct File {
    location: Typed,
    parts: Vec<CatalogueDocument>,
    mistakes: Vec<Mistake>,
}

impl File {
    async fn read(ctx: &Context, location: &Typed) -> Self {
        let mut file = Self {
            location: location.clone(),
            parts: Vec::new(),
            mistakes: Vec::new(),
        };
        let fetched = async {
            let absolute = url::absolute(location)?;
            let reach = ctx.typed(location);
            let fetched = url::fetch(&absolute, &ctx.access(&reach)).await?;
            Ok::<_, url::UrlError>((absolute, fetched))
        };
        match fetched.await {
            Ok((absolute, fetched)) => {
                let found = location::read_all(&fetched.bytes, &absolute);
                let mistakes = found.mistakes.into_iter();
                file.mistakes = mistakes
                    .map(|it| file.mistake((it.line, it.column), String::new(), it.message))
                    .collect();
                file.parts = found.documents;
            }
            Err(error) => {
                let message = content::of_url(&error);
                let message = message.unwrap_or_else(|| OperationError::from(error).chain());
                file.mistakes = vec![file.mistake((0, 0), String::new(), message)];
            }
        }
        for part in &mut file.parts {
            let warnings = md5::take_out(ctx.settings().rules, &mut part.located);
            part.located.warnings.extend(warnings);
        }
        file
    }

    fn objects(&self) -> impl Iterator<Item = &AddonCatalogue> {
        self.parts.iter().map(|part| &part.located.object)
    }

    fn mistake(&self, at: (usize, usize), field: String, message: String) -> Mistake {
        let place = Place {
            file: self.location.to_string(),
            line: at.0,
            column: at.1,
        };
        Mistake {
            place,
            field,
            message,
        }
    }
}

/// The inputs for validating files.
struct Judge<'a> {
    ctx: &'a Context,
    sources: Sources,
    listed: &'a Listed<'a>,
    facts: Facts,
}

impl Judge<'_> {
    async fn file(&mut self, file: &File) -> Judged {
        let mut judged = Judged {
            location: file.location.to_string(),
            mistakes: file.mistakes.clone(),
            warnings: Vec::new(),
            objects: file.objects().cloned().collect(),
        };
        for part in &file.parts {
            let mut object = part.located.object.clone();
            object.metadata.namespace = Some(self.facts.settings.system_namespace.clone());
            self.rules(file, part, &object, &mut judged);
            self.content(file, part, &object, &mut judged).await;
            self.facts.replace(object);
        }
        judged.mistakes.sort_by(in_order);
        judged
    }

    /// Checks the rules for the text of a catalogue.
    fn rules(
        &self,
        file: &File,
        part: &CatalogueDocument,
        object: &AddonCatalogue,
        judged: &mut Judged,
    ) {
        // The cluster decides whether the user may write core catalogues.
        let requester = Requester {
            groups: vec![names::CORE_GROUP.to_owned()],
            ..Requester::default()
        };
        let verdict = validate::catalogue(object, None, &requester, &self.facts);
        let mut found = verdict.problems;
        found.extend(requires::dangling(object, self.listed));
        found.retain(|problem| !part.unread.has(&problem.field));
        for problem in &mut found {
            problem.field = part.source_field(&problem.field);
        }
        // Of two messages about one field, that of a rule is more specific than that of the schema.
        let is_new = |one: &&Problem| found.iter().all(|other| other.field != one.field);
        let of_schema: Vec<Problem> = part.problems.iter().filter(is_new).cloned().collect();
        let problems = of_schema.into_iter().chain(found);
        judged.mistakes.extend(problems.map(|problem| {
            let at = part.position(&problem.field);
            file.mistake(at, problem.field, problem.message)
        }));
        let warnings = part.located.warnings.iter().chain(&verdict.warnings);
        judged.warnings.extend(warnings.map(|warning| {
            match warning
                .split_once(": ")
                .filter(|(field, _)| field.starts_with("spec."))
            {
                Some((field, message)) => {
                    let field = part.source_field(field);
                    file.mistake(part.position(&field), field, message.to_owned())
                }
                None => file.mistake((0, 0), String::new(), warning.clone()),
            }
        }));
    }

    /// Checks the content that the entries refer to.
    async fn content(
        &self,
        file: &File,
        part: &CatalogueDocument,
        object: &AddonCatalogue,
        judged: &mut Judged,
    ) {
        let origin = Origin::Index {
            location: part.located.location.clone(),
        };
        let mut entries = Catalogue::of_spec(&object.spec, origin).entries;
        for entry in &mut entries {
            entry.author = Author::Typed(file.location.clone());
        }
        let entries = entries
            .iter()
            .filter(|entry| !part.unread.has(&entry.place));
        let reading = stream::iter(entries).map(|entry| async move {
            let flaws = content::flaws(self.ctx, entry, self.sources).await;
            (entry.place.as_str(), flaws)
        });
        let mut reading = reading.buffered(AT_ONCE);
        while let Some((place, flaws)) = reading.next().await {
            for flaw in flaws {
                let field = part.source_field(&format!("{place}.{}", flaw.field));
                let inside = flaw.inside.map(|(line, column)| {
                    let at = part.position_in_text(&field, line, column);
                    at.ok_or_else(|| format!("line {line}, column {column} of the text: "))
                });
                let (at, before) = match inside {
                    Some(Ok(at)) => (at, String::new()),
                    Some(Err(before)) => (part.position(&field), before),
                    None => (part.position(&field), String::new()),
                };
                let mistake = file.mistake(at, field, format!("{before}{}", flaw.message));
                match flaw.is_warning {
                    true => judged.warnings.push(mistake),
                    false => judged.mistakes.push(mistake),
                }
            }
        }
    }
}

/// Compares by line and column.
fn in_order(one: &Mistake, other: &Mistake) -> Ordering {
    let key = |it: &Mistake| (it.place.line, it.place.column);
    key(one).cmp(&key(other))
}

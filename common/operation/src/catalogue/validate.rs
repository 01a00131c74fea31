//! Validates catalogue files without a cluster: finds all problems that `catalogue add` or an installation would find.

mod content;

use std::cmp::Ordering;

use addons_admission::rules::catalogue::requires::{self, ListedVersions};
use addons_admission::validate;
use addons_admission::verdict::AdmissionProblem;
use addons_admission::{AdmissionFacts, Requester};
use addons_sources::location::{self, CatalogueDocument};
use addons_sources::url;
use common::api::catalogue::AddonCatalogue;
use common::api::names;
use common::catalogue::author::{Author, Typed};
use common::catalogue::{Catalogue, Origin};
use common::manifest::FilePosition;
use futures::StreamExt as _;
use futures::stream;

use super::file::md5;
use crate::context::Context;
use crate::error::OperationError;
use crate::fetch::AT_ONCE;

/// Which sources are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceScope {
    /// Inline content, and files of this machine: no server is contacted.
    Local,
    /// All sources.
    All,
}

/// The result for a file.
#[derive(Debug)]
pub struct ValidatedFile {
    /// The file, as the user named it.
    pub location: String,
    /// The mistakes, in the order of the file.
    pub mistakes: Vec<CatalogueMistake>,
    /// What users should know although it is allowed.
    pub warnings: Vec<CatalogueMistake>,
    /// Its catalogues, as far as they can be read.
    pub objects: Vec<AddonCatalogue>,
}

/// A mistake in a catalogue file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueMistake {
    /// The place; without a line if the whole file is meant.
    pub place: FilePosition,
    /// The path of the field; may be empty.
    pub field: String,
    /// What is wrong.
    pub message: String,
}

/// Reads and validates catalogue files as `catalogue add` and the webhook would, each also against those before it.
pub async fn validate_files(
    ctx: &Context,
    locations: &[Typed],
    sources: SourceScope,
) -> Vec<ValidatedFile> {
    let mut read = Vec::with_capacity(locations.len());
    for location in locations {
        read.push(ReadCatalogueFile::read(ctx, location).await);
    }
    let parts: Vec<&AddonCatalogue> = read.iter().flat_map(ReadCatalogueFile::objects).collect();
    let listed = ListedVersions::from_catalogues(parts.iter().copied());
    let mut judge = FileValidator {
        ctx,
        sources,
        listed: &listed,
        facts: AdmissionFacts::default(),
    };
    let mut judged = Vec::with_capacity(read.len());
    for file in &read {
        judged.push(judge.validate_file(file).await);
    }
    judged
}

/// A file that was read.
struct ReadCatalogueFile {
    location: Typed,
    parts: Vec<CatalogueDocument>,
    mistakes: Vec<CatalogueMistake>,
}

impl ReadCatalogueFile {
    async fn read(ctx: &Context, location: &Typed) -> Self {
        let mut file = Self {
            location: location.clone(),
            parts: Vec::new(),
            mistakes: Vec::new(),
        };
        let fetched = async {
            let absolute = url::absolute(location)?;
            let reach = ctx.reach_of_typed(location);
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
                let message = content::missing_file_message(&error);
                let message = message.unwrap_or_else(|| OperationError::from(error).chain());
                file.mistakes = vec![file.mistake((0, 0), String::new(), message)];
            }
        }
        for part in &mut file.parts {
            let warnings = md5::remove_hashes(ctx.settings().rules, &mut part.located);
            part.located.warnings.extend(warnings);
        }
        file
    }

    fn objects(&self) -> impl Iterator<Item = &AddonCatalogue> {
        self.parts.iter().map(|part| &part.located.object)
    }

    fn mistake(&self, at: (usize, usize), field: String, message: String) -> CatalogueMistake {
        let place = FilePosition {
            file: self.location.to_string(),
            line: at.0,
            column: at.1,
        };
        CatalogueMistake {
            place,
            field,
            message,
        }
    }
}

/// The inputs for validating files.
struct FileValidator<'a> {
    ctx: &'a Context,
    sources: SourceScope,
    listed: &'a ListedVersions<'a>,
    facts: AdmissionFacts,
}

impl FileValidator<'_> {
    async fn validate_file(&mut self, file: &ReadCatalogueFile) -> ValidatedFile {
        let mut judged = ValidatedFile {
            location: file.location.to_string(),
            mistakes: file.mistakes.clone(),
            warnings: Vec::new(),
            objects: file.objects().cloned().collect(),
        };
        for part in &file.parts {
            let mut object = part.located.object.clone();
            object.metadata.namespace = Some(self.facts.settings.system_namespace.clone());
            self.check_rules(file, part, &object, &mut judged);
            self.check_content(file, part, &object, &mut judged).await;
            self.facts.replace_catalogue(object);
        }
        judged.mistakes.sort_by(by_position);
        judged
    }

    /// Checks the rules for the text of a catalogue.
    fn check_rules(
        &self,
        file: &ReadCatalogueFile,
        part: &CatalogueDocument,
        object: &AddonCatalogue,
        judged: &mut ValidatedFile,
    ) {
        // The cluster decides whether the user may write core catalogues.
        let requester = Requester {
            groups: vec![names::CORE_GROUP.to_owned()],
            ..Requester::default()
        };
        let verdict = validate::validate_catalogue(object, None, &requester, &self.facts);
        let mut found = verdict.problems;
        found.extend(requires::find_unmet(object, self.listed));
        found.retain(|problem| !part.unread.has(&problem.field));
        for problem in &mut found {
            problem.field = part.source_field(&problem.field);
        }
        // Of two messages about one field, that of a rule is more specific than that of the schema.
        let is_new = |one: &&AdmissionProblem| found.iter().all(|other| other.field != one.field);
        let of_schema: Vec<AdmissionProblem> =
            part.problems.iter().filter(is_new).cloned().collect();
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
    async fn check_content(
        &self,
        file: &ReadCatalogueFile,
        part: &CatalogueDocument,
        object: &AddonCatalogue,
        judged: &mut ValidatedFile,
    ) {
        let origin = Origin::Index {
            location: part.located.location.clone(),
        };
        let mut entries = Catalogue::from_spec(&object.spec, origin).entries;
        for entry in &mut entries {
            entry.author = Author::Typed(file.location.clone());
        }
        let entries = entries
            .iter()
            .filter(|entry| !part.unread.has(&entry.place));
        let reading = stream::iter(entries).map(|entry| async move {
            let flaws = content::find_flaws(self.ctx, entry, self.sources).await;
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
fn by_position(one: &CatalogueMistake, other: &CatalogueMistake) -> Ordering {
    let key = |it: &CatalogueMistake| (it.place.line, it.place.column);
    key(one).cmp(&key(other))
}

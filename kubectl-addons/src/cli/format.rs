//! `-o` and `--no-headers`.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::error::ErrorKind;

use crate::output::template::OutputTemplate;

/// Output formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputFormat {
    /// columns
    #[default]
    Table,
    /// more columns
    Wide,
    /// kind/name, one per line
    Name,
    /// for programs; several results are one object with `items`
    Value(ValueFormat),
}

/// Formats for programs. They print the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueFormat {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// YAML with braces, as of kubectl.
    Kyaml,
    /// JSON through a template. The template lives as long as the program, because it is an argument.
    Template(&'static OutputTemplate),
}

/// The names of the formats, and what they print.
const FORMATS: [(&str, &str); 8] = [
    ("table", "columns"),
    ("wide", "more columns"),
    ("json", "JSON; several results are one object with `items`"),
    ("yaml", "the same as YAML"),
    ("kyaml", "the same as KYAML, with braces and quotes"),
    ("name", "kind/name, one per line"),
    (
        JSON_PATH,
        "what a template of kubectl finds in the JSON, e.g. jsonpath={.items[*].name}",
    ),
    (
        COLUMNS,
        "columns of the JSON, as of kubectl, e.g. custom-columns=NAME:.name,PHASE:.phase",
    ),
];
/// The pages that some commands can print.
const HTML: PageFormat = ("html", "a page for a browser", PagedFormat::Html);
const MARKDOWN: PageFormat = (
    "markdown",
    "text for a pull request or an issue",
    PagedFormat::Markdown,
);
const JSON_PATH: &str = "jsonpath=";
const COLUMNS: &str = "custom-columns=";

/// The name of a page, its description and its format.
type PageFormat = (&'static str, &'static str, PagedFormat);

/// `-o`.
#[derive(Args, Debug, Default, Clone, Copy)]
pub struct Output {
    /// Output format
    #[arg(short = 'o', long = "output", value_parser = FormatParser, default_value = "table")]
    pub format: OutputFormat,
}

/// `-o` of a command that prints a table.
#[derive(Args, Debug, Default, Clone, Copy)]
pub struct Listing {
    /// Output format
    #[arg(short = 'o', long = "output", value_parser = FormatParser, default_value = "table")]
    pub format: OutputFormat,
    /// Print tables without the header line
    #[arg(long)]
    pub no_headers: bool,
}

/// `-o` of a command that can print a page as well.
#[derive(Args, Debug, Default, Clone, Copy)]
pub struct PagedOutput {
    /// Output format
    #[arg(short = 'o', long = "output", value_parser = PagedParser(&[HTML]), default_value = "table")]
    pub format: PagedFormat,
    /// Print tables without the header line
    #[arg(long)]
    pub no_headers: bool,
}

/// `-o` of a command that prints a report: for a terminal, for programs, or to hand it on.
#[derive(Args, Debug, Default, Clone, Copy)]
pub struct ReportOutput {
    /// Output format
    #[arg(short = 'o', long = "output", value_parser = PagedParser(&[HTML, MARKDOWN]), default_value = "table")]
    pub format: PagedFormat,
    /// Print tables without the header line
    #[arg(long)]
    pub no_headers: bool,
}

/// `-o` of a command that compares: it has no header line.
#[derive(Args, Debug, Default, Clone, Copy)]
pub struct ComparisonOutput {
    /// Output format
    #[arg(short = 'o', long = "output", value_parser = PagedParser(&[HTML, MARKDOWN]), default_value = "table")]
    pub format: PagedFormat,
}

/// A format, or a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagedFormat {
    /// One HTML page.
    Html,
    /// Markdown, as GitHub and GitLab read it.
    Markdown,
    /// A format that other commands print, too.
    Plain(OutputFormat),
}

impl Default for PagedFormat {
    fn default() -> Self {
        Self::Plain(OutputFormat::default())
    }
}

impl PagedOutput {
    /// Returns the format and the headers flag. `None` for a page.
    pub fn listing(self) -> Option<Listing> {
        let Self { format, no_headers } = self;
        match format {
            PagedFormat::Html | PagedFormat::Markdown => None,
            PagedFormat::Plain(format) => Some(Listing { format, no_headers }),
        }
    }
}

impl From<ValueFormat> for Listing {
    fn from(format: ValueFormat) -> Self {
        OutputFormat::Value(format).into()
    }
}

impl From<OutputFormat> for Listing {
    fn from(format: OutputFormat) -> Self {
        Self {
            format,
            no_headers: false,
        }
    }
}

/// Parses a format: a name, or a name with a template after it.
#[derive(Clone, Copy, Debug)]
pub struct FormatParser;

impl TypedValueParser for FormatParser {
    type Value = OutputFormat;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<OutputFormat, clap::Error> {
        let typed = StringValueParser::new().parse_ref(command, arg, value)?;
        let template = match (typed.strip_prefix(JSON_PATH), typed.strip_prefix(COLUMNS)) {
            (Some(text), _) => Some(OutputTemplate::json_path(text)),
            (_, Some(text)) => Some(OutputTemplate::columns(text)),
            (None, None) => None,
        };
        match template {
            Some(Ok(template)) => {
                let template = ValueFormat::Template(Box::leak(Box::new(template)));
                return Ok(OutputFormat::Value(template));
            }
            Some(Err(why)) => {
                let text = format!("-o {typed}: {why}\n");
                return Err(clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command));
            }
            None => {}
        }
        let named = PossibleValuesParser::new(values()).parse_ref(command, arg, value)?;
        Ok(match named.as_str() {
            "wide" => OutputFormat::Wide,
            "json" => OutputFormat::Value(ValueFormat::Json),
            "yaml" => OutputFormat::Value(ValueFormat::Yaml),
            "kyaml" => OutputFormat::Value(ValueFormat::Kyaml),
            "name" => OutputFormat::Name,
            _ => OutputFormat::Table,
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(values()))
    }
}

/// Parses a format, or one of these pages.
#[derive(Clone, Copy, Debug)]
pub struct PagedParser(&'static [PageFormat]);

impl TypedValueParser for PagedParser {
    type Value = PagedFormat;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<PagedFormat, clap::Error> {
        let has_template = value
            .to_str()
            .is_some_and(|typed| typed.starts_with(JSON_PATH) || typed.starts_with(COLUMNS));
        if !has_template {
            let named = PossibleValuesParser::new(self.all()).parse_ref(command, arg, value)?;
            let mut pages = self.0.iter();
            if let Some((_, _, page)) = pages.find(|(name, ..)| *name == named) {
                return Ok(*page);
            }
        }
        let format = FormatParser.parse_ref(command, arg, value)?;
        Ok(PagedFormat::Plain(format))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.all()))
    }
}

impl PagedParser {
    fn all(self) -> impl Iterator<Item = PossibleValue> {
        let pages = self.0.iter();
        values().chain(pages.map(|(name, help, _)| PossibleValue::new(*name).help(*help)))
    }
}

fn values() -> impl Iterator<Item = PossibleValue> {
    let values = FORMATS.into_iter();
    values.map(|(name, help)| PossibleValue::new(name).help(help))
}

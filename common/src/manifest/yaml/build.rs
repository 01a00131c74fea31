//! Builds JSON values from the parser's events, in one pass, without recursion, with limits.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StructureStyle, Tag};
use serde_json::Value;

use super::error::{YamlError, YamlProblem};
use super::indent::IndentedText;
use super::map::{MapKey, OpenMap, YamlPosition};
use super::scalar::{ScalarTag, resolve, value_to_key};
use super::section::{SectionError, YamlBudget};
use super::text::is_line_separator;
use crate::entrance;

use super::{DuplicateKeys, MAX_COPIED, MAX_DEPTH, MAX_NODES, YamlDocument, YamlOptions};

/// Builds documents one after the other. `'t` is the lifetime of the section's text.
pub(super) struct DocumentBuilder<'t, 'o> {
    indented: &'t IndentedText<'t>,
    text: &'t str,
    /// Line of the section in the stream.
    line: usize,
    is_json: bool,
    has_line_separators: bool,
    has_tab_after_dash: bool,
    options: &'o YamlOptions,
    budget: &'o mut YamlBudget,
    /// The open lists and maps, outermost first.
    frames: Vec<Frame<'t>>,
    anchors: HashMap<usize, AnchoredValue>,
    root: Option<(Value, usize)>,
    item_lines: Vec<usize>,
}

/// An open list or map.
struct Frame<'t> {
    content: FrameContent<'t>,
    /// The anchor's number; 0 if there is none.
    anchor: usize,
    /// Nodes and bytes counted before it.
    before: (usize, usize),
    /// Line of its first character in the stream.
    line: usize,
}

enum FrameContent<'t> {
    /// The elements, and whether each follows a dash.
    List(Vec<Value>, bool),
    Map(OpenMap<'t>),
}

struct AnchoredValue {
    value: Value,
    nodes: usize,
    bytes: usize,
}

impl<'t, 'o> DocumentBuilder<'t, 'o> {
    pub(super) fn new(
        indented: &'t IndentedText<'t>,
        line: usize,
        options: &'o YamlOptions,
        budget: &'o mut YamlBudget,
    ) -> Self {
        let text = indented.text();
        Self {
            indented,
            text,
            line,
            is_json: text.trim_start().starts_with(['{', '[']),
            has_line_separators: !text.is_ascii() && text.contains(is_line_separator),
            has_tab_after_dash: text.contains("-\t"),
            options,
            budget,
            frames: Vec::new(),
            anchors: HashMap::new(),
            root: None,
            item_lines: Vec::new(),
        }
    }

    pub(super) fn build_documents(mut self) -> Result<Vec<YamlDocument>, SectionError> {
        let mut options = granit_parser::Options::default();
        options.set_emit_comments(false);
        let mut parser = Parser::new_from_str_with_options(self.text, options);
        let mut documents = Vec::new();
        while let Some(event) = parser.next_event() {
            match event {
                Ok((Event::DocumentEnd, _)) => documents.push(self.take_document()),
                Ok((event, span)) => self.handle_event(event, &span)?,
                Err(error) => {
                    let mistake = self.scan_error(&error);
                    return Err(match error.kind() {
                        ErrorKind::InvalidQuotedScalarIndent => {
                            SectionError::UnderIndented(*error.marker(), mistake)
                        }
                        _ => SectionError::Mistake(mistake),
                    });
                }
            }
        }
        if documents.is_empty() {
            documents.push(self.take_document());
        }
        Ok(documents)
    }

    fn handle_event(&mut self, event: Event<'t>, span: &Span) -> Result<(), YamlError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.handle_scalar(text, style, anchor, tag.as_deref(), span)
            }
            Event::SequenceStart(style, anchor, _) => {
                let is_block = style == StructureStyle::Block;
                self.open(FrameContent::List(Vec::new(), is_block), anchor, span)
            }
            Event::MappingStart(_, anchor, _) => {
                self.open(FrameContent::Map(OpenMap::default()), anchor, span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            Event::Alias(anchor) => self.handle_alias(anchor, span),
            _ => Ok(()),
        }
    }

    fn handle_scalar(
        &mut self,
        text: Cow<'t, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        span: &Span,
    ) -> Result<(), YamlError> {
        self.count_nodes(1, text.len(), span)?;
        self.check_spelling(style, span)?;
        let is_merge = style == ScalarStyle::Plain && text == "<<" && tag.is_none();
        let scalar_tag = match tag {
            Some(tag) => Some(scalar_tag(tag)),
            None if style == ScalarStyle::Plain => None,
            None => Some(ScalarTag::Text),
        };
        let length = text.len();
        let scalar = resolve(text, scalar_tag).map_err(|problem| self.error_at(span, problem))?;
        if anchor != 0 {
            let value = scalar
                .clone()
                .into_value(self.options.floats)
                .map_err(|problem| self.error_at(span, problem))?;
            self.store_anchor(anchor, &value, 1, length, span)?;
        }
        if self.awaits_key() {
            let position = self.position(span);
            let key = if is_merge {
                MapKey::Merge(position)
            } else {
                let key = scalar
                    .into_key()
                    .map_err(|problem| self.error_at(span, problem))?;
                MapKey::Text(key, position)
            };
            return self.set_key(key, span);
        }
        self.begin_value(span)?;
        let value = scalar
            .into_value(self.options.floats)
            .map_err(|problem| self.error_at(span, problem))?;
        self.add_value(value, self.position(span).line)
    }

    fn open(
        &mut self,
        content: FrameContent<'t>,
        anchor: usize,
        span: &Span,
    ) -> Result<(), YamlError> {
        let before = (self.budget.nodes, self.budget.bytes);
        self.count_nodes(1, 0, span)?;
        if self.awaits_key() {
            return Err(self.error_at(span, YamlProblem::KeyNotText));
        }
        if self.frames.len() >= MAX_DEPTH {
            return Err(self.error_at(span, YamlProblem::TooDeep));
        }
        self.begin_value(span)?;
        let line = self.position(span).line;
        self.frames.push(Frame {
            content,
            anchor,
            before,
            line,
        });
        Ok(())
    }

    fn close(&mut self, span: &Span) -> Result<(), YamlError> {
        let Some(frame) = self.frames.pop() else {
            return Ok(());
        };
        let value = match frame.content {
            FrameContent::List(items, _) => Value::Array(items),
            FrameContent::Map(open) => Value::Object(open.map),
        };
        if frame.anchor != 0 {
            let nodes = self.budget.nodes.saturating_sub(frame.before.0);
            let bytes = self.budget.bytes.saturating_sub(frame.before.1);
            self.store_anchor(frame.anchor, &value, nodes, bytes, span)?;
        }
        self.add_value(value, frame.line)
    }

    fn handle_alias(&mut self, anchor: usize, span: &Span) -> Result<(), YamlError> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err(self.error_at(span, YamlProblem::RecursiveAlias));
        };
        let (nodes, bytes) = (anchored.nodes, anchored.bytes);
        self.charge_copy(nodes, bytes, span)?;
        self.count_nodes(nodes, bytes, span)?;
        let value = match self.anchors.get(&anchor) {
            Some(anchored) if self.awaits_key() => {
                let key = value_to_key(&anchored.value)
                    .map_err(|problem| self.error_at(span, problem))?;
                let position = self.position(span);
                return self.set_key(MapKey::Text(Cow::Owned(key), position), span);
            }
            Some(anchored) => anchored.value.clone(),
            None => Value::Null,
        };
        self.begin_value(span)?;
        self.add_value(value, self.position(span).line)
    }

    /// Stores a copy of an anchored value.
    fn store_anchor(
        &mut self,
        anchor: usize,
        value: &Value,
        nodes: usize,
        bytes: usize,
        span: &Span,
    ) -> Result<(), YamlError> {
        self.charge_copy(nodes, bytes, span)?;
        let value = value.clone();
        self.anchors.insert(
            anchor,
            AnchoredValue {
                value,
                nodes,
                bytes,
            },
        );
        Ok(())
    }

    /// Adds a complete value to its parent.
    fn add_value(&mut self, value: Value, line: usize) -> Result<(), YamlError> {
        let strict = self.options.duplicate_keys == DuplicateKeys::Error;
        match self.frames.last_mut().map(|frame| &mut frame.content) {
            None => self.root = Some((value, line)),
            Some(FrameContent::List(items, _)) => items.push(value),
            Some(FrameContent::Map(open)) => match open.key.take() {
                Some(MapKey::Text(key, position)) => open.insert(key, position, value, strict)?,
                Some(MapKey::Merge(position)) => open.merge(value, position, strict)?,
                None => {}
            },
        }
        Ok(())
    }

    fn awaits_key(&self) -> bool {
        matches!(
            self.frames.last().map(|frame| &frame.content),
            Some(FrameContent::Map(OpenMap { key: None, .. }))
        )
    }

    fn set_key(&mut self, key: MapKey<'t>, span: &Span) -> Result<(), YamlError> {
        if matches!(&key, MapKey::Text(text, _) if entrance::is_reserved(text)) {
            return Err(self.error_at(span, YamlProblem::ReservedKey));
        }
        if let Some(FrameContent::Map(open)) =
            self.frames.last_mut().map(|frame| &mut frame.content)
        {
            open.key = Some(key);
        }
        Ok(())
    }

    /// Checks and records the position of a node that is not a key.
    fn begin_value(&mut self, span: &Span) -> Result<(), YamlError> {
        if self.has_tab_after_dash
            && let Some(FrameContent::List(_, true)) =
                self.frames.last().map(|frame| &frame.content)
            && let Some(before) = span.start.byte_offset().and_then(|at| self.text.get(..at))
            && before.trim_end_matches([' ', '\t']).ends_with('-')
            && before.trim_end_matches(' ').ends_with('\t')
        {
            return Err(self.error_at(span, YamlProblem::TabAfterDash));
        }
        // Record the lines of the elements of the list `items` at the root.
        if let [
            Frame {
                content:
                    FrameContent::Map(OpenMap {
                        key: Some(MapKey::Text(key, _)),
                        ..
                    }),
                ..
            },
            Frame {
                content: FrameContent::List(..),
                ..
            },
        ] = self.frames.as_slice()
            && key == "items"
        {
            let line = self.position(span).line;
            self.item_lines.push(line);
        }
        Ok(())
    }

    fn take_document(&mut self) -> YamlDocument {
        let (value, line) = self.root.take().unwrap_or((Value::Null, self.line));
        self.anchors.clear();
        YamlDocument {
            value,
            line,
            item_lines: std::mem::take(&mut self.item_lines),
        }
    }

    /// Refuses spellings that our parser (YAML 1.2) accepts but the original (YAML 1.1) does not.
    fn check_spelling(&self, style: ScalarStyle, span: &Span) -> Result<(), YamlError> {
        let problem = match style {
            ScalarStyle::DoubleQuoted if !self.is_json => {
                let source = span.slice(self.text).unwrap_or_default();
                let mut rest = source.as_bytes();
                let mut found = false;
                while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
                    found |= rest.get(at + 1) == Some(&b'/');
                    rest = rest.get(at + 2..).unwrap_or_default();
                }
                found.then_some(YamlProblem::SlashEscape)
            }
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => None,
            _ if self.has_line_separators => span
                .slice(self.text)
                .and_then(|source| source.chars().find(|c| is_line_separator(*c)))
                .map(|c| YamlProblem::LineSeparator(c.into())),
            _ => None,
        };
        problem.map_or(Ok(()), |problem| Err(self.error_at(span, problem)))
    }

    fn count_nodes(&mut self, nodes: usize, bytes: usize, span: &Span) -> Result<(), YamlError> {
        self.budget.nodes = self.budget.nodes.saturating_add(nodes);
        self.budget.bytes = self.budget.bytes.saturating_add(bytes);
        if self.budget.nodes > MAX_NODES {
            return Err(self.error_at(span, YamlProblem::TooManyNodes));
        }
        Ok(())
    }

    fn charge_copy(&mut self, nodes: usize, bytes: usize, span: &Span) -> Result<(), YamlError> {
        let cost = nodes.saturating_mul(64).saturating_add(bytes);
        self.budget.copied = self.budget.copied.saturating_add(cost);
        if self.budget.copied > MAX_COPIED {
            return Err(self.error_at(span, YamlProblem::TooManyCopies));
        }
        Ok(())
    }

    fn position(&self, span: &Span) -> YamlPosition {
        YamlPosition {
            line: self.line + span.start.line().saturating_sub(1),
            column: self.indented.column(&span.start),
        }
    }

    fn error_at(&self, span: &Span, problem: YamlProblem) -> YamlError {
        let YamlPosition { line, column } = self.position(span);
        YamlError::new(line, column, problem)
    }

    fn scan_error(&self, error: &ScanError) -> YamlError {
        let span = Span::empty(*error.marker());
        self.error_at(&span, YamlProblem::Syntax(error.info()))
    }
}

fn scalar_tag(tag: &Tag) -> ScalarTag {
    match tag.suffix_in_namespace("tag:yaml.org,2002:").as_deref() {
        Some("null") => ScalarTag::Null,
        Some("bool") => ScalarTag::Bool,
        Some("int") => ScalarTag::Int,
        Some("float") => ScalarTag::Float,
        Some("binary") => ScalarTag::Binary,
        _ => ScalarTag::Text,
    }
}

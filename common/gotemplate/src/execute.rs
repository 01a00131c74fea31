//! Runs a template: Go's text/template/exec.go.

mod call;
mod evaluate;
mod field;
mod method;

use std::collections::BTreeSet;
use std::fmt;

use crate::error::{TemplateError, TemplatePosition};
use crate::function::{FunctionContext, FunctionError};
use crate::limits::{MAX_DEPTH, TemplateLimits};
use crate::parse::Definitions;
use crate::tree::{ConditionalNode, LoopNode, Pipeline, TemplateCall, TemplateNode};
use crate::value::Value;
use crate::{NoValueWarning, TemplateFile, TemplateOptions};

/// A running execution of templates.
pub(super) struct Execution<'t, 'a> {
    files: &'t [TemplateFile<'a>],
    definitions: &'t Definitions<'a>,
    strict: bool,
    limits: TemplateLimits,
    context: FunctionContext,
    /// Index of the file whose nodes are executed.
    file: usize,
    /// The visible variables, innermost last.
    variables: Vec<(&'t str, Value)>,
    depth: usize,
    steps: usize,
    iterations: usize,
    /// The output so far.
    pub(super) text: String,
    /// A warning for each action that printed `<no value>`, in the order of execution.
    pub(super) warnings: Vec<NoValueWarning>,
    warned: BTreeSet<(usize, usize)>,
}

/// How the execution of a list of nodes ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// After its last node.
    On,
    /// At `break`.
    Break,
    /// At `continue`.
    Continue,
}

/// Estimated size of an entry when a dict is copied.
const ENTRY: usize = 64;

/// The result of executing a node. The error is boxed to keep the stack small: every level of the recursion holds a result.
type ExecutionResult<T> = Result<T, Box<TemplateError>>;

impl<'t, 'a> Execution<'t, 'a> {
    /// Prepares the execution of `files`, with `root` as `$`.
    pub(super) fn new(
        files: &'t [TemplateFile<'a>],
        definitions: &'t Definitions<'a>,
        options: &TemplateOptions<'_>,
        root: Value,
    ) -> Self {
        Self {
            files,
            definitions,
            strict: options.strict,
            limits: options.limits,
            context: FunctionContext {
                bytes: options.limits.bytes,
                work: options.limits.work,
                stop: options.stop.cloned(),
            },
            file: 0,
            variables: vec![("$", root)],
            depth: 0,
            steps: 0,
            iterations: 0,
            text: String::new(),
            warnings: Vec::new(),
            warned: BTreeSet::new(),
        }
    }

    /// Executes the nodes of `file`. Variables that are declared outside of blocks stay visible in the next file.
    pub(super) fn execute_file(
        &mut self,
        file: usize,
        dot: &Value,
        nodes: &'t [TemplateNode<'a>],
    ) -> ExecutionResult<()> {
        self.file = file;
        self.execute_nodes(dot, nodes).map(|_| ())
    }

    fn execute_nodes(
        &mut self,
        dot: &Value,
        nodes: &'t [TemplateNode<'a>],
    ) -> ExecutionResult<Flow> {
        self.depth += 1;
        for node in nodes {
            let flow = self.execute_node(dot, node)?;
            if flow != Flow::On {
                self.depth -= 1;
                return Ok(flow);
            }
        }
        self.depth -= 1;
        Ok(Flow::On)
    }

    fn execute_node(&mut self, dot: &Value, node: &'t TemplateNode<'a>) -> ExecutionResult<Flow> {
        match node {
            TemplateNode::Text(text) => {
                self.text.push_str(text);
                self.steps += 1;
                Ok(Flow::On)
            }
            TemplateNode::Action(pipeline) => {
                let value = self.evaluate_pipeline(dot, pipeline)?;
                if pipeline.variables.is_empty() {
                    self.print(pipeline, &value)?;
                }
                Ok(Flow::On)
            }
            TemplateNode::If(choice) => self.execute_choice(dot, choice, false),
            TemplateNode::With(choice) => self.execute_choice(dot, choice, true),
            TemplateNode::Range(range) => self.execute_range(dot, range),
            TemplateNode::Template(call) => self.execute_template(dot, call).map(|()| Flow::On),
            TemplateNode::Break => Ok(Flow::Break),
            TemplateNode::Continue => Ok(Flow::Continue),
        }
    }

    fn execute_choice(
        &mut self,
        dot: &Value,
        choice: &'t ConditionalNode<'a>,
        with: bool,
    ) -> ExecutionResult<Flow> {
        let mark = self.variables.len();
        for (condition, nodes) in &choice.branches {
            let value = self.evaluate_pipeline(dot, condition)?;
            if value.truth() {
                let flow = self.execute_nodes(if with { &value } else { dot }, nodes)?;
                self.variables.truncate(mark);
                return Ok(flow);
            }
        }
        let flow = self.execute_nodes(dot, &choice.otherwise)?;
        self.variables.truncate(mark);
        Ok(flow)
    }

    fn execute_range(&mut self, dot: &Value, range: &'t LoopNode<'a>) -> ExecutionResult<Flow> {
        let outside = self.variables.len();
        let over = self.evaluate_pipeline(dot, &range.over)?;
        let over = over.follow();
        let mut ran = false;
        let flow = match over {
            Value::Missing | Value::Nil => Flow::On,
            Value::Int(count) => self.execute_count(range, *count, Value::Int, &mut ran)?,
            Value::Int64(count) => self.execute_count(range, *count, Value::Int64, &mut ran)?,
            Value::Byte(count) => {
                self.execute_count(range, i64::from(*count), Value::Int, &mut ran)?
            }
            Value::Uint64(count) => {
                let count = i64::try_from(*count).unwrap_or(i64::MAX);
                self.execute_count(
                    range,
                    count,
                    |index| Value::Uint64(index.unsigned_abs()),
                    &mut ran,
                )?
            }
            Value::List(list) => {
                let indexes = (0..).map(Value::Int);
                self.execute_each(range, indexes.zip(list.iter().cloned()), &mut ran)?
            }
            Value::Dict(dict) => {
                // The entries are copied even if the loop ends at once.
                self.charge(dict.len().saturating_mul(ENTRY), range.over.at, &range.over)?;
                let entries = dict.entries().into_iter();
                let entries = entries.map(|(key, value)| (Value::Text(key), value));
                self.execute_each(range, entries, &mut ran)?
            }
            other => {
                let problem = format!(
                    "range can't iterate over a value of type {}",
                    other.type_name()
                );
                return Err(self.fail_over(range, problem));
            }
        };
        let flow = if ran {
            flow
        } else {
            self.execute_nodes(dot, &range.otherwise)?
        };
        self.variables.truncate(outside);
        Ok(flow)
    }

    /// Executes the body for the numbers below `count`.
    fn execute_count(
        &mut self,
        range: &'t LoopNode<'a>,
        count: i64,
        number: fn(i64) -> Value,
        ran: &mut bool,
    ) -> ExecutionResult<Flow> {
        if range.over.variables.len() > 1 {
            let problem = format!("can't use {count} to iterate over more than one variable");
            return Err(self.fail_over(range, problem));
        }
        let numbers = (0..count).map(|index| (Value::Nil, number(index)));
        self.execute_each(range, numbers, ran)
    }

    /// Executes the body for every pair of a key and an element. Sets `ran` if there is one.
    fn execute_each(
        &mut self,
        range: &'t LoopNode<'a>,
        pairs: impl Iterator<Item = (Value, Value)>,
        ran: &mut bool,
    ) -> ExecutionResult<Flow> {
        let mark = self.variables.len();
        for (key, element) in pairs {
            *ran = true;
            self.iterations += 1;
            if self.iterations > self.limits.iterations {
                let problem = format!("more than {} iterations", self.limits.iterations);
                return Err(self.fail_over(range, problem));
            }
            self.step(range.over.at, &range.over)?;
            self.bind(&range.over, mark, key, &element)?;
            let flow = self.execute_nodes(&element, &range.body)?;
            self.variables.truncate(mark);
            if flow == Flow::Break {
                break;
            }
        }
        // A `break` leaves only this loop.
        Ok(Flow::On)
    }

    /// Returns an error about the value that a loop iterates over.
    fn fail_over(&self, range: &LoopNode<'_>, problem: String) -> Box<TemplateError> {
        match range.over.commands.last() {
            Some(command) => self.fail(command.first.at, command, problem),
            None => self.fail(range.over.at, &range.over, problem),
        }
    }

    /// Sets the variables of a loop: one variable is the element, two are key and element.
    fn bind(
        &mut self,
        over: &'t Pipeline<'a>,
        mark: usize,
        key: Value,
        element: &Value,
    ) -> ExecutionResult<()> {
        let (element_name, key_name) = match over.variables.as_slice() {
            [] => return Ok(()),
            [element] => (*element, None),
            [key, element, ..] => (*element, Some(*key)),
        };
        if over.assigns {
            if let Some(key_name) = key_name {
                self.assign(over, key_name, key)?;
            }
            return self.assign(over, element_name, element.clone());
        }
        // The pipeline has just declared the variables as the last ones below the mark.
        let declared = self.variables.get_mut(..mark).unwrap_or_default();
        if let [.., (_, slot)] = declared {
            *slot = element.clone();
        }
        if key_name.is_some()
            && let [.., (_, slot), _] = declared
        {
            *slot = key;
        }
        Ok(())
    }

    fn execute_template(&mut self, dot: &Value, call: &'t TemplateCall<'a>) -> ExecutionResult<()> {
        let Some(tree) = self.definitions.get(&call.name) else {
            let problem = format!("template {:?} not defined", call.name);
            return Err(self.fail(call.at, call, problem));
        };
        let dot = match &call.data {
            Some(data) => self.evaluate_pipeline(dot, data)?,
            None => Value::Missing,
        };
        self.step(call.at, call)?;
        // No dynamic scoping: a template sees no variables of its caller.
        let variables = std::mem::replace(&mut self.variables, vec![("$", dot.clone())]);
        let file = std::mem::replace(&mut self.file, tree.file);
        self.execute_nodes(&dot, &tree.nodes)?;
        self.variables = variables;
        self.file = file;
        Ok(())
    }

    /// Evaluates a pipeline, and sets its variables to the value.
    fn evaluate_pipeline(
        &mut self,
        dot: &Value,
        pipeline: &'t Pipeline<'a>,
    ) -> ExecutionResult<Value> {
        self.depth += 1;
        self.step(pipeline.at, pipeline)?;
        let mut value = None;
        for command in &pipeline.commands {
            let result = self.evaluate_command(dot, command, value.take())?;
            // As in Go, the result of a command loses its null: it counts as missing.
            value = Some(match result {
                Value::Nil => Value::Missing,
                result => result,
            });
        }
        let value = value.unwrap_or(Value::Missing);
        for variable in &pipeline.variables {
            if pipeline.assigns {
                self.assign(pipeline, variable, value.clone())?;
            } else {
                self.variables.push((variable, value.clone()));
            }
        }
        self.depth -= 1;
        Ok(value)
    }

    fn print(&mut self, pipeline: &Pipeline<'_>, value: &Value) -> ExecutionResult<()> {
        if matches!(value, Value::Missing) {
            return self.print_missing(pipeline);
        }
        let printed = value.print(&mut self.text);
        printed.map_err(|error| self.failed(pipeline.at, pipeline, &error))
    }

    /// Prints `<no value>` and records a warning; with `strict`, returns an error.
    fn print_missing(&mut self, pipeline: &Pipeline<'_>) -> ExecutionResult<()> {
        if self.strict {
            let problem = "it has no value; set one, or give a default as in {{ default \"x\" .Variables.name }}";
            return Err(self.fail(pipeline.at, pipeline, problem.to_owned()));
        }
        self.text.push_str("<no value>");
        if self.warned.insert((self.file, pipeline.at)) {
            // The line of the warning is counted from the start of the file, which is work.
            self.charge(pipeline.at, pipeline.at, pipeline)?;
            let place = self.place(pipeline.at);
            let path = pipeline.to_string();
            self.warnings.push(NoValueWarning { place, path });
        }
        Ok(())
    }

    /// Counts a step, and checks all limits that further steps could exceed.
    fn step(&mut self, at: usize, action: impl fmt::Display) -> ExecutionResult<()> {
        self.steps += 1;
        let problem = if self.depth > MAX_DEPTH {
            format!(
                "templates and blocks run nested deeper than {MAX_DEPTH} levels: does a template call itself?"
            )
        } else if self.steps > self.limits.steps {
            format!("more than {} steps", self.limits.steps)
        } else if self.context.is_stopped() {
            FunctionError::stopped().to_string()
        } else if self.text.len() > self.limits.output {
            format!("more than {} MiB of text", self.limits.output >> 20)
        } else {
            return Ok(());
        };
        Err(self.fail(at, action, problem))
    }

    fn failed(
        &self,
        at: usize,
        action: impl fmt::Display,
        error: &FunctionError,
    ) -> Box<TemplateError> {
        self.fail(at, action, error.to_string())
    }

    fn fail(&self, at: usize, action: impl fmt::Display, problem: String) -> Box<TemplateError> {
        Box::new(TemplateError::Execute {
            place: self.place(at),
            action: action.to_string(),
            problem,
        })
    }

    fn place(&self, at: usize) -> TemplatePosition {
        let file = self.files.get(self.file);
        let (name, text) = file.map_or(("", ""), |file| (file.name, file.text));
        TemplatePosition::new(name, text, at)
    }
}

//! A parsed template: nodes that borrow from its text, with their byte offsets in it.

mod constant;
mod display;

use std::rc::Rc;

pub use constant::{NumberConstant, unquote};

use crate::function::Function;

/// A template: a file, or the body of a `define` or `block`.
#[derive(Debug)]
pub struct TemplateTree<'a> {
    /// Index of the file that contains it.
    pub file: usize,
    /// Its content.
    pub nodes: Vec<TemplateNode<'a>>,
}

/// A part of a template.
#[derive(Debug)]
pub enum TemplateNode<'a> {
    /// A text that is printed as it is.
    Text(&'a str),
    /// Prints a value, or declares or assigns a variable.
    Action(Pipeline<'a>),
    /// `if`, `else if`, `else`.
    If(ConditionalNode<'a>),
    /// `with`, `else with`, `else`.
    With(ConditionalNode<'a>),
    /// `range`.
    Range(LoopNode<'a>),
    /// `template`, or the call that a `block` contains.
    Template(TemplateCall<'a>),
    /// Leaves the innermost loop.
    Break,
    /// Continues with the next iteration.
    Continue,
}

/// A conditional: executes the first branch whose condition is true, else `otherwise`.
#[derive(Debug)]
pub struct ConditionalNode<'a> {
    /// Conditions, each with its block.
    pub branches: Vec<(Pipeline<'a>, Vec<TemplateNode<'a>>)>,
    /// The block of the last `else`.
    pub otherwise: Vec<TemplateNode<'a>>,
}

/// `range`.
#[derive(Debug)]
pub struct LoopNode<'a> {
    /// The pipeline that returns the value to iterate over.
    pub over: Pipeline<'a>,
    /// The block that is executed for each element.
    pub body: Vec<TemplateNode<'a>>,
    /// The block that is executed if there are no elements.
    pub otherwise: Vec<TemplateNode<'a>>,
}

/// `template "name" data`.
#[derive(Debug)]
pub struct TemplateCall<'a> {
    /// Byte offset.
    pub at: usize,
    /// Name of the called template.
    pub name: String,
    /// The pipeline for its dot.
    pub data: Option<Pipeline<'a>>,
}

/// A pipeline: commands, each of which gets the result of the previous one as its last argument.
#[derive(Debug)]
pub struct Pipeline<'a> {
    /// Byte offset.
    pub at: usize,
    /// The variables that get the result.
    pub variables: Vec<&'a str>,
    /// Whether the variables must exist already (`=`, not `:=`).
    pub assigns: bool,
    /// The commands; at least one.
    pub commands: Vec<PipelineCommand<'a>>,
}

/// An operand, with arguments if it is a function or a method.
#[derive(Debug)]
pub struct PipelineCommand<'a> {
    /// The called function, or the value.
    pub first: Operand<'a>,
    /// The arguments.
    pub arguments: Vec<Operand<'a>>,
}

/// A part of a command: a function, a value or an argument.
#[derive(Debug)]
pub struct Operand<'a> {
    /// Byte offset; for a chain of fields that of the last dot, as in Go.
    pub at: usize,
    /// The kind of operand, with its data.
    pub term: OperandKind<'a>,
}

/// The kinds of operands.
#[derive(Debug)]
pub enum OperandKind<'a> {
    /// A function, with the name by which it is called.
    Function(&'a str, &'a Function<'a>),
    /// `.a.b`
    Field(Vec<&'a str>),
    /// `$x.a.b`
    Variable(&'a str, Vec<&'a str>),
    /// `.`
    Dot,
    /// `nil`
    Nil,
    /// `true`
    Bool(bool),
    /// A number.
    Number(NumberConstant<'a>),
    /// A text, with its spelling.
    Text(Rc<str>, &'a str),
    /// A pipeline in parentheses.
    Pipeline(Box<Pipeline<'a>>),
    /// Fields of a function or of a pipeline in parentheses.
    Chain(Box<Operand<'a>>, Vec<&'a str>),
}

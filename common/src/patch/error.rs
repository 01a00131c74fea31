//! Errors of patches. They name fields and objects, and repeat no value, which could be a secret.

use crate::manifest::key::ObjectKey;
use crate::manifest::yaml::YamlProblem;

/// Why a patch cannot be used or applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the installation's {field}: {}{problem}", object.as_ref().map_or_else(String::new, |object| format!("{object}: ")))]
pub struct PatchError {
    /// The field of the installation: `spec.patches[1].target.name`.
    pub field: String,
    /// The object that it was applied to, if it was.
    pub object: Option<Box<ObjectKey>>,
    /// What is wrong.
    pub problem: PatchProblem,
}

/// What is wrong with a patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchProblem {
    /// There are too many.
    #[error("there are {count} patches, and {most} are allowed")]
    TooMany {
        /// Their number.
        count: usize,
        /// The limit.
        most: usize,
    },
    /// They are too long, or one is with what its aliases repeat.
    #[error("{bytes} bytes are too many, {most} are allowed")]
    TooLong {
        /// Their length.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// Helm itself installs the add-on.
    #[error(
        "helm itself installs the add-on (mode release), and no patch reaches what it renders; leave them out"
    )]
    OfRelease,
    /// It is not YAML.
    #[error("line {line}, column {column}: cannot be read as YAML: {problem}")]
    Yaml {
        /// The line in the patch.
        line: usize,
        /// The column.
        column: usize,
        /// What is wrong.
        problem: YamlProblem,
    },
    /// It is not exactly one document that is a map or a list.
    #[error(
        "a patch is one document: a list of JSON 6902 operations, or a map, which is merged into the object"
    )]
    NotAPatch,
    /// An operation is not one of JSON 6902.
    #[error(
        "operation {number} is not one of JSON 6902: it has an op (add, remove, replace, move, copy or test), a path, and a value or a \
         from where the op needs one"
    )]
    Operation {
        /// Its number, from 1.
        number: usize,
    },
    /// Operations have no target.
    #[error("JSON 6902 operations name no object: add a target")]
    NoTarget,
    /// A merge patch has no target and does not name its object.
    #[error("without a target, a patch names its object with apiVersion, kind and metadata.name")]
    Unnamed,
    /// A pattern is not a regular expression.
    #[error("it is not a regular expression")]
    Pattern,
    /// A selector cannot be read.
    #[error("it is not a selector, such as app=web,tier!=db")]
    Selector,
    /// No object matches the target.
    #[error("no object matches {wanted}{}", describe_nearest(nearest))]
    NoMatch {
        /// The target, as in messages.
        wanted: String,
        /// The objects that may have been meant.
        nearest: Vec<String>,
    },
    /// An operation cannot be applied.
    #[error("operation {number} ({op} {path}): {why}")]
    Failed {
        /// Its number, from 1.
        number: usize,
        /// `add`, `test`, …
        op: &'static str,
        /// Its path.
        path: String,
        /// The reason.
        why: OperationProblem,
    },
    /// It changes which object it is.
    #[error("it changes {field}, and a patch must not turn an object into another one")]
    Identity {
        /// The field.
        field: &'static str,
    },
    /// `$patch` has another value.
    #[error("{path}: $patch is delete, merge or replace")]
    Directive {
        /// The map with it.
        path: String,
    },
    /// `$patch` is in an item of a list that is replaced.
    #[error(
        "{path}: the items of this list have no merge key, so it is replaced as a whole; remove an item with a JSON 6902 operation"
    )]
    ItemDirective {
        /// The list.
        path: String,
    },
    /// A directive that takes a list has another value.
    #[error("{path}: {directive} takes a list")]
    NotAList {
        /// The map with it.
        path: String,
        /// The directive.
        directive: &'static str,
    },
    /// An item of a list has no merge key.
    #[error("{path}: every item of this list needs its merge key, {key}")]
    NoKey {
        /// The list.
        path: String,
        /// The key.
        key: &'static str,
    },
    /// Several items of a list could be meant.
    #[error("{path}: several items could be meant; set all of {keys}")]
    Ambiguous {
        /// The list.
        path: String,
        /// The merge keys.
        keys: String,
    },
    /// The object nests too deep.
    #[error("the object nests more than {most} levels deep with it")]
    TooDeep {
        /// The limit.
        most: usize,
    },
}

/// Why an operation cannot be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationProblem {
    /// A `test` is not met.
    #[error("the value is another one")]
    Test,
    /// The path does not exist.
    #[error("the path does not exist in the object")]
    Path,
    /// The source of a `move` or `copy` does not exist.
    #[error("its from does not exist in the object")]
    From,
    /// A value would be moved into itself.
    #[error("a value cannot be moved into itself")]
    Inside,
    /// Copies would make the object too large.
    #[error("copies make the object too large")]
    Copies,
}

fn describe_nearest(nearest: &[String]) -> String {
    match nearest {
        [] => "; the add-on has no objects".to_owned(),
        nearest => format!("; nearest: {}", nearest.join(", ")),
    }
}

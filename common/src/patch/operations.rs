//! JSON 6902 operations, applied one by one so that an error names the one that failed.

use json_patch::{PatchErrorKind, PatchOperation};
use serde_json::Value;

use super::MAX_COPIED;
use super::error::{OperationProblem, PatchProblem};

/// Parses a list of operations.
///
/// # Errors
/// [`PatchProblem::Operation`].
pub(super) fn parse(list: Vec<Value>) -> Result<Vec<PatchOperation>, PatchProblem> {
    let parsed = list.into_iter().enumerate().map(|(index, operation)| {
        // Errors of serde would repeat the value.
        serde_json::from_value(operation).map_err(|_| PatchProblem::Operation { number: index + 1 })
    });
    parsed.collect()
}

/// Applies operations to an object.
///
/// # Errors
/// [`PatchProblem::Failed`].
pub(super) fn apply(operations: &[PatchOperation], object: &mut Value) -> Result<(), PatchProblem> {
    let mut copied = 0_usize;
    for (index, operation) in operations.iter().enumerate() {
        let failed = |why| PatchProblem::Failed {
            number: index + 1,
            op: name(operation),
            path: operation.path().to_string(),
            why,
        };
        if let PatchOperation::Copy(copy) = operation {
            let source = object.pointer(copy.from.as_str());
            let bytes = source.map_or(0, |source| source.to_string().len());
            copied = copied.saturating_add(bytes);
            if copied > MAX_COPIED {
                return Err(failed(OperationProblem::Copies));
            }
        }
        let applied = json_patch::patch(object, std::slice::from_ref(operation));
        applied.map_err(|error| {
            failed(match error.kind {
                PatchErrorKind::TestFailed => OperationProblem::Test,
                PatchErrorKind::InvalidFromPointer => OperationProblem::From,
                PatchErrorKind::CannotMoveInsideItself => OperationProblem::Inside,
                _ => OperationProblem::Path,
            })
        })?;
    }
    Ok(())
}

fn name(operation: &PatchOperation) -> &'static str {
    match operation {
        PatchOperation::Add(_) => "add",
        PatchOperation::Remove(_) => "remove",
        PatchOperation::Replace(_) => "replace",
        PatchOperation::Move(_) => "move",
        PatchOperation::Copy(_) => "copy",
        PatchOperation::Test(_) => "test",
    }
}

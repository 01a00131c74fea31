//! Advice if an archive cannot be made, or not pushed to a registry.

use addons_airgap::AirgapError;
use addons_sources::layout::LayoutArchiveError;
use addons_sources::registry::push::PushError;

use super::{of_operation, source};

pub(super) fn of_airgap(error: &AirgapError) -> Vec<String> {
    match error {
        AirgapError::Operation(error) => of_operation(error),
        AirgapError::Registry(error)
        | AirgapError::Push(PushError::Registry(error))
        | AirgapError::Layout(LayoutArchiveError::Registry(error)) => source::of_registry(error),
        _ => Vec::new(),
    }
}

//! Advice if an archive cannot be made, or not pushed to a registry.

use addons_airgap::AirgapError;
use addons_sources::layout::LayoutArchiveError;
use addons_sources::registry::push::PushError;

use super::{operation_hints, source};

pub(super) fn airgap_hints(error: &AirgapError) -> Vec<String> {
    match error {
        AirgapError::Operation(error) => operation_hints(error),
        AirgapError::Registry(error)
        | AirgapError::Push(PushError::Registry(error))
        | AirgapError::Layout(LayoutArchiveError::Registry(error)) => source::registry_hints(error),
        _ => Vec::new(),
    }
}

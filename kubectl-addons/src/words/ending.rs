//! Ends of the sentences of errors. Advice in lines of its own is in `hint`.

use addons_operation::OperationError;
use common::causes::causes;

/// Returns the flag that overrides a protection, as the end of the sentence of its error. Empty for all other errors.
pub fn sentence_end(error: &(dyn std::error::Error + 'static)) -> &'static str {
    let mut causes = causes(error).filter_map(|cause| cause.downcast_ref::<OperationError>());
    match causes.next().map(OperationError::root) {
        Some(OperationError::InGit(_)) => ", or use --force",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use addons_operation::error::ManagedInGit;
    use common::api::names::InstallationName;

    use crate::output::describe_chain;

    use super::*;

    #[test]
    fn a_record_of_git_is_changed_with_a_flag() {
        let error = OperationError::from(ManagedInGit::Created {
            installation: InstallationName {
                namespace: "shop".to_owned(),
                name: "web".to_owned(),
            },
            by: "Argo CD".to_owned(),
        });
        let error = anyhow::Error::from(error).context("till");
        assert_eq!(
            describe_chain(error.as_ref()),
            "till: shop/web is applied by Argo CD, whose next sync would create it again: remove it from Git, or use --force"
        );
        assert_eq!(sentence_end(&OperationError::NoKubernetesVersion), "");
    }
}
